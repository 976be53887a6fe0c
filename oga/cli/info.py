"""``oga info``: what a model is, what it can take and what it runs on."""

from __future__ import annotations

import json

import oga
from oga.cli.models import open_engine
from oga.engine import Engine


def info(model: str, overlay: str | None, json_output: bool) -> None:
    """Loads the model and prints its facts."""
    with open_engine(model, overlay) as engine:
        facts = facts_of(engine)
    if json_output:
        print(json.dumps(facts, ensure_ascii=False))
        return
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):24}{f'{value:,}' if isinstance(value, int) else value}")


def facts_of(engine: Engine) -> dict[str, str | int]:
    """What a model is, what it can take and what it runs on."""
    limits = engine.get_capabilities()
    cache = engine.get_statistics()
    return {
        "model": str(engine.model.path),
        "family": engine.model.type,
        "device": engine.model.device_type,
        "longest_request_tokens": limits.max_request_length,
        "largest_batch_requests": limits.configured_max_batch_size,
        "largest_step_tokens": limits.max_scheduled_tokens,
        "cache_blocks": cache.total_blocks,
        "cache_block_tokens": cache.block_size,
        "cache_bytes": cache.total_blocks * cache.block_bytes,
        "oga": oga.__version__,
        "api": ".".join(str(part) for part in oga.get_api_version()),
        "onnxruntime": oga.get_ort_version(),
    }
