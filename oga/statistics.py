"""What an engine has done so far and what it holds now."""

from __future__ import annotations

import dataclasses
from typing import Any

from oga._native.check import check
from oga._native.loader import ffi, lib

__all__ = ["EngineStatistics"]


@dataclasses.dataclass(frozen=True, slots=True)
class EngineStatistics:
    """A snapshot of an engine's counters, made by :meth:`oga.Engine.get_statistics`. Any thread."""

    steps: int
    """Committed steps since the engine was created."""
    rows: int
    """Requests that took part, summed over the committed steps: ``rows / steps`` is the average batch."""
    scheduled_tokens: int
    """Tokens fed to the model, summed over the committed steps."""
    generated_tokens: int
    """Tokens appended as output."""
    rolled_back_steps: int
    """Steps that failed and left no trace."""
    preemptions: int
    """How often a running request lost its cache to another one and was computed again."""
    dropped_residents: int
    """How often the cache of a request between turns was dropped to make room."""
    live_requests: int
    """Requests that are open now."""
    resident_requests: int
    """Requests that own cache now."""
    block_size: int
    """Token slots in one cache block."""
    total_blocks: int
    """Cache blocks of the engine."""
    free_blocks: int
    """Cache blocks that are available now, the cached ones among them."""
    cached_blocks: int
    """Cache blocks without an owner that are kept for their content."""
    prefix_queries: int
    """Admissions that looked for their beginning in the prefix cache."""
    prefix_hits: int
    """Of them, the ones that found some of it."""
    prefix_tokens_saved: int
    """Tokens that were not computed again because the cache held them."""
    prefix_evictions: int
    """Cached blocks that gave way to new ones."""
    block_bytes: int
    """Bytes of one cache block over all layers, keys and values."""

    @classmethod
    def _take(cls, pointer: Any) -> EngineStatistics:
        """Copies a native snapshot and frees it."""
        try:
            return cls(**{field.name: _count(pointer, field.name) for field in dataclasses.fields(cls)})
        finally:
            lib.OgaDestroyEngineStatistics(pointer)


def _count(pointer: Any, name: str) -> int:
    out = ffi.new("uint64_t *")
    check(lib.OgaEngineStatisticsGetCount(pointer, name.encode(), out))
    return int(out[0])
