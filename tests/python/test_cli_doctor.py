"""`oga doctor`: what it finds, what it advises, and when it fails."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import oga
from oga.cli.app import app
from oga.cli.machine import Machine, shown_bytes, threads

Doctor = Callable[..., tuple[int, dict[str, dict[str, Any]]]]


@pytest.fixture
def doctor() -> Doctor:
    """Runs the command: its exit code, and what it found by name."""

    def run(*arguments: Any, **environment: str) -> tuple[int, dict[str, dict[str, Any]]]:
        command = ["doctor", "--json", *map(str, arguments)]
        done = CliRunner().invoke(app, command, env=environment)
        report = json.loads(done.stdout)
        assert report["healthy"] is (done.exit_code == 0)
        return done.exit_code, {finding["name"]: finding for finding in report["findings"]}

    return run


def test_a_sound_installation_and_model_are_told(doctor: Doctor, tiny_folder: Path) -> None:
    code, found = doctor(tiny_folder)
    assert code == 0
    assert found["oga"]["value"] == oga.__version__
    assert found["onnxruntime"]["value"] == oga.get_ort_version()
    assert found["kernels use"]["value"] == oga.get_cpu_isa()
    assert "full requests" in found["cache"]["value"]
    assert found["longest request tokens"]["value"] == "256"
    assert found["chat template"]["level"] == "ok"
    assert re.fullmatch(r"gives token \d+", found["one step"]["value"])
    assert all(finding["advice"] is not None for finding in found.values() if finding["level"] != "ok")


def test_people_get_a_line_per_thing_and_one_for_what_to_do(tiny_folder: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_folder, folder)
    (folder / "tokenizer_config.json").unlink()
    done = CliRunner().invoke(app, ["doctor", str(folder)])
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.endswith(":")] == ["Installation:", "Machine:", "Model:"]
    place = next(number for number, line in enumerate(lines) if "tokenizer_config.json" in line)
    assert lines[place].split() == ["note", "tokenizer_config.json", "missing"]
    assert lines[place + 1].strip().startswith("-> Special tokens and the chat template may be unknown.")


@pytest.mark.parametrize(
    ("name", "value", "broken", "advice"),
    [
        ("OGA_NUM_THREADS", "many", "threads of a step", "unset it"),
        ("OGA_NUM_THREADS", "2000", "threads of a step", "unset it"),
    ],
)
def test_a_setting_that_stops_oga_is_a_problem(doctor: Doctor, name: str, value: str, broken: str, advice: str) -> None:
    code, found = doctor(**{name: value})
    assert code == 1
    assert found[broken]["level"] == "problem"
    assert advice in found[broken]["advice"]


def test_more_threads_than_processors_are_noted(doctor: Doctor) -> None:
    code, found = doctor(OGA_NUM_THREADS="1000")
    assert code == 0
    assert found["threads of a step"]["level"] == "note"


def test_a_missing_library_stops_everything(tmp_path: Path, tiny_folder: Path) -> None:
    from test_cli import oga_command

    done = oga_command("doctor", tiny_folder, "--json", env={"OGA_LIBRARY": str(tmp_path / "liboga.so")})
    assert done.returncode == 1
    found = {finding["name"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert found["liboga"]["level"] == "problem"
    assert str(tmp_path) in found["liboga"]["value"]
    assert found["loading"]["value"] == "not tried"


def test_a_wrong_instruction_set_is_a_problem() -> None:
    from test_cli import oga_command

    done = oga_command("doctor", "--json", env={"OGA_CPU_ISA": "abacus"})
    found = {finding["name"]: finding for finding in json.loads(done.stdout)["findings"]}
    assert done.returncode == 1
    assert (found["kernels use"]["level"], found["kernels use"]["advice"]) == ("problem", "unset OGA_CPU_ISA")


@pytest.mark.parametrize(
    ("spoil", "name", "level", "sentence"),
    [
        (lambda folder: shutil.rmtree(folder), "folder", "problem", "does not exist"),
        (lambda folder: (folder / "genai_config.json").unlink(), "genai_config.json", "problem", "missing"),
        (lambda folder: (folder / "genai_config.json").write_text("{"), "loading", "problem", "genai_config.json"),
        (lambda folder: (folder / "model.onnx").unlink(), "loading", "problem", "model.onnx"),
        (lambda folder: (folder / "model.onnx").write_bytes(b"no"), "loading", "problem", "model.onnx"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer.json", "note", "missing"),
    ],
)
def test_a_folder_that_is_spoilt_is_told(
    doctor: Doctor,
    tiny_folder: Path,
    tmp_path: Path,
    spoil: Callable[[Path], object],
    name: str,
    level: str,
    sentence: str,
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_folder, folder)
    spoil(folder)
    code, found = doctor(folder)
    assert code == (1 if level == "problem" else 0)
    assert found[name]["level"] == level
    assert sentence in found[name]["value"]


def test_a_cache_that_is_too_small_or_too_large_is_told(doctor: Doctor, tiny_folder: Path) -> None:
    def blocks(count: int) -> tuple[int, dict[str, dict[str, Any]]]:
        return doctor(tiny_folder, "--overlay", json.dumps({"engine": {"dynamic_batching": {"num_blocks": count}}}))

    code, found = blocks(4)
    assert (code, found["cache"]["level"]) == (0, "note")
    assert "num_blocks" in found["cache"]["advice"]
    code, found = blocks(1 << 30)
    assert (code, found["loading"]["level"]) == (1, "problem")
    assert "num_blocks" in found["loading"]["advice"]


def write(root: Path, **files: str) -> Machine:
    """A machine whose kernel says so; ``__`` in a name is a slash, ``_dot_`` a dot."""
    for name, content in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return Machine(root)


MEMINFO = "MemTotal: 4000 kB\nMemAvailable: 3000 kB\n"


def test_the_tightest_group_of_version_two_counts(tmp_path: Path) -> None:
    machine = write(
        tmp_path,
        proc__meminfo=MEMINFO,
        proc__self__cgroup="0::/outer/inner\n",
        proc__self__mountinfo="30 1 0:1 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        sys__fs__cgroup__outer__memory_dot_max="1000000",
        sys__fs__cgroup__outer__memory_dot_current="700000",
        sys__fs__cgroup__outer__memory_dot_stat="anon 5\ninactive_file 50000\n",
        sys__fs__cgroup__outer__inner__memory_dot_max="max",
        sys__fs__cgroup__outer__inner__memory_dot_current="700000",
        sys__fs__cgroup__outer__cpu_dot_max="50000 100000",
        sys__fs__cgroup__outer__inner__cpu_dot_max="max 100000",
    )
    available = machine.available_bytes()
    assert available is not None
    assert (available.value, available.source) == (350000, "/sys/fs/cgroup/outer/memory.max")
    quota = machine.processor_quota()
    assert quota is not None
    assert (quota.value, quota.source) == (0.5, "/sys/fs/cgroup/outer")
    assert threads(machine)[0] == 1


def test_groups_of_version_one_and_mounts_of_containers_count(tmp_path: Path) -> None:
    machine = write(
        tmp_path,
        proc__meminfo=MEMINFO,
        proc__self__cgroup="4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n",
        proc__self__mountinfo=(
            "30 1 0:1 /docker/abc /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
            "31 1 0:2 /docker/abc /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"
        ),
        sys__fs__cgroup__memory__memory_dot_limit_in_bytes="2000000",
        sys__fs__cgroup__memory__memory_dot_usage_in_bytes="1500000",
        sys__fs__cgroup__cpu__cpu_dot_cfs_quota_us="150000",
        sys__fs__cgroup__cpu__cpu_dot_cfs_period_us="100000",
    )
    available, quota = machine.available_bytes(), machine.processor_quota()
    assert available is not None
    assert quota is not None
    assert available.value == 500000
    assert quota.value == 1.5


def test_without_groups_the_machine_counts(tmp_path: Path) -> None:
    machine = write(tmp_path, proc__meminfo=MEMINFO, proc__cpuinfo="flags\t\t: fpu avx2 fma sse\n")
    available = machine.available_bytes()
    assert available is not None
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        assert available.value == 3000 * 1024
    assert machine.processor_quota() is None
    assert machine.instruction_sets() == ["avx2", "fma"]
    assert threads(machine)[0] == len(os.sched_getaffinity(0))


def test_sizes_are_shown_for_people() -> None:
    assert [shown_bytes(size) for size in (7, 2048, 3 << 20, 5 << 30)] == ["7 bytes", "2.0 KiB", "3.0 MiB", "5.0 GiB"]
