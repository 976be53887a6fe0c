"""A trace as an SVG timeline: a line per request, a column per step, the time of each step below."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from oga.cli import svg

Step = dict[str, Any]

COLOURS = {"prefill": "#3b6fb6", "decode": "#58a55c", "waited": "#d9d9d9", "dropped": "#c0392b", "time": "#8a8a8a"}
WORDS = {"prefill": "prompt", "decode": "decode", "waited": "waited", "dropped": "gave way", "time": "time of the step"}
ROW_HEIGHT = 14
LABEL_WIDTH = 90
TIME_HEIGHT = 60
MOST_PIXELS = 1600


def write_timeline(steps: list[Step], path: Path) -> None:
    """Writes the picture. Raises ``OSError`` when the file cannot be written."""
    requests = sorted({entry["request"] for step in steps for entry in (*step["rows"], *step["waited"])})
    column = min(8.0, MOST_PIXELS / len(steps))
    height = 30 + ROW_HEIGHT * len(requests) + TIME_HEIGHT + 20
    width = LABEL_WIDTH + column * len(steps) + 10
    path.write_text(svg.document(width, height, _shapes(steps, requests, column)), encoding="utf-8")


def _shapes(steps: list[Step], requests: list[int], column: float) -> Iterable[str]:
    lines = {request: number for number, request in enumerate(requests)}
    yield from svg.legend(((WORDS[kind], COLOURS[kind]) for kind in WORDS), LABEL_WIDTH, 8)
    for request, line in lines.items():
        yield svg.text(4, 40 + ROW_HEIGHT * line, f"request {request}")
    longest = max(sum(step["us"].values()) for step in steps) or 1.0
    base = 34 + ROW_HEIGHT * len(requests) + TIME_HEIGHT
    for number, step in enumerate(steps):
        x = LABEL_WIDTH + column * number
        for kind, request, title in _cells(step):
            y = 31 + ROW_HEIGHT * lines[request]
            title = f"step {step['step']}, request {request}: {title}"
            yield svg.bar(x, y, column, ROW_HEIGHT - 3, COLOURS[kind], title)
        microseconds = sum(step["us"].values())
        bar = TIME_HEIGHT * microseconds / longest
        title = f"step {step['step']}: {microseconds / 1000:.2f} ms"
        yield svg.bar(x, base - bar, column, bar, COLOURS["time"], title)
    yield svg.text(4, base, f"0 to {longest / 1000:.1f} ms")


def _cells(step: Step) -> Iterable[tuple[str, int, str]]:
    for wait in step["waited"]:
        yield "waited", wait["request"], f"waited for {wait['for']}"
    known = {row["request"] for row in (*step["rows"], *step["waited"])}
    for request in step["dropped"]:
        if request in known:
            yield "dropped", request, "gave way to another request"
    for row in step["rows"]:
        yield row["kind"], row["request"], f"{row['tokens']} tokens after {row['past']}, {row['event']}"
