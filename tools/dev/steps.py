"""Steps that run quietly, once per content of their inputs, with a log that is shown when they fail."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
BUILD = ROOT / "build"
LOGS = BUILD / "logs"
STAMPS = BUILD / "stamps"
SHOWN_LINES = 60
IGNORED_FOLDERS = {"__pycache__", ".mypy_cache", ".ruff_cache", ".pytest_cache"}


class StepFailedError(Exception):
    """A step failed; its message says which one, where its log is, and how the log ends."""


def files_below(*names: str) -> Iterator[Path]:
    """Yields the files of the repository paths ``names`` (folders or files) in a stable order."""
    for name in names:
        path = ROOT / name
        found = sorted(path.rglob("*")) if path.is_dir() else [path]
        yield from (file for file in found if file.is_file() and IGNORED_FOLDERS.isdisjoint(file.parts))


def content_hash(paths: Iterable[Path], extra: str = "") -> str:
    """Returns one digest of the names and contents of ``paths`` and of ``extra``."""
    digest = hashlib.sha256(extra.encode())
    for path in paths:
        digest.update(f"\0{path.relative_to(ROOT)}\0".encode())
        digest.update(path.read_bytes())
    return digest.hexdigest()


def announce(kind: str, what: str, seconds: float, note: str = "") -> None:
    """Prints the one line of a finished step."""
    print(f"{kind:<6} {what:<46} {seconds:7.1f} s  {note}".rstrip(), flush=True)


def run_logged(name: str, command: Sequence[str | Path], env: Mapping[str, str] | None = None) -> int:
    """Runs a command with its output in ``build/logs/<name>.log`` and returns its exit status."""
    LOGS.mkdir(parents=True, exist_ok=True)
    words = [str(word) for word in command]
    with (LOGS / f"{name}.log").open("ab") as log:
        log.write(f"$ {' '.join(words)}\n".encode())
        log.flush()
        full_env = {**os.environ, **(env or {})}
        return subprocess.run(
            words, cwd=ROOT, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=full_env, check=False
        ).returncode


def log_tail(name: str) -> str:
    """Returns the end of a step's log, with where to find the rest."""
    path = LOGS / f"{name}.log"
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join([*lines[-SHOWN_LINES:], f"(whole log: {path.relative_to(ROOT)})"])


def must_run(name: str, *commands: Sequence[str | Path], env: Mapping[str, str] | None = None) -> None:
    """Runs commands one after the other; raises StepFailedError with the log's end at the first that fails."""
    (LOGS / f"{name}.log").unlink(missing_ok=True)
    for command in commands:
        if run_logged(name, command, env):
            raise StepFailedError(f"{name} failed:\n{log_tail(name)}")


def once(kind: str, name: str, what: str, key: str, action: Callable[[], None], made: Iterable[Path] = ()) -> None:
    """Does ``action`` unless it was done before with the same ``key`` and everything in ``made`` still exists."""
    stamp = STAMPS / name
    if stamp.is_file() and stamp.read_text() == key and all(path.exists() for path in made):
        return
    stamp.unlink(missing_ok=True)
    if sys.stdout.isatty():
        print(f"{kind:<6} {what} ...", end="\r", flush=True)
    start = time.monotonic()
    action()
    announce(kind, what, time.monotonic() - start)
    STAMPS.mkdir(parents=True, exist_ok=True)
    stamp.write_text(key)
