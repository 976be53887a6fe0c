"""The built wheel, installed into a clean environment outside the repository."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from installation import Installed


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
