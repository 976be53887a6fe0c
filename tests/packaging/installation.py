"""An environment with oga in it, and how to run things there."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(command: list[str | Path], cwd: Path, **variables: str) -> str:
    """Runs a command with an environment of its own and returns what it printed; fails the test when it fails."""
    env = {"PATH": os.environ["PATH"], "HOME": str(cwd), "LC_ALL": "C.UTF-8", **variables}
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(words)} exited with {done.returncode}:\n{done.stdout}\n{done.stderr}"
    return done.stdout.strip()


@dataclass(frozen=True)
class Installed:
    """An environment with oga in it."""

    python: Path
    package: Path  # the folder `oga` inside it
    workplace: Path  # an empty folder to work in

    def py(self, code: str) -> str:
        """Runs Python code in isolated mode and returns what it printed."""
        return run([self.python, "-I", "-c", code], self.workplace)
