"""``oga bench``: one load generator for this engine, in process, and for any OpenAI-compatible server."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from pathlib import Path
from typing import Any

from oga.cli.bench_load import Load, Sample, run_load
from oga.cli.bench_plot import plot
from oga.cli.bench_targets import HttpTarget, InProcessTarget, Target
from oga.errors import InvalidArgumentError

PERCENTILES = (50, 90, 95, 99)


def bench(
    target: str, load: Load, *, model: str | None, key: str | None, overlay: str | None, json_output: bool,
    plot_file: Path | None,
) -> None:  # fmt: skip
    """Runs the load, prints what came of it, and draws it."""
    is_url = target.startswith(("http://", "https://"))
    if is_url and overlay is not None:
        raise InvalidArgumentError("--overlay changes a model that is loaded here; a server has its own settings.")
    opened: Target = HttpTarget(target, model, key) if is_url else InProcessTarget(target, overlay)
    samples, seconds = asyncio.run(_run(opened, load))
    report = summary(samples, seconds, load)
    if plot_file is not None:
        plot(samples, seconds, plot_file)
    if json_output:
        print(json.dumps(report | {"samples": [dataclasses.asdict(sample) for sample in samples]}))
        return
    print(table(report))


async def _run(target: Target, load: Load) -> tuple[list[Sample], float]:
    async with target:
        return await run_load(target, load)


def summary(samples: list[Sample], seconds: float, load: Load) -> dict[str, Any]:
    """Counts, throughput, and percentiles in milliseconds."""
    good = [sample for sample in samples if sample.error is None]
    gaps = [gap for sample in good for gap in sample.gaps]
    series = {
        "first_token_ms": [sample.first for sample in good],
        "inter_token_ms": gaps,
        "whole_ms": [sample.whole for sample in good],
    }
    tokens = sum(sample.tokens for sample in good)
    return {
        "load": dataclasses.asdict(load),
        "requests": len(samples),
        "failed": len(samples) - len(good),
        "errors": sorted({sample.error for sample in samples if sample.error is not None})[:5],
        "seconds": round(seconds, 3),
        "requests_per_second": round(len(good) / seconds, 3) if seconds else 0.0,
        "tokens": tokens,
        "tokens_per_second": round(tokens / seconds, 2) if seconds else 0.0,
        "prompt_tokens": sum(sample.prompt_tokens for sample in good),
        **{name: percentiles([1000 * value for value in values]) for name, values in series.items()},
    }


def percentiles(values: list[float]) -> dict[str, float]:
    """Mean, some percentiles and the largest value; empty for no values."""
    if not values:
        return {}
    ordered = sorted(values)
    found = {"mean": sum(ordered) / len(ordered)}
    found |= {f"p{each}": ordered[min(len(ordered) - 1, len(ordered) * each // 100)] for each in PERCENTILES}
    return {name: round(value, 3) for name, value in (found | {"max": ordered[-1]}).items()}


def table(report: dict[str, Any]) -> str:
    """The report for a person."""
    lines = [
        f"{report['requests']} requests in {report['seconds']:.2f} s, {report['failed']} failed",
        f"{report['requests_per_second']:.2f} requests/s, {report['tokens_per_second']:.1f} generated tokens/s, "
        f"{report['prompt_tokens']} prompt tokens",
    ]
    lines += [f"failed: {error}" for error in report["errors"]]
    columns = ["mean", *(f"p{each}" for each in PERCENTILES), "max"]
    lines.append(f"{'milliseconds':16}" + "".join(f"{column:>10}" for column in columns))
    for name in ("first_token_ms", "inter_token_ms", "whole_ms"):
        values = report[name]
        cells = "".join(f"{values[column]:10.1f}" if values else f"{'-':>10}" for column in columns)
        lines.append(f"{name.removesuffix('_ms').replace('_', ' '):16}" + cells)
    return "\n".join(lines)
