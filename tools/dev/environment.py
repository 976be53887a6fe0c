"""What a fresh machine lacks: system packages, the virtual environment, and the packages in it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from steps import ROOT, StepFailedError, must_run, once

VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
NATIVE_TOOLS = ["cmake>=3.22", "ninja"]


def pyproject() -> dict:
    """Returns the parsed pyproject.toml."""
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def requirements(*extras: str) -> list[str]:
    """Returns the dependencies of the package with ``extras``, extras that name other extras opened up."""
    project = pyproject()["project"]
    found = list(project["dependencies"])
    for extra in extras:
        for requirement in project["optional-dependencies"][extra]:
            if nested := re.fullmatch(r"oga\[(.*)\]", requirement):
                found += requirements(*nested[1].split(","))
            else:
                found.append(requirement)
    return sorted(set(found))


def ensure_system_packages(wanted: dict[str, bool]) -> None:
    """Installs the Debian packages whose value is False; without the right to do so, says which command does."""
    missing = sorted(name for name, present in wanted.items() if not present)
    if not missing:
        return
    command = f"apt-get install -y --no-install-recommends {' '.join(missing)}"
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise StepFailedError(
            f"These are missing: {', '.join(missing)} (names of Debian's packages). Install them and run make again:\n"
            f"  sudo apt-get update && sudo {command}"
        )

    def install() -> None:
        quiet = {"DEBIAN_FRONTEND": "noninteractive"}
        must_run("system-packages", ["apt-get", "update", "-q"], ["bash", "-c", command], env=quiet)

    once("setup", "system-packages", f"system packages: {', '.join(missing)}", f"{missing}", install)


def compiler_packages() -> dict[str, bool]:
    """Returns the Debian packages that building liboga needs, each with whether it is there."""
    return {"g++": bool(shutil.which("c++") and shutil.which("cc"))}


def test_packages() -> dict[str, bool]:
    """Returns the Debian packages that the tests need, each with whether it is there."""
    probe = "#include <gtest/gtest.h>\n"
    compiler = shutil.which("c++")
    found = compiler and subprocess.run(
        [compiler, "-E", "-x", "c++", "-", "-o", os.devnull], input=probe, text=True, capture_output=True, check=False
    )
    return {
        "chromium-headless-shell": bool(shutil.which("chromium-headless-shell") or shutil.which("chromium")),
        "libgtest-dev": bool(found and found.returncode == 0),
        "pkg-config": bool(shutil.which("pkg-config")),
    }


def ensure_venv() -> None:
    """Creates ``.venv`` with the interpreter that runs this, and what building the package needs."""
    build_requirements = [*pyproject()["build-system"]["requires"], *NATIVE_TOOLS]

    def create() -> None:
        if subprocess.run(
            [sys.executable, "-c", "import ensurepip, venv"], capture_output=True, check=False
        ).returncode:
            raise StepFailedError("Python's venv module is missing. Install it: sudo apt-get install python3-venv")
        if VENV.exists():
            shutil.rmtree(VENV)
        must_run("venv", [sys.executable, "-m", "venv", VENV], [*PIP_INSTALL, "--upgrade", "pip"])

    once("setup", "venv", "virtual environment in .venv", sys.version, create, [PYTHON])
    install_packages("build-tools", "build tools", build_requirements)


PIP_INSTALL: list[str | Path] = [PYTHON, "-m", "pip", "install", "--no-input", "--disable-pip-version-check"]


def install_packages(name: str, what: str, wanted: list[str]) -> None:
    """Installs requirements into ``.venv`` unless the same list was installed into it before."""
    once(
        "setup",
        f"packages-{name}",
        f"packages: {what}",
        f"{wanted} {PYTHON.lstat().st_ctime_ns}",
        lambda: must_run(f"packages-{name}", [*PIP_INSTALL, *wanted]),
    )


def runtime_library() -> Path:
    """Returns the ONNX Runtime library inside ``.venv``."""
    found = sorted(VENV.glob("lib/python*/site-packages/onnxruntime/capi/libonnxruntime.so.*"))
    if not found:
        raise StepFailedError("onnxruntime is not installed in .venv; delete build/stamps and run make again")
    return found[-1]
