"""OpenVINO GenAI's continuous batching as an engine of the workloads; its form is that of ``eng_oga``.

The model is a folder of ``optimum-cli export openvino``. Runs in a Python with ``openvino-genai`` and ``numpy``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import openvino
import openvino_genai


class Engine:
    """One pipeline; ``batched_tokens`` is how many tokens a step takes at most, the default that of the product."""

    dynamic = True

    def __init__(self, model: str, threads: int, batched_tokens: str = "256", cache_gb: str = "2") -> None:
        scheduling = openvino_genai.SchedulerConfig()
        scheduling.max_num_batched_tokens = int(batched_tokens)
        scheduling.cache_size = int(cache_gb)
        scheduling.max_num_seqs = 64
        scheduling.dynamic_split_fuse = True
        scheduling.enable_prefix_caching = True
        settings = {"INFERENCE_NUM_THREADS": threads}
        self._pipeline = openvino_genai.ContinuousBatchingPipeline(model, scheduling, "CPU", settings)
        self._running: dict[int, Any] = {}
        self._requests = 0
        self.vocab = int(json.loads(Path(model, "config.json").read_text(encoding="utf-8"))["vocab_size"])

    def info(self) -> dict[str, object]:
        """What is worth reporting beside the numbers."""
        core = openvino.Core()
        names = ("INFERENCE_PRECISION_HINT", "KV_CACHE_PRECISION")
        return {"version": openvino_genai.__version__} | {name: str(core.get_property("CPU", name)) for name in names}

    def submit(self, place: int, ids: list[int], new: int) -> None:
        """Queues a request."""
        config = openvino_genai.GenerationConfig()
        config.max_new_tokens = new
        config.ignore_eos = True
        config.do_sample = False
        self._requests += 1
        prompt = openvino.Tensor(np.array([ids], np.int64))
        self._running[place] = self._pipeline.add_request(self._requests, prompt, config)

    def pending(self) -> bool:
        """Whether a request has not ended."""
        return bool(self._running)

    def step(self) -> list[tuple[int, list[int]]]:
        """Runs once."""
        self._pipeline.step()
        tokens: list[tuple[int, list[int]]] = []
        for place, handle in list(self._running.items()):
            # Asked first: whatever is finished then has nothing to add to what can be read.
            finished = handle.get_status() == openvino_genai.GenerationStatus.FINISHED
            while handle.can_read():
                tokens += [(place, list(output.generated_ids)) for output in handle.read().values()]
            if finished:
                del self._running[place]
        return tokens
