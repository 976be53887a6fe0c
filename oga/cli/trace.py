"""``oga trace``: what an engine's trace file says, in numbers and as a picture."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from oga.cli.timeline import Step, write_timeline
from oga.errors import InvalidArgumentError

PHASES = ("plan", "reserve", "pack", "execute", "sample", "commit")
# Later marks win where several steps share a column of the picture.
MARKS = {"waited": ".", "decode": "-", "prefill": "#", "dropped": "!"}
MOST_REQUESTS_DRAWN = 40


def trace(file: Path, plot: Path | None, json_output: bool) -> None:
    """Prints the summary of a trace and, for people, when each request ran and waited; draws it into ``plot``."""
    steps = read_steps(file)
    if plot is not None:
        write_timeline(steps, plot)
    summary = summarise(steps)
    if json_output:
        print(json.dumps(summary))
        return
    for line in sentences(summary):
        print(line)
    print()
    for line in picture(steps, shutil.get_terminal_size().columns):
        print(line)


def read_steps(file: Path) -> list[Step]:
    """The steps of a trace. A last line that was cut off is left out."""
    lines = file.read_text(encoding="utf-8").splitlines()
    steps: list[Step] = []
    for number, line in enumerate(lines, start=1):
        try:
            step = json.loads(line)
            steps.append(step | {"us": {phase: float(step["us"][phase]) for phase in PHASES}})
        except (json.JSONDecodeError, KeyError, TypeError, ValueError):
            if number < len(lines) or number == 1:
                raise InvalidArgumentError(
                    f"{file}, line {number} is no step of a trace; Engine.set_trace_file writes one JSON object a line."
                ) from None
    if not steps:
        raise InvalidArgumentError(f"{file} holds no step; the engine that wrote it has not run.")
    return steps


def summarise(steps: list[Step]) -> dict[str, Any]:
    """Counts and times over all steps."""
    committed = [step for step in steps if step["outcome"] == "committed"]
    rows = [row for step in committed for row in step["rows"]]
    return {
        "outcomes": dict(Counter(step["outcome"] for step in steps)),
        "requests": len({row["request"] for step in steps for row in step["rows"]}),
        "steps": len(committed),
        "rows": len(rows),
        "prefill_tokens": sum(row["tokens"] for row in rows if row["kind"] == "prefill"),
        "decode_tokens": sum(row["tokens"] for row in rows if row["kind"] == "decode"),
        "waits": dict(Counter(wait["for"] for step in steps for wait in step["waited"])),
        "dropped": sum(len(step["dropped"]) for step in steps),
        "fewest_free_blocks": min(step["free_blocks"] for step in steps),
        "microseconds": {phase: round(sum(step["us"][phase] for step in steps), 1) for phase in PHASES},
    }


def sentences(summary: dict[str, Any]) -> Iterable[str]:
    """The summary for people."""
    steps = summary["steps"]
    yield (
        f"{steps} steps of {summary['requests']} requests: {summary['rows'] / max(1, steps):.2f} rows per step, "
        f"{summary['prefill_tokens']} prompt tokens, {summary['decode_tokens']} decoded"
    )
    others = {outcome: count for outcome, count in summary["outcomes"].items() if outcome != "committed"}
    if others:
        yield "not committed: " + ", ".join(f"{count} {outcome}" for outcome, count in others.items())
    waits = ", ".join(f"{count} for {reason}" for reason, count in summary["waits"].items())
    yield f"waited: {waits or 'never'}; dropped: {summary['dropped']}"
    yield f"fewest free blocks: {summary['fewest_free_blocks']}"
    times = summary["microseconds"]
    total = sum(times.values()) or 1.0
    shares = ", ".join(f"{phase} {100 * times[phase] / total:.1f}%" for phase in PHASES)
    yield f"{total / 1000:.1f} ms, {total / 1000 / max(1, steps):.2f} ms per step: {shares}"


def picture(steps: list[Step], width: int) -> Iterable[str]:
    """One line per request; a column is one step, or several where the terminal is narrow."""
    requests = sorted({entry["request"] for step in steps for entry in (*step["rows"], *step["waited"])})
    label = max(len(f"request {request}") for request in requests) if requests else 0
    columns = max(1, min(len(steps), width - label - 2))
    yield f"# prompt, - decode, . waited, ! dropped; {len(steps) / columns:.1f} steps per column"
    for request in requests[:MOST_REQUESTS_DRAWN]:
        cells = [" "] * columns
        for number, step in enumerate(steps):
            column = number * columns // len(steps)
            for mark in _marks(step, request):
                cells[column] = max(cells[column], mark, key=" .-#!".index)
        yield f"{f'request {request}':{label}}  {''.join(cells).rstrip()}"
    if len(requests) > MOST_REQUESTS_DRAWN:
        yield f"and {len(requests) - MOST_REQUESTS_DRAWN} more"


def _marks(step: Step, request: int) -> Iterable[str]:
    if request in step["dropped"]:
        yield MARKS["dropped"]
    yield from (MARKS[row["kind"]] for row in step["rows"] if row["request"] == request)
    yield from (MARKS["waited"] for wait in step["waited"] if wait["request"] == request)
