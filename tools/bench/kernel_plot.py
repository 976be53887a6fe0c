"""The kernels as a picture: how near each comes to the limit that it meets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from oga.cli import svg

LABEL_WIDTH, BAR_WIDTH, ROW_HEIGHT, TOP = 280, 420, 14, 46
COLOURS = {"of bandwidth": "#3b6fb6", "of multiply-adds": "#58a55c"}
FRAME = "#8a8a8a"


def write(lines: Sequence[dict[str, Any]], path: Path) -> None:
    """Draws ``lines`` as ``kernel_bench.measure`` returns them. Raises ``OSError`` when the file cannot be written."""
    height = TOP + ROW_HEIGHT * len(lines) + 24
    path.write_text(svg.document(LABEL_WIDTH + BAR_WIDTH + 60, height, _shapes(lines)), encoding="utf-8")


def _shapes(lines: Sequence[dict[str, Any]]) -> Iterable[str]:
    yield from svg.legend(COLOURS.items(), LABEL_WIDTH, 8)
    bottom = TOP + ROW_HEIGHT * len(lines)
    for share in (0.0, 0.5, 1.0):
        x = LABEL_WIDTH + share * BAR_WIDTH
        yield svg.line(x, TOP - 4, x, bottom, FRAME)
        yield svg.text(x, bottom + 14, f"{share:.0%}", "middle")
    for number, each in enumerate(lines):
        y = TOP + ROW_HEIGHT * number
        # Whichever is nearer: that limit ends first.
        shares = dict(zip(COLOURS, (each["read_share"], each["peak_share"]), strict=True))
        nearest = max(shares, key=lambda word: shares[word])
        title = ", ".join(f"{share:.0%} {word}" for word, share in shares.items())
        yield svg.text(LABEL_WIDTH - 6, y + ROW_HEIGHT - 5, each["name"], "end")
        yield svg.bar(LABEL_WIDTH, y, min(shares[nearest], 1.1) * BAR_WIDTH, ROW_HEIGHT - 3, COLOURS[nearest], title)
