"""A trace as an SVG timeline: a line per request, a column per step, the time of each step below."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

Step = dict[str, Any]

COLOURS = {"prefill": "#3b6fb6", "decode": "#58a55c", "waited": "#d9d9d9", "dropped": "#c0392b", "time": "#8a8a8a"}
WORDS = {"prefill": "prompt", "decode": "decode", "waited": "waited", "dropped": "gave way", "time": "time of the step"}
ROW_HEIGHT = 14
LABEL_WIDTH = 90
TIME_HEIGHT = 60
MOST_PIXELS = 1600


def write_timeline(steps: list[Step], path: Path) -> None:
    """Writes the picture. Raises ``OSError`` when the file cannot be written."""
    path.write_text("\n".join(_svg(steps)) + "\n", encoding="utf-8")


def _svg(steps: list[Step]) -> Iterable[str]:
    requests = sorted({entry["request"] for step in steps for entry in (*step["rows"], *step["waited"])})
    lines = {request: number for number, request in enumerate(requests)}
    column = min(8.0, MOST_PIXELS / len(steps))
    height = 30 + ROW_HEIGHT * len(requests) + TIME_HEIGHT + 20
    width = LABEL_WIDTH + column * len(steps) + 10
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" '
        'font-family="sans-serif" font-size="10">'
    )
    yield f'<rect width="{width:.0f}" height="{height}" fill="white"/>'
    yield from _legend()
    for request, line in lines.items():
        yield f'<text x="4" y="{40 + ROW_HEIGHT * line}">request {request}</text>'
    longest = max(sum(step["us"].values()) for step in steps) or 1.0
    base = 34 + ROW_HEIGHT * len(requests) + TIME_HEIGHT
    for number, step in enumerate(steps):
        x = LABEL_WIDTH + column * number
        for kind, request, title in _cells(step):
            y = 31 + ROW_HEIGHT * lines[request]
            yield _bar(x, y, column, ROW_HEIGHT - 3, kind, f"step {step['step']}, request {request}: {title}")
        microseconds = sum(step["us"].values())
        bar = TIME_HEIGHT * microseconds / longest
        yield _bar(x, base - bar, column, bar, "time", f"step {step['step']}: {microseconds / 1000:.2f} ms")
    yield f'<text x="4" y="{base}">0 to {longest / 1000:.1f} ms</text>'
    yield "</svg>"


def _cells(step: Step) -> Iterable[tuple[str, int, str]]:
    for wait in step["waited"]:
        yield "waited", wait["request"], f"waited for {wait['for']}"
    known = {row["request"] for row in (*step["rows"], *step["waited"])}
    for request in step["dropped"]:
        if request in known:
            yield "dropped", request, "gave way to another request"
    for row in step["rows"]:
        yield row["kind"], row["request"], f"{row['tokens']} tokens after {row['past']}, {row['event']}"


def _bar(x: float, y: float, width: float, height: float, kind: str, title: str) -> str:
    return (
        f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" fill="{COLOURS[kind]}">'
        f"<title>{title}</title></rect>"
    )


def _legend() -> Iterable[str]:
    for number, (kind, word) in enumerate(WORDS.items()):
        x = LABEL_WIDTH + 110 * number
        yield f'<rect x="{x}" y="8" width="10" height="10" fill="{COLOURS[kind]}"/>'
        yield f'<text x="{x + 14}" y="17">{word}</text>'
