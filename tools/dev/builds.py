"""Builds: the wheel with liboga inside, and the C++ and C tests in release and sanitized form."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path

from environment import PIP_INSTALL, PYTHON, VENV, runtime_library
from steps import BUILD, announce, content_hash, files_below, must_run, once

RELEASE = BUILD / "release"
SANITIZED = BUILD / "sanitized"
SIMULATION = RELEASE / "tests" / "simulation"
WHEELS = BUILD / "wheel"
NATIVE_INPUTS = ("CMakeLists.txt", "cmake", "include", "native")
WHEEL_INPUTS = (*NATIVE_INPUTS, "oga", "pyproject.toml", "README.md")


def tool_env() -> dict[str, str]:
    """Returns the environment that puts the build tools of ``.venv`` first and ccache, when there is one, to use."""
    env = {"PATH": f"{VENV / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    if ccache := shutil.which("ccache"):
        env |= {"CMAKE_C_COMPILER_LAUNCHER": ccache, "CMAKE_CXX_COMPILER_LAUNCHER": ccache}
    return env


def jobs() -> str:
    """Returns how many compilers run at once: ``JOBS``, or one per core."""
    return os.environ.get("JOBS", str(os.cpu_count() or 1))


def wheel_path() -> Path:
    """Returns the wheel that was built last."""
    return max(WHEELS.glob("oga-*.whl"), key=lambda path: path.stat().st_mtime)


def build_wheel() -> None:
    """Builds the wheel when a file that goes into it changed, and installs it into ``.venv``."""
    key = content_hash(files_below(*WHEEL_INPUTS), extra=f"{PYTHON.lstat().st_ctime_ns}")

    def build() -> None:
        shutil.rmtree(WHEELS, ignore_errors=True)
        settings = [f"-Cbuild-dir={RELEASE}", "-Ccmake.define.OGA_WERROR=ON", f"-Cbuild.tool-args=-j{jobs()}"]
        isolation = ["--no-build-isolation", "--no-deps", "--no-input", "--disable-pip-version-check"]
        must_run(
            "wheel",
            [PYTHON, "-m", "pip", "wheel", "-v", ".", "-w", WHEELS, *isolation, *settings],
            env=tool_env(),
        )
        must_run("install", [*PIP_INSTALL, "--no-deps", "--force-reinstall", wheel_path()])

    once("build", "wheel", "liboga and the wheel", key, build, [WHEELS, VENV / "bin" / "oga"])


def build_native_tests(folder: Path, what: str, options: list[str]) -> None:
    """Configures ``folder`` with the tests on and builds what changed in it."""
    paths = [
        f"-DOGA_TEST_PYTHON={PYTHON}",
        f"-DOGA_TEST_ORT_LIBRARY={runtime_library()}",
        f"-DPython_EXECUTABLE={PYTHON}",
    ]
    configure = ["cmake", "-S", ".", "-B", folder, "-G", "Ninja", "-DOGA_BUILD_TESTS=ON", *paths, *options]
    start = time.monotonic()
    must_run(folder.name, configure, ["cmake", "--build", folder, "-j", jobs()], env=tool_env())
    announce("build", what, time.monotonic() - start)


def build_release_tests() -> None:
    """Builds the C++ and C tests and the simulator on top of the library of the wheel."""
    build_native_tests(RELEASE, "C++ and C tests, release", [])


def build_sanitized_tests() -> None:
    """Builds the library and its C++ and C tests with AddressSanitizer and UndefinedBehaviorSanitizer."""
    flags = ["-DCMAKE_BUILD_TYPE=RelWithDebInfo", "-DOGA_SANITIZE=address,undefined"]
    # With sanitizers -Og compiles in half the time of -O1 and runs hardly slower.
    flags += [f"-DCMAKE_{language}_FLAGS_RELWITHDEBINFO=-Og -g1" for language in ("C", "CXX")]
    build_native_tests(SANITIZED, "C++ and C tests, address and UB sanitizers", flags)
