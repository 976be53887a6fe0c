"""What was measured: one sample per request, and the numbers they add up to."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

PERCENTILES = (50, 90, 95, 99)


@dataclasses.dataclass(slots=True)
class Sample:
    """One request. Times are seconds from the start of the measurement; 0 or empty for what did not happen.

    ``start`` is when the request was due: in an open loop a target that falls behind is not excused.
    """

    start: float
    pieces: list[float] = dataclasses.field(default_factory=list)
    """When each piece of output came."""
    end: float = 0.0
    prompt_tokens: int = 0
    output_tokens: int = 0
    error: str | None = None
    """The kind of failure."""
    message: str = ""
    """What the failure said."""

    @property
    def ttft(self) -> float:
        """Time to the first token."""
        return self.pieces[0] - self.start

    @property
    def gaps(self) -> list[float]:
        """Times between pieces of output."""
        return [after - before for before, after in zip(self.pieces, self.pieces[1:], strict=False)]

    @property
    def per_token(self) -> float | None:
        """The mean time of an output token after the first one."""
        if self.output_tokens < 2:
            return None
        return (self.pieces[-1] - self.pieces[0]) / (self.output_tokens - 1)

    def fail(self, kind: str, message: str) -> None:
        """Notes why the request failed."""
        self.error, self.message = kind, " ".join(message.split())


@dataclasses.dataclass(frozen=True)
class Spread:
    """How values are distributed."""

    count: int
    mean: float
    percentiles: dict[int, float]
    largest: float

    @classmethod
    def of(cls, values: Iterable[float]) -> Spread | None:
        """None when there are no values."""
        import numpy as np

        found = np.fromiter(values, dtype=np.float64)
        if found.size == 0:
            return None
        points = np.percentile(found, PERCENTILES).tolist()
        return cls(found.size, float(found.mean()), dict(zip(PERCENTILES, points, strict=True)), float(found.max()))

    @property
    def facts(self) -> dict[str, float]:
        """For programs, in the unit of the values."""
        return {
            "count": self.count,
            "mean": self.mean,
            **{f"p{point}": value for point, value in self.percentiles.items()},
            "max": self.largest,
        }


@dataclasses.dataclass(frozen=True)
class Summary:
    """The numbers of a whole run."""

    samples: Sequence[Sample]

    @property
    def completed(self) -> list[Sample]:
        """Requests that were answered."""
        return [sample for sample in self.samples if sample.error is None]

    @property
    def errors(self) -> dict[str, list[Sample]]:
        """Failed requests by kind, the most frequent kind first."""
        found: dict[str, list[Sample]] = {}
        for sample in self.samples:
            if sample.error is not None:
                found.setdefault(sample.error, []).append(sample)
        return dict(sorted(found.items(), key=lambda item: -len(item[1])))

    @property
    def seconds(self) -> float:
        """From the first request to the end of the last answer."""
        if not self.samples:
            return 0.0
        return max(sample.end for sample in self.samples) - min(sample.start for sample in self.samples)

    @property
    def throughput(self) -> dict[str, float]:
        """Answered requests, their output tokens, and all their tokens, per second."""
        completed, seconds = self.completed, self.seconds or float("inf")
        output = sum(sample.output_tokens for sample in completed)
        total = output + sum(sample.prompt_tokens for sample in completed)
        return {
            "requests_per_second": len(completed) / seconds,
            "output_tokens_per_second": output / seconds,
            "total_tokens_per_second": total / seconds,
        }

    @property
    def mean_concurrency(self) -> float:
        """How many requests were open on average."""
        open_seconds = sum(sample.end - sample.start for sample in self.samples)
        return open_seconds / self.seconds if self.seconds > 0 else 0.0

    @property
    def latencies(self) -> dict[str, Spread | None]:
        """Distributions in seconds, by name."""
        started = [sample for sample in self.completed if sample.pieces]
        return {
            "ttft": Spread.of(sample.ttft for sample in started),
            "inter_token": Spread.of(gap for sample in started for gap in sample.gaps),
            "time_per_output_token": Spread.of(value for sample in started if (value := sample.per_token) is not None),
            "end_to_end": Spread.of(sample.end - sample.start for sample in self.completed),
        }

    @property
    def facts(self) -> dict[str, Any]:
        """Everything for programs; times in seconds."""
        return {
            "requests": {
                "completed": len(self.completed),
                "failed": len(self.samples) - len(self.completed),
                "errors": {
                    kind: {"count": len(found), "message": found[0].message} for kind, found in self.errors.items()
                },
            },
            "seconds": self.seconds,
            "mean_concurrency": self.mean_concurrency,
            "throughput": self.throughput,
            "tokens": {
                "prompt": sum(sample.prompt_tokens for sample in self.completed),
                "output": sum(sample.output_tokens for sample in self.completed),
            },
            "latency_seconds": {name: spread and spread.facts for name, spread in self.latencies.items()},
            "samples": [
                {
                    "start": sample.start,
                    "ttft": sample.ttft if sample.pieces else None,
                    "end_to_end": sample.end - sample.start,
                    "prompt_tokens": sample.prompt_tokens,
                    "output_tokens": sample.output_tokens,
                    "error": sample.error,
                }
                for sample in self.samples
            ],
        }
