"""llama.cpp as an engine of the workloads; its form is that of ``eng_oga``.

The model is a GGUF file, or a folder with one. Runs in a Python with ``llama-cpp-python`` and ``numpy``. Its low-level
API is used, with the policy of llama.cpp's own server: the running sequences' next tokens first, then prompts piece by
piece until the batch is full.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
from dataclasses import dataclass
from pathlib import Path

import llama_cpp
import numpy as np


@dataclass
class Sequence:
    """A request."""

    place: int
    prompt: list[int]
    left: int
    """Tokens still to generate."""
    slot: int = -1
    position: int = 0
    next_token: int | None = None
    """What was generated last; None while the prompt is read."""


class Engine:
    """One context with ``slots`` sequences that share ``cells`` places of the cache."""

    dynamic = True

    def __init__(self, model: str, threads: int, slots: str = "32", cells: str = "16384", batch: str = "2048") -> None:
        path = Path(model)
        if path.is_dir():
            path = sorted(path.glob("*.gguf"))[0]
        llama_cpp.llama_backend_init()
        loading = llama_cpp.llama_model_default_params()
        loading.n_gpu_layers = 0
        self._model = llama_cpp.llama_model_load_from_file(str(path).encode(), loading)
        if not self._model:
            raise RuntimeError(f"llama.cpp cannot load {path}")
        settings = llama_cpp.llama_context_default_params()
        settings.n_ctx, settings.n_batch, settings.n_seq_max = int(cells), int(batch), int(slots)
        settings.n_threads = settings.n_threads_batch = threads
        settings.kv_unified = True
        self._context = llama_cpp.llama_init_from_model(self._model, settings)
        if not self._context:
            raise RuntimeError(f"llama.cpp makes no context of {slots} sequences and {cells} cells")
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._capacity = int(batch)
        self._batch = llama_cpp.llama_batch_init(self._capacity, 0, 1)
        self._slots = list(range(int(slots)))
        self._waiting: list[Sequence] = []
        self._running: list[Sequence] = []
        self.vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self._model))

    def info(self) -> dict[str, object]:
        """What is worth reporting beside the numbers."""
        version = importlib.metadata.version("llama-cpp-python")
        return {"version": version, "system": llama_cpp.llama_print_system_info().decode()}

    def submit(self, place: int, ids: list[int], new: int) -> None:
        """Queues a request."""
        self._waiting.append(Sequence(place, ids, new))

    def pending(self) -> bool:
        """Whether a request has not ended."""
        return bool(self._waiting or self._running)

    def step(self) -> list[tuple[int, list[int]]]:
        """Runs once."""
        while self._waiting and self._slots:
            sequence = self._waiting.pop(0)
            sequence.slot = self._slots.pop(0)
            self._running.append(sequence)
        answering = self._fill()
        if status := llama_cpp.llama_decode(self._context, self._batch):
            raise RuntimeError(f"llama_decode returned {status}")
        return [(sequence.place, [self._choose(sequence, row)]) for sequence, row in answering]

    def _fill(self) -> list[tuple[Sequence, int]]:
        """Packs the next batch; returns whose logits it gives, and in which row."""
        self._batch.n_tokens = 0
        answering = [(sequence, self._add(sequence, sequence.next_token, True)) for sequence in self._decoding()]
        for sequence in self._running:
            while sequence.position < len(sequence.prompt) and self._batch.n_tokens < self._capacity:
                last = sequence.position == len(sequence.prompt) - 1
                row = self._add(sequence, sequence.prompt[sequence.position], last)
                answering += [(sequence, row)] * last
        return answering

    def _decoding(self) -> list[Sequence]:
        return [sequence for sequence in self._running if sequence.next_token is not None]

    def _add(self, sequence: Sequence, token: int | None, wanted: bool) -> int:
        batch, row = self._batch, self._batch.n_tokens
        batch.token[row], batch.pos[row], batch.logits[row] = token, sequence.position, wanted
        batch.n_seq_id[row], batch.seq_id[row][0] = 1, sequence.slot
        batch.n_tokens += 1
        sequence.position += 1
        return int(row)

    def _choose(self, sequence: Sequence, row: int) -> int:
        """The likeliest token; a sequence that has all of its tokens gives up its slot."""
        address = llama_cpp.llama_get_logits_ith(self._context, row)
        logits = np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_float)), (self.vocab,))
        token = sequence.next_token = int(logits.argmax())
        sequence.left -= 1
        if sequence.left == 0:
            llama_cpp.llama_memory_seq_rm(self._memory, sequence.slot, -1, -1)
            self._slots.append(sequence.slot)
            self._running.remove(sequence)
        return token
