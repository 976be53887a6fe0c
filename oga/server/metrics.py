"""Counters and histograms in Prometheus' text form, under the names that dashboards of inference servers read.

Written by the event loop only; reading never touches an engine.
"""

from __future__ import annotations

import bisect
from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oga.generation import Timings
    from oga.server.registry import Registry
    from oga.usage import TurnUsage

SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160)
HISTOGRAMS = {
    "time_to_first_token_seconds": "From the request to its first token.",
    "inter_token_latency_seconds": "Between two tokens of a turn, as its reader saw them.",
    "request_queue_time_seconds": "From the request until the engine took its turn.",
    "request_prefill_time_seconds": "From there to the first token, waiting for a row of the batch included.",
    "request_decode_time_seconds": "From the first token to the last.",
    "e2e_request_latency_seconds": "From the request to its end.",
}


class Histogram:
    """How often a value was at most each bound."""

    def __init__(self) -> None:
        self._counts = [0] * (len(SECONDS) + 1)
        self._sum = 0.0

    def observe(self, seconds: float, times: int = 1) -> None:
        """Counts a value."""
        self._counts[bisect.bisect_left(SECONDS, seconds)] += times
        self._sum += seconds * times

    def lines(self, name: str, labels: str) -> list[str]:
        """The text form."""
        total = 0
        lines = []
        for bound, count in zip((*SECONDS, "+Inf"), self._counts, strict=True):
            total += count
            lines.append(f'{name}_bucket{{{labels},le="{bound}"}} {total}')
        return [*lines, f"{name}_sum{{{labels}}} {self._sum}", f"{name}_count{{{labels}}} {total}"]


class Metrics:
    """What a server counts."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._histograms: dict[tuple[str, str], Histogram] = {}
        self._finished: Counter[tuple[str, str]] = Counter()
        self._prompt_tokens: Counter[str] = Counter()
        self._cached_tokens: Counter[str] = Counter()
        self._generated_tokens: Counter[str] = Counter()
        self._http: Counter[tuple[str, int]] = Counter()

    def count_http(self, path: str, status: int) -> None:
        """Counts an answer; status 0 for a client that left before there was one."""
        self._http[path, status] += 1

    def token_gap(self, model: str, seconds: float, tokens: int) -> None:
        """Counts the time between tokens."""
        self._histogram(model, "inter_token_latency_seconds").observe(seconds / tokens, tokens)

    def turn(self, model: str, reason: str, timings: Timings, usage: TurnUsage | None) -> None:
        """Counts a turn that is over."""
        self._finished[model, reason] += 1
        if usage is not None:
            self._prompt_tokens[model] += usage.prompt_tokens
            self._cached_tokens[model] += usage.cached_prompt_tokens
            self._generated_tokens[model] += usage.generated_tokens
        at = timings
        spans = {
            "time_to_first_token_seconds": (at.submitted, at.first_token),
            "request_queue_time_seconds": (at.submitted, at.accepted),
            "request_prefill_time_seconds": (at.accepted, at.first_token),
            "request_decode_time_seconds": (at.first_token, at.finished),
            "e2e_request_latency_seconds": (at.submitted, at.finished),
        }
        for name, (start, end) in spans.items():
            if start and end:
                self._histogram(model, name).observe(max(0.0, end - start))

    def text(self, registry: Registry) -> str:
        """Everything, as Prometheus reads it."""
        lines: list[str] = []
        for name, help_text in HISTOGRAMS.items():
            lines += self._head(name, "histogram", help_text)
            for (model, each), histogram in self._histograms.items():
                if each == name:
                    lines += histogram.lines(self._name(name), _label(model))
        for name, kind, help_text, values in self._values(registry):
            lines += self._head(name, kind, help_text)
            lines += [f"{self._name(name)}{{{labels}}} {value}" for labels, value in values]
        return "\n".join(lines) + "\n"

    def _values(self, registry: Registry) -> list[tuple[str, str, str, list[tuple[str, float]]]]:
        engines = registry.loaded

        def each(name: str) -> list[tuple[str, float]]:
            return [(_label(model), getattr(engine.statistics, name)) for model, engine in engines]

        running, waiting, usage = [], [], []
        for model, engine in engines:
            rows, label, statistics = engine.capabilities.configured_max_batch_size, _label(model), engine.statistics
            running.append((label, float(min(engine.open_turns, rows))))
            waiting.append((label, float(max(0, engine.open_turns - rows))))
            usage.append((label, 1 - statistics.free_blocks / max(1, statistics.total_blocks)))
        return [
            ("num_requests_running", "gauge", "Turns that have a row of the batch.", running),
            ("num_requests_waiting", "gauge", "Turns that wait for one.", waiting),
            ("kv_cache_usage_perc", "gauge", "Share of the cache blocks in use, 0 to 1.", usage),
            ("num_preemptions_total", "counter", "Turns that lost their cache to another one.", each("preemptions")),
            ("prefix_cache_queries_total", "counter", "Lookups of a beginning.", each("prefix_queries")),
            ("prefix_cache_hits_total", "counter", "Lookups that found some of it.", each("prefix_hits")),
            ("prefix_cache_tokens_saved_total", "counter", "Prompt tokens not computed.", each("prefix_tokens_saved")),
            ("engine_steps_total", "counter", "Committed steps.", each("steps")),
            ("prompt_tokens_total", "counter", "Prompt tokens of turns that ended.", _by_model(self._prompt_tokens)),
            ("generation_tokens_total", "counter", "Generated tokens of the same.", _by_model(self._generated_tokens)),
            (
                "request_success_total",
                "counter",
                "Turns that ended, by reason.",
                [(f'{_label(m)},finished_reason="{r}"', n) for (m, r), n in self._finished.items()],
            ),
            (
                "http_requests_total",
                "counter",
                "Answers, by route and status; status 0: the client left before.",
                [(f'handler="{_escape(path)}",status="{status}"', n) for (path, status), n in self._http.items()],
            ),
        ]

    def _histogram(self, model: str, name: str) -> Histogram:
        return self._histograms.setdefault((model, name), Histogram())

    def _name(self, name: str) -> str:
        return f"{self._prefix}:{name}"

    def _head(self, name: str, kind: str, help_text: str) -> list[str]:
        return [f"# HELP {self._name(name)} {help_text}", f"# TYPE {self._name(name)} {kind}"]


def _by_model(counts: Counter[str]) -> list[tuple[str, float]]:
    return [(_label(model), count) for model, count in counts.items()]


def _label(model: str) -> str:
    return f'model_name="{_escape(model)}"'


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
