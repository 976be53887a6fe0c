"""The few shapes that the pictures of `oga trace` and `oga bench` consist of."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape


def document(width: float, height: float, shapes: Iterable[str]) -> str:
    """A whole picture on white."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        'font-family="sans-serif" font-size="10">'
    )
    return (
        "\n".join([head, f'<rect width="{width:.0f}" height="{height:.0f}" fill="white"/>', *shapes, "</svg>"]) + "\n"
    )


def bar(x: float, y: float, width: float, height: float, colour: str, title: str | None = None) -> str:
    """A filled rectangle; ``title`` is shown by a pointer that rests on it."""
    shape = f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" fill="{colour}"'
    return f"{shape}/>" if title is None else f"{shape}><title>{escape(title)}</title></rect>"


def text(x: float, y: float, words: str, anchor: str = "start") -> str:
    """Words whose baseline begins, or ends, at a point."""
    return f'<text x="{x:.2f}" y="{y:.2f}" text-anchor="{anchor}">{escape(words)}</text>'


def line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    """A thin line."""
    return f'<line x1="{x1:.2f}" y1="{y1:.2f}" x2="{x2:.2f}" y2="{y2:.2f}" stroke="{colour}"/>'


def curve(points: Iterable[tuple[float, float]], colour: str) -> str:
    """A line through points."""
    listed = " ".join(f"{x:.2f},{y:.2f}" for x, y in points)
    return f'<polyline points="{listed}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def legend(entries: Iterable[tuple[str, str]], x: float, y: float) -> Iterable[str]:
    """Pairs of a word and its colour, in a row."""
    for number, (word, colour) in enumerate(entries):
        yield bar(x + 110 * number, y, 10, 10, colour)
        yield text(x + 110 * number + 14, y + 9, word)
