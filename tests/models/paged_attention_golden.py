"""Golden calls of paged attention for the kernels' C++ test: paged_attention_golden.py FILE.

The wanted results come from the NumPy oracle in float64. The caches start as NaN wherever no row has a token, blocks
lie in shuffled order, and table columns that a call does not touch hold -1.

FILE is a sequence of records up to its end, little-endian: int32 tokens, rows, heads, kv_heads, head_size, blocks,
block_size, columns, float16, window, rotary_dim, interleaved, positions, packed; float32 scale; then the arrays
cumulative, past, table, cos, sin, query, key, value, key_cache, value_cache, wanted output, key cache and value cache,
whose sizes follow from the fields.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from paged_oracle import paged_attention

Array = npt.NDArray[Any]


@dataclass
class Call:
    """One call; ``lengths`` holds (past, new) tokens per row, and ``rotary_dim`` 0 is no rotary embedding."""

    lengths: list[tuple[int, int]]
    heads: int = 4
    kv_heads: int = 2
    head_size: int = 64
    block_size: int = 16
    cache: type[np.floating[Any]] = np.float32
    window: int = -1
    rotary_dim: int = 64
    interleaved: bool = False
    packed: bool = False
    scale: float = 0.0
    seed: int = 0

    def record(self) -> bytes:
        """Returns the call with its wanted results as one record of the file."""
        random = np.random.default_rng(self.seed)
        past = np.array([row[0] for row in self.lengths], np.int32)
        new = np.array([row[1] for row in self.lengths], np.int32)
        ends = past + new
        cumulative = np.cumsum([0, *new]).astype(np.int32)
        tokens = int(cumulative[-1])
        used = -(-ends // self.block_size)
        blocks = int(used.sum()) + 5
        free = list(random.permutation(blocks).astype(np.int32))
        table = np.full((len(new), int(used.max()) + 1), -1, np.int32)
        cache_shape = (blocks, self.block_size, self.kv_heads, self.head_size)
        caches = [np.full(cache_shape, np.nan, self.cache) for _ in range(2)]
        for row, (old, count) in enumerate(zip(past, used, strict=True)):
            oldest = max(0, old - self.window + 1) if self.window > 0 else 0
            for column in range(oldest // self.block_size, count):
                table[row, column] = free.pop()
            held = np.arange(oldest, old)
            for cache in caches:
                values = random.uniform(-1, 1, (len(held), self.kv_heads, self.head_size))
                cache[table[row, held // self.block_size], held % self.block_size] = values
        widths = [self.heads * self.head_size, self.kv_heads * self.head_size, self.kv_heads * self.head_size]
        query, key, value = (random.uniform(-1, 1, (tokens, width)).astype(np.float32) for width in widths)
        query *= 4
        half = self.rotary_dim // 2
        angles = np.arange(int(ends.max()))[:, None] * 10000.0 ** (-np.arange(half) / max(half, 1))
        cos, sin = np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)
        wanted, *wanted_caches = paged_attention(
            query,
            key,
            value,
            caches[0],
            caches[1],
            cumulative,
            past,
            table,
            cos if half else None,
            sin if half else None,
            num_heads=self.heads,
            kv_num_heads=self.kv_heads,
            scale=self.scale,
            interleaved=self.interleaved,
            window=self.window,
        )
        fields = [tokens, len(new), self.heads, self.kv_heads, self.head_size, blocks, self.block_size, table.shape[1]]
        fields += [self.cache is np.float16, self.window, self.rotary_dim, self.interleaved, len(angles), self.packed]
        arrays = [cumulative, past, table, cos, sin, query, key, value, *caches, wanted.astype(np.float32)]
        return b"".join(
            array.tobytes()
            for array in (
                np.array(fields, "<i4"),
                np.array([self.scale], "<f4"),
                *arrays,
                *wanted_caches,
            )
        )


def calls() -> list[Call]:
    """Returns the calls of the file."""
    mixed = [(20, 1), (0, 9), (300, 1), (14, 5)]
    cases = [Call(mixed, heads=2 * group, head_size=64) for group in range(1, 9)]
    cases += [Call(mixed, head_size=size, rotary_dim=size) for size in (32, 80, 96, 128, 256)]
    cases += [Call(mixed, head_size=80, rotary_dim=32, interleaved=flag) for flag in (False, True)]
    cases += [Call(mixed, cache=np.float16, head_size=size, rotary_dim=size) for size in (64, 80)]
    cases += [Call(mixed, window=window) for window in (1, 2, 15, 16, 17, 400)]
    cases += [
        Call([(3 * size - 2, 1), (size, 1), (size - 1, 3), (0, size + 1)], head_size=32, rotary_dim=32, block_size=size)
        for size in (1, 4, 16, 256)
    ]
    cases += [Call([(length - 1, 1), (length - 7, 7)]) for length in (127, 128, 129, 255, 256, 257, 1000)]
    cases += [Call(mixed, rotary_dim=0, packed=True, scale=0.25)]
    for index, call in enumerate(cases):
        call.seed = index + 1
    return cases


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(b"".join(call.record() for call in calls()))
