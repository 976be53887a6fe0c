"""``oga info``: what a model is, what it can take and what it runs on."""

from __future__ import annotations

import json

from rich.console import Console
from rich.table import Table

import oga
from oga.cli.models import open_engine
from oga.engine import Engine


def info(model: str, overlay: str | None, json_output: bool) -> None:
    """Loads the model and prints its facts."""
    with open_engine(model, overlay) as engine:
        facts = _facts(engine)
    if json_output:
        print(json.dumps(facts, ensure_ascii=False))
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in facts.items():
        table.add_row(name.replace("_", " "), f"{value:,}" if isinstance(value, int) else str(value))
    Console().print(table, soft_wrap=True)


def _facts(engine: Engine) -> dict[str, str | int]:
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
