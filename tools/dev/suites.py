"""The test suites of ``make test`` and the checks of ``make check``, with one summary at the end."""

from __future__ import annotations

import os
import shutil
import signal
import time
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

from builds import RELEASE, SANITIZED, jobs, tool_env, wheel_path
from environment import PYTHON, VENV
from steps import BUILD, LOGS, ROOT, announce, log_tail, run_logged

RESULTS = BUILD / "results"


@dataclass
class Summary:
    """What the suites came to so far."""

    passed: int = 0
    failed: int = 0
    broken: list[str] = field(default_factory=list)
    start: float = field(default_factory=time.monotonic)

    def add(self, kind: str, name: str, seconds: float, status: int, passed: int, failed: int) -> None:
        """Counts one suite and prints its line; a suite that failed without naming a test counts as one failure."""
        ok = status == 0 and failed == 0 and passed > 0
        failed = failed if ok or failed else 1
        self.passed += passed
        self.failed += failed
        announce(kind, name, seconds, f"{passed} passed" if ok else f"{passed} passed, {failed} FAILED")
        if not ok:
            self.broken.append(name)
            print(log_tail(name), flush=True)

    def close(self) -> int:
        """Prints the end of the run and returns the exit status."""
        minutes, seconds = divmod(int(time.monotonic() - self.start), 60)
        if self.broken:
            print(f"\nFailed: {', '.join(self.broken)}. Logs are in {LOGS.relative_to(ROOT)}/.")
        print(f"\nTook {minutes} min {seconds} s.\n{self.passed} passed, {self.failed} failed", flush=True)
        return 1 if self.failed or self.broken else 0


def junit_counts(paths: list[Path]) -> tuple[int, int]:
    """Returns how many tests of JUnit files passed and failed; a skipped test counts as failed."""
    passed = failed = 0
    for path in paths:
        for case in ElementTree.parse(path).getroot().iter("testcase"):
            bad = any(case.find(tag) is not None for tag in ("failure", "error", "skipped"))
            bad = bad or case.get("status") in ("notrun", "fail", "disabled")
            failed += bad
            passed += not bad
    return passed, failed


def run_pytest(summary: Summary, name: str, folders: list[str]) -> None:
    """Runs pytest over folders with the installed package, from a place where the source tree is not importable."""
    result = RESULTS / f"{name}.xml"
    result.unlink(missing_ok=True)
    env = {"PYTHONSAFEPATH": "1", "OGA_VALIDATE": "1", "OGA_TEST_WHEEL": str(wheel_path()) if wheels_exist() else ""}
    env |= {"OGA_TEST_PROGRAMS": str(RELEASE / "tests")}
    start = time.monotonic()
    (LOGS / f"{name}.log").unlink(missing_ok=True)
    status = run_logged(name, [VENV / "bin" / "pytest", "-q", f"--junitxml={result}", *folders], env | tool_env())
    passed, failed = junit_counts([result]) if result.is_file() else (0, 0)
    summary.add("test", name, time.monotonic() - start, status, passed, failed)


def wheels_exist() -> bool:
    """Returns whether a wheel was built."""
    return any((BUILD / "wheel").glob("oga-*.whl"))


def run_ctest(summary: Summary, name: str, folder: Path) -> None:
    """Runs the CTest programs of a build folder and counts the GoogleTest cases inside them."""
    cases = folder / "tests" / "results"
    shutil.rmtree(cases, ignore_errors=True)
    programs = RESULTS / f"{name}.xml"
    programs.unlink(missing_ok=True)
    start = time.monotonic()
    (LOGS / f"{name}.log").unlink(missing_ok=True)
    options = ["--output-on-failure", "-j", jobs(), "--no-tests=error", "--output-junit", programs]
    status = run_logged(name, ["ctest", "--test-dir", folder, *options], tool_env())
    passed, failed = junit_counts(sorted(cases.glob("*.xml")))
    if programs.is_file():
        plain = [case for case in ElementTree.parse(programs).getroot().iter("testcase") if not with_cases(case, cases)]
        bad = sum(case.get("status") != "run" for case in plain)
        passed, failed = passed + len(plain) - bad, failed + bad
    summary.add("test", name, time.monotonic() - start, status, passed, failed)


def with_cases(program: ElementTree.Element, cases: Path) -> bool:
    """Returns whether a CTest program left a file with its single cases."""
    return (cases / f"{program.get('name')}.xml").is_file()


def run_tests(summary: Summary, only: set[str]) -> None:
    """Runs the built suites; ``only`` names some of them, or is empty for all."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    # What a shell starts in the background ignores Ctrl-C, and so would the programs of tests that press it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if not only or "cpp" in only:
        run_ctest(summary, "c++-c-sanitized", SANITIZED)
        run_ctest(summary, "c++-c-release", RELEASE)
    if not only or "python" in only:
        for folder in python_folders():
            run_pytest(summary, folder, [f"tests/{folder}"])
    if not only or "packaging" in only:
        run_pytest(summary, "packaging", ["tests/packaging"])


def python_folders() -> list[str]:
    """Returns the names of the folders of tests/ with Python tests, without the suites that run by themselves."""
    folders = {path.relative_to(ROOT / "tests").parts[0] for path in (ROOT / "tests").glob("*/**/test_*.py")}
    return sorted(folders - {"architecture", "packaging"})


def run_architecture(summary: Summary) -> None:
    """Runs the tests that read the sources and need no build."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    run_pytest(summary, "architecture", ["tests/architecture"])


def run_checks(summary: Summary) -> None:
    """Runs formatting, lint, types, import layers and the documentation, every warning an error."""
    folders = [ROOT / name for name in ("include", "native", "tests", "docs/examples")]
    suffixes = {".h", ".hpp", ".c", ".cpp"}
    sources = sorted(file for folder in folders for file in folder.rglob("*") if file.suffix in suffixes)
    checks: dict[str, list[str | Path]] = {
        "clang-format": ["clang-format", "--dry-run", "-Werror", *sources],
        "ruff": ["ruff", "check", "."],
        "ruff-format": ["ruff", "format", "--check", "."],
        "mypy": ["mypy"],
        "import-linter": ["lint-imports"],
        "docs": sphinx_command(),
    }
    for name, command in checks.items():
        (LOGS / f"{name}.log").unlink(missing_ok=True)
        start = time.monotonic()
        status = run_logged(name, command, tool_env())
        summary.add("check", name, time.monotonic() - start, status, int(status == 0), int(status != 0))


def sphinx_command() -> list[str | Path]:
    """Returns the command that builds the documentation into ``build/docs``."""
    return [PYTHON, "-m", "sphinx", "-W", "--keep-going", "-q", "-j", str(os.cpu_count() or 1), "docs", BUILD / "docs"]
