"""A measurement as a picture: how latencies are distributed, and when each request waited and was answered."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from oga.bench.samples import Sample, Summary
from oga.cli import svg

PANEL_WIDTH, PANEL_HEIGHT, MARGIN = 280, 170, 46
CURVE, FRAME = "#3b6fb6", "#8a8a8a"
COLOURS = {"waited": "#d9d9d9", "answered": "#58a55c", "failed": "#c0392b"}
MOST_CURVE_POINTS = 400
MOST_ROWS = 400
PANELS = ("time to first token", "between pieces of an answer", "end to end")


def write_plot(summary: Summary, path: Path) -> None:
    """Writes the picture. Raises ``OSError`` when the file cannot be written."""
    rows = sorted(summary.samples, key=lambda sample: sample.start)
    step = max(1, -(-len(rows) // MOST_ROWS))
    rows = rows[::step]
    row_height = 8 if len(rows) <= 60 else 3
    width = MARGIN + len(PANELS) * (PANEL_WIDTH + MARGIN)
    height = PANEL_HEIGHT + 3 * MARGIN + row_height * len(rows) + MARGIN
    path.write_text(svg.document(width, height, _shapes(summary, rows, row_height, width)), encoding="utf-8")


def _shapes(summary: Summary, rows: Sequence[Sample], row_height: int, width: float) -> Iterable[str]:
    started = [sample for sample in summary.completed if sample.pieces]
    values = (
        [sample.ttft for sample in started],
        [gap for sample in started for gap in sample.gaps],
        [sample.end - sample.start for sample in summary.completed],
    )
    for number, (title, found) in enumerate(zip(PANELS, values, strict=True)):
        yield from _distribution(MARGIN + number * (PANEL_WIDTH + MARGIN), MARGIN, title, sorted(found))
    top = PANEL_HEIGHT + 3 * MARGIN
    yield from svg.legend(COLOURS.items(), MARGIN, top - 24)
    yield from _waterfall(summary, rows, row_height, top, width - 2 * MARGIN)


def _distribution(x: float, y: float, title: str, values: Sequence[float]) -> Iterable[str]:
    """The share of values up to each value."""
    base = y + PANEL_HEIGHT
    yield svg.text(x, y - 10, f"{title}: share of all, by milliseconds")
    yield svg.line(x, base, x + PANEL_WIDTH, base, FRAME)
    yield svg.line(x, y, x, base, FRAME)
    for share in (0.0, 0.5, 1.0):
        yield svg.text(x - 4, base - share * PANEL_HEIGHT + 3, f"{share:.1f}", "end")
    if not values:
        return
    most = values[-1] or 1e-9
    step = max(1, len(values) // MOST_CURVE_POINTS)
    shown = [*range(0, len(values), step), len(values) - 1]
    points = [(x + PANEL_WIDTH * values[at] / most, base - PANEL_HEIGHT * (at + 1) / len(values)) for at in shown]
    yield svg.curve([(x, base), *points], CURVE)
    for share in (0.0, 0.5, 1.0):
        yield svg.text(x + share * PANEL_WIDTH, base + 14, f"{1000 * share * most:.1f}", "middle")


def _waterfall(summary: Summary, rows: Sequence[Sample], row_height: int, top: float, width: float) -> Iterable[str]:
    first = min((sample.start for sample in rows), default=0.0)
    scale = width / (summary.seconds or 1.0)
    for number, sample in enumerate(rows):
        y = top + row_height * number
        begin, end = MARGIN + (sample.start - first) * scale, MARGIN + (sample.end - first) * scale
        if sample.error is not None:
            title = f"request {number + 1}: {sample.error}, {sample.message}"
            yield svg.bar(begin, y, max(1.0, end - begin), row_height - 1, COLOURS["failed"], title)
            continue
        middle = begin + (sample.ttft * scale if sample.pieces else end - begin)
        title = f"request {number + 1}: {sample.prompt_tokens} + {sample.output_tokens} tokens"
        yield svg.bar(begin, y, middle - begin, row_height - 1, COLOURS["waited"], title)
        yield svg.bar(middle, y, end - middle, row_height - 1, COLOURS["answered"], title)
    base = top + row_height * len(rows) + 14
    yield svg.text(MARGIN, base, "0 s")
    yield svg.text(MARGIN + width, base, f"{summary.seconds:.2f} s", "end")
