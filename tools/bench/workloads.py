"""The six workloads, and what is measured of each. Standard library only: other engines' Pythons import it too."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import NamedTuple

NAMES = ("W1", "W2", "W3", "W4", "W5", "W6")
TITLES = {
    "W1": "one request, 32 + 128 tokens",
    "W2": "one request, 1024 + 8 tokens",
    "W3": "8 at once, 128 + 64 tokens",
    "W4": "32 at once, 128 + 64 tokens",
    "W5": "16 staggered by 0.1 s, 32 to 1024 + 32 to 128 tokens",
    "W6": "16 at once with the same first 768 tokens, 32 own ones, 16 new",
    "warm-up": "2 at once, 48 + 8 tokens",
}
# Prompt and output lengths of W5.
MIXED = (
    *((32, 128), (1024, 32), (64, 96), (256, 64), (128, 128), (512, 48), (32, 96), (768, 32)),
    *((64, 128), (1024, 64), (128, 64), (384, 96), (32, 128), (640, 32), (96, 96), (256, 64)),
)


class Work(NamedTuple):
    """One request of a workload."""

    at: float
    """Seconds after the start."""
    prompt: list[int]
    new_tokens: int


def workload(name: str, vocab_size: int, seed: int) -> list[Work]:
    """The requests of one workload. Another seed gives other token ids of the same lengths."""
    draw = random.Random(f"{name}/{seed}")

    def ids(count: int) -> list[int]:
        return [draw.randrange(1000, vocab_size - 1000) for _ in range(count)]

    if name == "W5":
        return [Work(0.1 * index, ids(prompt), new) for index, (prompt, new) in enumerate(MIXED)]
    if name == "W6":
        shared = ids(768)
        return [Work(0.0, shared + ids(32), 16) for _ in range(16)]
    count, prompt, new = {
        "W1": (1, 32, 128),
        "W2": (1, 1024, 8),
        "W3": (8, 128, 64),
        "W4": (32, 128, 64),
        "warm-up": (2, 48, 8),
    }[name]
    return [Work(0.0, ids(prompt), new) for _ in range(count)]


def percentile(values: Sequence[float], fraction: float) -> float | None:
    """Linear interpolation between the two nearest; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    place = (len(ordered) - 1) * fraction
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def measures(work: Sequence[Work], seen: Sequence[Sequence[float]]) -> dict[str, float | None]:
    """``seen[i]``: seconds after the start at which each token of request i was there. Waiting counts from arrival."""
    first = [times[0] - item.at for item, times in zip(work, seen, strict=True)]
    gaps = [after - before for times in seen for before, after in itertools.pairwise(times)]
    seconds = max(times[-1] for times in seen) - min(item.at for item in work)
    generated = sum(len(times) for times in seen)
    return {
        "seconds": seconds,
        "generated_tokens": generated,
        "generated_tokens_per_second": generated / seconds,
        "tokens_per_second": (generated + sum(len(item.prompt) for item in work)) / seconds,
        "first_token_p50": percentile(first, 0.5),
        "first_token_p95": percentile(first, 0.95),
        "between_tokens_p50": percentile(gaps, 0.5),
        "between_tokens_p95": percentile(gaps, 0.95),
    }
