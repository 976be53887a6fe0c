"""What the rules share: planted trees, and failures that show every violation."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Plant = Callable[[dict[str, str]], Path]


def assert_none(found: list[str]) -> None:
    """Fails with every violation on a line of its own."""
    assert not found, "\n" + "\n".join(found)
