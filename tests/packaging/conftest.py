"""The built wheel, installed into a clean environment outside the repository."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

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


@pytest.fixture(scope="session")
def wheel() -> Path:
    """The wheel that `make test` built."""
    return Path(os.environ["OGA_TEST_WHEEL"])


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel with its CPU extra in a fresh environment whose path has a space in it."""
    home = tmp_path_factory.mktemp("else where")
    venv.create(home / "env", with_pip=False, symlinks=True)
    python = home / "env" / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--no-input"]
    # pip needs the settings of whoever runs the tests to reach its packages, so this one keeps the environment.
    subprocess.run([*pip, "install", "-q", f"oga[cpu] @ {wheel.as_uri()}"], check=True, cwd=home)
    package = next((home / "env" / "lib").glob("python*/site-packages/oga"))
    workplace = home / "workplace"
    workplace.mkdir()
    return Installed(python, package, workplace)
