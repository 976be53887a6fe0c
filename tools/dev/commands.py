"""The commands behind the Makefile."""

from __future__ import annotations

import argparse
import subprocess
import sys

import builds
import environment
import suites
from steps import BUILD, ROOT, StepFailedError, must_run

PROMPTS = [
    "What is the capital of France?",
    "Name three primary colors.",
    "Write one sentence about the sea.",
    "Why is the sky blue?",
]


def prepare(*extras: str, native_tests: bool = False) -> None:
    """Sets up everything a command needs: system packages, ``.venv``, packages of ``extras``."""
    wanted = environment.compiler_packages()
    if native_tests:
        wanted |= environment.test_packages()
    environment.ensure_system_packages(wanted)
    environment.ensure_venv()
    environment.install_packages("-".join(extras), ", ".join(extras), environment.requirements(*extras))


def command_build(_: argparse.Namespace) -> int:
    """Builds the wheel and installs it into ``.venv``."""
    prepare("cpu", "cli", "export")
    builds.build_wheel()
    return 0


def command_run(_: argparse.Namespace) -> int:
    """Fetches a small model once and lets it answer several prompts together."""
    prepare("cpu", "cli", "export")
    builds.build_wheel()
    oga = environment.VENV / "bin" / "oga"
    return subprocess.run([oga, "run", "smollm2", "--max-tokens", "96", *PROMPTS], cwd=ROOT, check=False).returncode


def command_test(arguments: argparse.Namespace) -> int:
    """Runs every test, or the suites named by ``--only``."""
    only = set(arguments.only.split(",")) if arguments.only else set()
    summary = suites.Summary()
    prepare("dev", native_tests=True)
    if not only or "architecture" in only:
        suites.run_architecture(summary)
    if only != {"architecture"}:
        builds.build_wheel()
        if not only or "cpp" in only:
            builds.build_sanitized_tests()
            builds.build_release_tests()
        suites.run_tests(summary, only)
    return summary.close()


def command_check(_: argparse.Namespace) -> int:
    """Checks formatting, lint, types, import layers and documentation."""
    summary = suites.Summary()
    prepare("dev", "docs", native_tests=True)
    builds.build_wheel()
    suites.run_checks(summary)
    return summary.close()


def command_docs(_: argparse.Namespace) -> int:
    """Builds the documentation."""
    prepare("cpu", "cli", "server", "export", "docs")
    builds.build_wheel()
    must_run("docs", suites.sphinx_command())
    print(f"Documentation: {(BUILD / 'docs' / 'index.html').relative_to(ROOT)}")
    return 0


def command_bench(arguments: argparse.Namespace) -> int:
    """Measures a step without a model, the kernels, and the engine with the small model of ``make run``."""
    prepare("cpu", "cli", "export", "grammar", native_tests=True)
    builds.build_wheel()
    builds.build_release_tests()
    status = subprocess.run([builds.SIMULATION / "step_overhead"], cwd=ROOT, check=False).returncode
    command = [environment.PYTHON, ROOT / "tools" / "bench.py", "--programs", builds.RELEASE / "tests"]
    command += ["--save", BUILD / "bench.json", "--plot", BUILD / "bench.svg", *arguments.rest]
    return status or subprocess.run(command, cwd=ROOT, check=False).returncode


def command_compare(arguments: argparse.Namespace) -> int:
    """Runs the workloads of docs/guide/speed.md on oga, or on oga and other engines, interleaved."""
    prepare("cpu", "cli", "export")
    builds.build_wheel()
    command = [environment.PYTHON, ROOT / "tools" / "bench" / "compare.py", *arguments.rest]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def command_peers(arguments: argparse.Namespace) -> int:
    """Sets up other engines, each in an environment of its own, for the command compare."""
    prepare("cpu", "cli", "export")
    builds.build_wheel()
    command = [environment.PYTHON, ROOT / "tools" / "bench" / "peers.py", *arguments.rest]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def command_guided(arguments: argparse.Namespace) -> int:
    """Lets the small model of ``make run`` answer in the form of many JSON schemas, and checks every answer."""
    prepare("dev")
    builds.build_wheel()
    command = [environment.PYTHON, ROOT / "tools" / "guided.py", *arguments.rest]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def command_simulate(arguments: argparse.Namespace) -> int:
    """Runs the simulator: seeded worlds with faults at every named point."""
    prepare("cpu", "cli", "export", native_tests=True)
    builds.build_wheel()
    builds.build_release_tests()
    return subprocess.run([builds.SIMULATION / "simulate", *arguments.rest], cwd=ROOT, check=False).returncode


def command_soak(arguments: argparse.Namespace) -> int:
    """Lets clients come, read and leave for minutes, and looks for what stays behind."""
    prepare("cpu", "cli", "server", "export", "dev")
    builds.build_wheel()
    command = [environment.PYTHON, ROOT / "tools" / "soak.py", *arguments.rest]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def main() -> int:
    """Runs the command named on the command line."""
    commands = {
        "run": command_run,
        "test": command_test,
        "check": command_check,
        "docs": command_docs,
        "bench": command_bench,
        "compare": command_compare,
        "peers": command_peers,
        "guided": command_guided,
        "simulate": command_simulate,
        "soak": command_soak,
        "build": command_build,
    }
    parser = argparse.ArgumentParser(prog="tools/dev", description=__doc__)
    subparsers = parser.add_subparsers(dest="command", required=True)
    for name, function in commands.items():
        subparser = subparsers.add_parser(name, help=(function.__doc__ or "").strip())
        subparser.add_argument("--only", default="", help="suites: architecture,cpp,python,packaging")
        subparser.add_argument("rest", nargs="*", help="arguments of the program that runs (after --)")
    arguments = parser.parse_args()
    try:
        return commands[arguments.command](arguments)
    except StepFailedError as failure:
        print(f"\n{failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
