"""The repository under test, and small trees with planted violations that show each rule can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from planted import Plant


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return Path(__file__).resolve().parents[2]


@pytest.fixture
def plant(tmp_path: Path) -> Plant:
    """Writes files (path to text) into an empty folder and returns the folder."""

    def write(files: dict[str, str]) -> Path:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return tmp_path

    return write
