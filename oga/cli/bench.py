"""``oga bench``: a load on an engine in this process, or on any server with OpenAI's API, and what came of it."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

import oga
from oga.bench.choices import Endpoint
from oga.bench.generator import Generator, Target
from oga.bench.samples import PERCENTILES, Sample, Spread, Summary
from oga.bench.server_target import ServerTarget, find_model
from oga.bench.workload import Lengths, Load, Questions, spread
from oga.cli.bench_plot import write_plot
from oga.cli.failures import FAILED
from oga.cli.models import find_model as find_folder
from oga.cli.progress import waiting
from oga.errors import InvalidArgumentError

if TYPE_CHECKING:
    from oga.tokenizer import Tokenizer

URL = re.compile(r"https?://")
DEFAULT_CONCURRENCY = 8
DEFAULT_REQUESTS = 64
STDOUT = Path("-")
TITLES = {
    "ttft": "time to first token",
    "inter_token": "between pieces",
    "time_per_output_token": "per output token",
    "end_to_end": "end to end",
}


@dataclasses.dataclass(frozen=True)
class Options:
    """What the command line says."""

    load: Load
    prompt_tokens: Lengths
    output_tokens: Lengths
    shared_prefix: int
    seed: int
    ignores_eos: bool
    timeout: float
    overlay: str | None
    model: str | None
    endpoint: Endpoint
    api_key: str | None
    tokenizer: Path | None

    def questions(self, tokenizer: Tokenizer | None, vocabulary: int | None) -> Questions:
        """Makes the requests."""
        return Questions(self.prompt_tokens, self.output_tokens, self.shared_prefix, self.seed, tokenizer, vocabulary)


def load_of(
    concurrency: int | None, rate: float | None, requests: int | None, duration: float | None, **others: Any
) -> Load:
    """The load that the options describe; some number of requests, unless a time is given."""
    if concurrency is not None and rate is not None:
        raise typer.BadParameter("give --concurrency (a closed loop) or --rate (an open one), not both")
    for name, value in (("--rate", rate), ("--duration", duration)):
        if value is not None and not 0 < value < math.inf:
            raise typer.BadParameter(f"{name} must be above 0")
    if concurrency is None and rate is None:
        concurrency = DEFAULT_CONCURRENCY
    if requests is None and duration is None:
        requests = DEFAULT_REQUESTS
    return Load(concurrency, rate, requests=requests, seconds=duration, **others)


def lengths_of(prompts: str, outputs: str) -> tuple[Lengths, Lengths]:
    """How long prompts and outputs are."""
    return Lengths.parse(prompts, "--prompt-tokens"), Lengths.parse(outputs, "--output-tokens")


def bench(target: str, options: Options, json_file: Path | None, plot: Path | None) -> None:
    """Measures and reports. Fails when no request was answered."""
    is_url = URL.match(target) is not None
    if is_url and options.overlay is not None:
        raise InvalidArgumentError("--overlay changes an engine in this process, not a server.")
    measure = _measure_server if is_url else _measure_engine
    samples, facts = asyncio.run(measure(target, options))
    summary = Summary(samples)
    report = facts | {"load": _load_facts(options)} | summary.facts
    if json_file is not None:
        _write(json_file, json.dumps(report, ensure_ascii=False))
    if plot is not None:
        write_plot(summary, plot)
    if json_file != STDOUT:
        _show(summary, report, options)
    if not summary.completed:
        raise typer.Exit(FAILED)


async def _measure_engine(name: str, options: Options) -> tuple[list[Sample], dict[str, Any]]:
    from oga.aio import AsyncEngine
    from oga.bench.engine_target import EngineTarget

    folder = find_folder(name)
    engine = AsyncEngine(folder, config=options.overlay, max_waiting=None)
    try:
        with waiting(f"Loading {name} ..."):
            await engine.open()
        has_text = (folder / "tokenizer.json").exists()
        vocabulary = json.loads((folder / "genai_config.json").read_text(encoding="utf-8"))["model"]["vocab_size"]
        target = EngineTarget(engine, ignores_eos=options.ignores_eos)
        samples = await _generate(target, options, engine.model.tokenizer if has_text else None, vocabulary)
        engine_facts = await target.facts()
    finally:
        await engine.close()
    return samples, {"oga": oga.__version__, "target": str(folder), "model": folder.name, "engine": engine_facts}


async def _measure_server(url: str, options: Options) -> tuple[list[Sample], dict[str, Any]]:
    from oga.bench.http import Client
    from oga.tokenizer import Tokenizer

    base = url.rstrip("/") if re.search(r"://[^/]+/.", url) else f"{url.rstrip('/')}/v1"
    client = Client(base, {"Authorization": f"Bearer {options.api_key}"} if options.api_key else {})
    try:
        model = options.model or await find_model(client)
        target = ServerTarget(client, model, options.endpoint, ignores_eos=options.ignores_eos)
        tokenizer = None if options.tokenizer is None else Tokenizer(options.tokenizer)
        samples = await _generate(target, options, tokenizer, None)
    finally:
        await client.close()
    return samples, {"oga": oga.__version__, "target": base, "model": model, "endpoint": str(options.endpoint)}


async def _generate(
    target: Target, options: Options, tokenizer: Tokenizer | None, vocabulary: int | None
) -> list[Sample]:
    questions = options.questions(tokenizer, vocabulary)
    with _progress(options.load) as note_end:
        return await Generator(target, questions, options.load, options.seed, options.timeout, note_end).run()


@contextmanager
def _progress(load: Load) -> Iterator[Callable[[Sample], None]]:
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        task = bars.add_task("requests", total=load.requests)
        yield lambda _: bars.advance(task)


def _load_facts(options: Options) -> dict[str, Any]:
    load = options.load
    return {
        "mode": "closed loop" if load.concurrency is not None else "open loop",
        "concurrency": load.concurrency,
        "rate": load.rate,
        "arrivals": None if load.rate is None else str(load.arrivals),
        "requests": load.requests,
        "duration_seconds": load.seconds,
        "warmup_requests": load.warmup,
        "prompt_tokens": str(options.prompt_tokens),
        "output_tokens": str(options.output_tokens),
        "shared_prefix_tokens": options.shared_prefix,
        "ignore_eos": options.ignores_eos,
        "seed": options.seed,
    }


def _write(file: Path, text: str) -> None:
    if file == STDOUT:
        print(text)
    else:
        file.write_text(f"{text}\n", encoding="utf-8")


def _show(summary: Summary, report: dict[str, Any], options: Options) -> None:
    console = Console(highlight=False, soft_wrap=True)
    load = options.load
    mode = f"{load.concurrency} at a time"
    if load.rate is not None:
        mode = f"{load.rate:g} per second ({load.arrivals})"
    console.print(f"{report['model']} at {report['target']}: {mode}", markup=False)
    print()
    console.print(_latency_table(summary))
    print()
    for title, value in _lines(summary, report):
        print(f"{title:20}{value}", flush=True)


def _lines(summary: Summary, report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What stands below the table."""
    rates, done = summary.throughput, summary.completed
    open_requests = summary.mean_concurrency
    yield "requests", f"{len(done)} answered in {summary.seconds:.2f} s, {open_requests:.1f} open on average"
    yield "prompt tokens", spread([sample.prompt_tokens for sample in done])
    yield "output tokens", spread([sample.output_tokens for sample in done])
    units = {"requests_per_second": "requests/s", "output_tokens_per_second": "output tokens/s"}
    units |= {"total_tokens_per_second": "tokens/s in all"}
    yield "throughput", ", ".join(f"{rates[name]:.2f} {unit}" for name, unit in units.items())
    if (engine := report.get("engine")) is not None:
        yield "engine", f"{engine['steps']} steps, {engine['rows_per_step']:.2f} rows per step"
        yield "", f"{engine['prefix_tokens_saved']} tokens from the prefix cache, {engine['preemptions']} preemptions"
    for kind, found in summary.errors.items():
        yield "failed", f"{len(found)} x {kind}: {found[0].message}"


def _latency_table(summary: Summary) -> Table:
    table = Table("milliseconds", box=None, pad_edge=False)
    for name in ("mean", *(f"p{point}" for point in PERCENTILES), "max"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, found in summary.latencies.items():
        table.add_row(TITLES[name], *_cells(found))
    return table


def _cells(spread: Spread | None) -> list[str]:
    if spread is None:
        return ["-"] * (len(PERCENTILES) + 2)
    return [f"{1000 * value:.1f}" for name, value in spread.facts.items() if name != "count"]
