"""A picture of a load: each request a line from its start over its first token to its end, as SVG."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oga.cli.bench_load import Sample

WIDTH, ROW, MARGIN = 960, 6, 40


def plot(samples: list[Sample], seconds: float, file: Path) -> None:
    """Writes the picture. Raises ``OSError`` when the file cannot be written."""
    scale = (WIDTH - 2 * MARGIN) / max(seconds, 1e-9)
    height = 2 * MARGIN + ROW * len(samples)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif"',
        ' font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        f'<text x="{MARGIN}" y="20">{len(samples)} requests: waiting (grey), generating (blue), failed (red)</text>',
    ]
    for tick in range(11):
        x = MARGIN + (WIDTH - 2 * MARGIN) * tick / 10
        lines.append(f'<line x1="{x:.1f}" y1="{MARGIN - 6}" x2="{x:.1f}" y2="{height - MARGIN}" stroke="#ddd"/>')
        lines.append(f'<text x="{x:.1f}" y="{height - 20}" text-anchor="middle">{seconds * tick / 10:.1f} s</text>')
    for row, sample in enumerate(samples):
        y = MARGIN + ROW * row
        x = MARGIN + scale * sample.begun
        first = scale * (sample.first if sample.error is None else sample.whole)
        colour = "#bbb" if sample.error is None else "#c33"
        lines.append(f'<rect x="{x:.1f}" y="{y}" width="{first:.1f}" height="{ROW - 2}" fill="{colour}"/>')
        if sample.error is None:
            rest = scale * (sample.whole - sample.first)
            lines.append(f'<rect x="{x + first:.1f}" y="{y}" width="{rest:.1f}" height="{ROW - 2}" fill="#36c"/>')
    file.write_text("\n".join([*lines, "</svg>", ""]), encoding="utf-8")
