"""oga as an engine of the workloads.

Others have a module ``eng_NAME`` of the same form beside this one, or on the path that a configuration names.

An engine is a class ``Engine(model, threads, **options)`` with ``vocab`` (the size of the vocabulary), ``info()``, and

- ``dynamic = True``: ``submit(i, ids, new)``, ``pending()`` and ``step() -> [(i, [token ids]), ...]``; or
- ``dynamic = False``: ``max_batch`` and ``run_batch([(i, ids, new), ...], emit)``, which calls
  ``emit(i, [token ids])``.
"""

from __future__ import annotations

import json
from pathlib import Path

import oga

BLOCK_SLOTS = 16


class Engine:
    """One engine over one model folder; greedy, the end of a sequence ignored."""

    dynamic = True

    def __init__(self, model: str, threads: int, blocks: str = "1024") -> None:
        with oga.Config(model) as config:
            limits = {"block_size": BLOCK_SLOTS, "num_blocks": int(blocks), "max_batch_size": 32}
            session = {"intra_op_num_threads": threads}
            config.overlay(
                json.dumps({"model": {"decoder": {"session_options": session}}, "engine": {"dynamic_batching": limits}})
            )
            self._model = oga.Model(config)
        self._engine = oga.Engine(self._model)
        self._buffer = self._engine.create_event_buffer(64)
        self._places: dict[oga.Request, int] = {}
        described = json.loads((Path(model) / "genai_config.json").read_text(encoding="utf-8"))
        self.vocab = int(described["model"]["vocab_size"])

    def info(self) -> dict[str, object]:
        """What is worth reporting beside the numbers."""
        return {"oga": oga.__version__, "runtime": oga.get_ort_version()}

    def submit(self, place: int, ids: list[int], new: int) -> None:
        """Queues a request."""
        request = self._engine.create_request()
        options = oga.TurnOptions(request, max_generated_tokens=new, do_sample=False, ignore_eos=True)
        request.begin_turn(ids, options)
        self._places[request] = place

    def pending(self) -> bool:
        """Whether a request has not ended."""
        return bool(self._places)

    def step(self) -> list[tuple[int, list[int]]]:
        """Runs once."""
        tokens: list[tuple[int, list[int]]] = []
        for event in self._engine.run(self._buffer):
            request = event.request
            if request is None:
                raise RuntimeError(f"the engine reports {event!r}")
            if (token := event.token) is not None:
                tokens.append((self._places[request], [token]))
            if event.finish_reason is oga.FinishReason.FAILED:
                raise RuntimeError(f"a turn failed: {event!r}")
            if event.finish_reason:
                del self._places[request]
                request.close()
        return tokens
