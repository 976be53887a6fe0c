"""ONNX Runtime GenAI as an engine of the workloads; its form is that of ``eng_oga``.

The model is a folder of its model builder. Runs in a Python with ``onnxruntime-genai`` and ``numpy``, through the
generator over a batch padded on the left, as most of its programs use it: whoever comes later waits for its end.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime_genai


class Engine:
    """One model; a batch takes ``batch`` requests at most."""

    dynamic = False

    def __init__(self, model: str, threads: int, batch: str = "32") -> None:
        self.max_batch = int(batch)
        config = onnxruntime_genai.Config(model)
        config.overlay(
            json.dumps(
                {
                    "model": {"decoder": {"session_options": {"intra_op_num_threads": threads}}},
                    "search": {"max_length": 4096, "do_sample": False},
                }
            )
        )
        self._model = onnxruntime_genai.Model(config)
        described = json.loads(Path(model, "genai_config.json").read_text(encoding="utf-8"))["model"]
        self._pad = int(described["pad_token_id"])
        self.vocab = int(described["vocab_size"])

    def info(self) -> dict[str, object]:
        """What is worth reporting beside the numbers."""
        return {"version": onnxruntime_genai.__version__}

    def run_batch(self, batch: list[tuple[int, list[int], int]], emit: Callable[[int, list[int]], None]) -> None:
        """Runs until the longest request has ended; ``emit`` hears of every token when it is there."""
        longest = max(len(ids) for _, ids, _ in batch)
        new = max(count for _, _, count in batch)
        rows = np.full((len(batch), longest), self._pad, np.int32)
        for row, (_, ids, _) in zip(rows, batch, strict=True):
            row[longest - len(ids) :] = ids
        params = onnxruntime_genai.GeneratorParams(self._model)
        params.set_search_options(max_length=longest + new, batch_size=len(batch), do_sample=False)
        generator = onnxruntime_genai.Generator(self._model, params)
        generator.append_tokens(rows if len(batch) > 1 else rows[0])
        while not generator.is_done():
            generator.generate_next_token()
            for (place, _, _), token in zip(batch, generator.get_next_tokens(), strict=True):
                emit(place, [int(token)])
