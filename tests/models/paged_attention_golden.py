"""Golden calls of paged attention for the kernels' C++ test: paged_attention_golden.py FILE.

The wanted results come from the NumPy oracle in float64. The caches start as NaN wherever no row has a token, blocks
lie in shuffled order, and table columns that a call does not touch hold -1.

FILE is a sequence of records up to its end, little-endian: int32 tokens, rows, heads, kv_heads, head_size, blocks,
block_size, columns, cache type (float32, float16, bfloat16, int8), window, rotary_dim, interleaved, positions, packed,
activation type (float32, float16, bfloat16), rotary_offset, norm, sinks, scales (of an int8 cache: 0 none, 1 one,
2 per channel), mapped; float32 scale, softcap, epsilon; then the arrays cumulative, past, table, slot mapping, cos,
sin, query, key, value, q_norm, k_norm, head_sink (activations of the activation type; those of an option that is off
are empty), k_scale, v_scale, key_cache, value_cache, wanted output (float32), key cache and value cache, whose sizes
follow from the fields.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
from paged_oracle import Options, paged_attention

Array = npt.NDArray[Any]

FLOATS: list[Any] = [np.float32, np.float16, ml_dtypes.bfloat16]
CACHES: list[Any] = [*FLOATS, np.int8]


@dataclass
class Call:
    """One call; ``lengths`` holds (past, new) tokens per row, and ``rotary_dim`` 0 is no rotary embedding."""

    lengths: list[tuple[int, int]]
    heads: int = 4
    kv_heads: int = 2
    head_size: int = 64
    block_size: int = 16
    cache: Any = np.float32
    activations: Any = np.float32
    channel_scales: bool = False
    window: int = -1
    rotary_dim: int = 64
    rotary_offset: int = 0
    interleaved: bool = False
    packed: bool = False
    mapped: bool = False
    scale: float = 0.0
    softcap: float = 0.0
    sinks: bool = False
    norm: bool = False
    epsilon: float = 1e-6
    seed: int = 0

    def record(self) -> bytes:
        """Returns the call with its wanted results as one record of the file."""
        random = np.random.default_rng(self.seed)
        past = np.array([row[0] for row in self.lengths], np.int32)
        ends = past + np.array([row[1] for row in self.lengths], np.int32)
        cumulative = np.cumsum([0, *(ends - past)]).astype(np.int32)
        table, caches = self.filled_caches(past, ends, random)
        narrow = self.activation_tensors(int(cumulative[-1]), int(ends.max()), random)
        cos, sin, query, key, value, q_norm, k_norm, sinks = narrow
        in_codes = self.cache is np.int8
        scale_shape = (self.kv_heads, 1, self.head_size) if self.channel_scales else (1,)
        scales = [random.uniform(0.004, 0.009, scale_shape if in_codes else 0).astype(np.float32) for _ in range(2)]
        slots = self.slots(past, ends, table) if self.mapped else np.zeros(0, np.int32)
        options = Options(
            scale=self.scale,
            interleaved=self.interleaved,
            rotary_offset=self.rotary_offset,
            window=self.window,
            softcap=self.softcap,
            epsilon=self.epsilon,
            slot_mapping=slots if self.mapped else None,
            head_sink=sinks if self.sinks else None,
            q_norm=q_norm if self.norm else None,
            k_norm=k_norm if self.norm else None,
            k_scale=scales[0] if in_codes else None,
            v_scale=scales[1] if in_codes else None,
        )
        tables = (cos, sin) if self.rotary_dim else (None, None)
        heads = {"num_heads": self.heads, "kv_num_heads": self.kv_heads}
        wanted, *wanted_caches = paged_attention(
            query, key, value, *caches, cumulative, past, table, *tables, **heads, options=options
        )
        fields = [len(query), len(past), self.heads, self.kv_heads, self.head_size, len(caches[0]), self.block_size]
        fields += [table.shape[1], CACHES.index(self.cache), self.window, self.rotary_dim, self.interleaved, len(cos)]
        fields += [self.packed, FLOATS.index(self.activations), self.rotary_offset, self.norm, self.sinks]
        fields += [(2 if self.channel_scales else 1) if in_codes else 0, self.mapped]
        numbers = [np.array(fields, "<i4"), np.array([self.scale, self.softcap, self.epsilon], "<f4")]
        arrays = [*numbers, cumulative, past, table, slots, *narrow, *scales, *caches, wanted.astype(np.float32)]
        return b"".join(array.tobytes() for array in (*arrays, *wanted_caches))

    def filled_caches(self, past: Array, ends: Array, random: np.random.Generator) -> tuple[Array, list[Array]]:
        """Returns the block table, and the caches of keys and values that hold what rows have already."""
        used = -(-ends // self.block_size)
        blocks = int(used.sum()) + 5
        free = list(random.permutation(blocks).astype(np.int32))
        table = np.full((len(past), int(used.max()) + 1), -1, np.int32)
        cache_shape = (blocks, self.block_size, self.kv_heads, self.head_size)
        in_codes = self.cache is np.int8
        caches = [np.full(cache_shape, -128 if in_codes else np.nan, self.cache) for _ in range(2)]
        for row, (old, count) in enumerate(zip(past, used, strict=True)):
            oldest = max(0, old - self.window + 1) if self.window > 0 else 0
            for column in range(oldest // self.block_size, count):
                table[row, column] = free.pop()
            held = np.arange(oldest, old)
            for cache in caches:
                values = random.uniform(-1, 1, (len(held), self.kv_heads, self.head_size)) * (128 if in_codes else 1)
                cache[table[row, held // self.block_size], held % self.block_size] = values
        return table, caches

    def activation_tensors(self, tokens: int, positions: int, random: np.random.Generator) -> list[Array]:
        """Returns cos, sin, query, key, value, q_norm, k_norm and head_sink."""
        widths = [self.heads * self.head_size, self.kv_heads * self.head_size, self.kv_heads * self.head_size]
        query, key, value = (random.uniform(-1, 1, (tokens, width)) for width in widths)
        half = self.rotary_dim // 2
        angles = np.arange(positions)[:, None] * 10000.0 ** (-np.arange(half) / max(half, 1))
        gains = [random.uniform(0.5, 2, self.head_size if self.norm else 0) for _ in range(2)]
        sinks = random.uniform(-3, 6, self.heads if self.sinks else 0)
        wide = [np.cos(angles), np.sin(angles), 4 * query, key, value, *gains, sinks]
        return [part.astype(self.activations) for part in wide]

    def slots(self, past: Array, ends: Array, table: Array) -> Array:
        """Returns the slot of each token, as the table has it."""
        placed = [
            table[row, position // self.block_size] * self.block_size + position % self.block_size
            for row, (first, end) in enumerate(zip(past, ends, strict=True))
            for position in range(first, end)
        ]
        return np.array(placed, np.int32)


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
    cases += [Call(mixed, activations=floats, cache=cache) for floats in FLOATS for cache in CACHES]
    cases += [Call(mixed, activations=floats, cache=np.int8, channel_scales=True) for floats in FLOATS]
    cases += [Call(mixed, softcap=softcap, scale=0.4) for softcap in (0.5, 5.0, 50.0)]
    cases += [Call(mixed, sinks=True, activations=floats) for floats in FLOATS]
    cases += [Call(mixed, norm=True, scale=0.05, epsilon=epsilon) for epsilon in (1e-6, 0.5)]
    cases += [Call(mixed, rotary_offset=24, rotary_dim=40, interleaved=flag) for flag in (False, True)]
    cases += [Call(mixed, mapped=True)]
    everything: dict[str, Any] = {
        "heads": 6, "head_size": 72, "channel_scales": True, "window": 290, "rotary_offset": 8, "rotary_dim": 30,
        "packed": True, "mapped": True, "scale": 0.1, "softcap": 4.0, "sinks": True, "norm": True,
    }  # fmt: skip
    cases += [Call(mixed, activations=floats, cache=cache, **everything) for floats in FLOATS for cache in CACHES]
    for index, call in enumerate(cases):
        call.seed = index + 1
    return cases


if __name__ == "__main__":
    Path(sys.argv[1]).write_bytes(b"".join(call.record() for call in calls()))
