"""Nothing in the repository points at one machine, at a registry, or at work that was put off."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from planted import Plant, assert_none

BINARY_SUFFIXES = {".png", ".gz", ".bin", ".onnx", ".gguf", ".ico"}
LARGEST_BYTES = 1_000_000
# Written in pieces, so that this file passes its own rules.
FORBIDDEN = {
    r"/(?:ho" + r"me|Us" + r"ers)/\w+|/wo" + r"rk/\w+|/ro" + r"ot/\w+|/tm" + r"p/lab": (
        "a path of one machine: derive it or pass it in"
    ),
    r"py" + r"pi\.org|pythonho" + r"sted|deb\.deb" + r"ian\.org|npm" + r"js\.|crates\.i" + r"o\b": (
        "the host of a registry: let the client's own settings decide"
    ),
    r"\bTO" + r"DO\b|\bFIX" + r"ME\b|\bXX" + r"X\b|raise NotImplemented" + r"Error": (
        "work put off: finish it, or file an issue and leave no mark"
    ),
    r"GTEST_" + r"SKIP|\bDISAB" + r"LED_\w+|mark\.sk" + r"ip|mark\.xf" + r"ail|pytest\.sk" + r"ip|importor" + r"skip": (
        "a test that may not run: make it pass or delete it"
    ),
    r"^<{7} |^>{7} ": "a merge conflict: resolve it",
}


def files(root: Path) -> list[Path]:
    """Returns the files that are or would be committed; in a folder without git, all files."""
    git = ["git", "-C", str(root)]
    listed = [*git, "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(listed, capture_output=True, text=True, check=False)
    top = subprocess.run([*git, "rev-parse", "--show-toplevel"], capture_output=True, text=True, check=False)
    if listing.returncode or Path(top.stdout.strip()).resolve() != root.resolve():
        return [path for path in sorted(root.rglob("*")) if path.is_file()]
    return [root / name for name in sorted(listing.stdout.split("\0")) if name and (root / name).is_file()]


def violations(root: Path) -> list[str]:
    """Returns one sentence for each forbidden mark and each file too large for a repository."""
    found = []
    for path in files(root):
        name = path.relative_to(root)
        if path.stat().st_size > LARGEST_BYTES:
            found.append(
                f"{name} is larger than {LARGEST_BYTES} bytes: make it at test time, or take it from a package"
            )
            continue
        if path.suffix in BINARY_SUFFIXES:
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            for pattern, why in FORBIDDEN.items():
                if match := re.search(pattern, line):
                    found.append(f"{name}:{number}: {match[0]!r} is {why}")
    return found


def test_no_file_carries_a_forbidden_mark(root: Path) -> None:
    assert_none(violations(root))


@pytest.mark.parametrize(
    "line",
    [
        "path = '/ho" + "me/somebody/model'",
        "url = 'py" + "pi.org/simple'",
        "# TO" + "DO: later",
        "GTEST_" + "SKIP();",
        "<" * 7 + " main",
    ],
)
def test_each_forbidden_mark_is_caught(plant: Plant, line: str) -> None:
    found = violations(plant({"oga/a.py": f"x = 1\n{line}\n"}))
    assert len(found) == 1
    assert found[0].startswith("oga/a.py:2: ")


def test_a_large_file_is_caught(plant: Plant) -> None:
    assert "larger than" in violations(plant({"docs/big.txt": "x" * (LARGEST_BYTES + 1)}))[0]
