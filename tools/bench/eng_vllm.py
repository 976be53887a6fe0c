"""vLLM's CPU build as an engine of the workloads; its form is that of ``eng_oga``.

The model is a Hugging Face folder. Runs in a Python with vLLM for CPUs. It compiles what it runs when it is loaded,
which takes minutes the first time; ``VLLM_CACHE_ROOT`` names the folder that keeps it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

# Read when vLLM is imported: the engine runs in this process, and asks nobody for anything.
os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import vllm


class Engine:
    """One engine; ``dtype`` is that of weights, activations and cache."""

    dynamic = True

    def __init__(self, model: str, threads: int, dtype: str = "bfloat16", cache_gb: str = "2") -> None:
        os.environ["VLLM_CPU_KVCACHE_SPACE"] = cache_gb
        os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", f"0-{threads - 1}")
        arguments = vllm.EngineArgs(
            model=model,
            dtype=dtype,
            max_model_len=2048,
            max_num_seqs=64,
            enable_prefix_caching=True,
            disable_log_stats=True,
        )
        self._engine = vllm.LLMEngine.from_engine_args(arguments)
        self._dtype = dtype
        self._places: dict[str, int] = {}
        self._seen: dict[str, int] = {}
        self._requests = 0
        self.vocab = int(json.loads(Path(model, "config.json").read_text(encoding="utf-8"))["vocab_size"])

    def info(self) -> dict[str, object]:
        """What is worth reporting beside the numbers."""
        return {"version": vllm.__version__, "dtype": self._dtype}

    def submit(self, place: int, ids: list[int], new: int) -> None:
        """Queues a request."""
        self._requests += 1
        name = str(self._requests)
        self._places[name], self._seen[name] = place, 0
        sampling = vllm.SamplingParams(temperature=0, max_tokens=new, ignore_eos=True, detokenize=False)
        self._engine.add_request(name, {"prompt_token_ids": ids}, sampling)

    def pending(self) -> bool:
        """Whether a request has not ended."""
        return bool(self._places)

    def step(self) -> list[tuple[int, list[int]]]:
        """Runs once."""
        tokens: list[tuple[int, list[int]]] = []
        for output in self._engine.step():
            # Releases differ in whether they lengthen the name by a suffix.
            name = output.request_id.split("-")[0]
            found = list(output.outputs[0].token_ids)
            if new := found[self._seen[name] :]:
                tokens.append((self._places[name], new))
                self._seen[name] = len(found)
            if output.finished:
                del self._places[name], self._seen[name]
        return tokens
