"""The library itself: versions, the ONNX Runtime it finds, shutdown, and what a broken installation says."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import oga
from oga._native.loader import library_path, onnxruntime_library


def run(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Runs a script in a fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "OGA_LIBRARY": str(library_path()), **environment},
    )


def test_versions() -> None:
    assert oga.get_api_version() == (0, 1)
    assert re.fullmatch(r"1\.\d+\.\d+\S* \(/.+\)", oga.get_ort_version())


def test_the_runtime_is_that_of_the_installed_package_and_the_package_is_not_imported() -> None:
    done = run("import sys, oga; print(oga.get_ort_version()); print('onnxruntime' in sys.modules)")
    assert done.stderr == ""
    version, imported = done.stdout.splitlines()
    assert str(onnxruntime_library()) in version
    assert imported == "False"


def test_the_environment_goes_before_the_installed_package(tmp_path: Path) -> None:
    installed = onnxruntime_library()
    assert installed is not None
    copy = shutil.copy(installed, tmp_path / "libonnxruntime-elsewhere.so")
    done = run("import oga; print(oga.get_ort_version())", OGA_ORT_LIBRARY=str(copy))
    assert f"({copy})" in done.stdout


@pytest.mark.parametrize("content", [None, b"", b"not a library"])
def test_a_runtime_that_cannot_be_loaded_is_named(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "libonnxruntime.so"
    if content is not None:
        path.write_bytes(content)
    script = "import oga\ntry: oga.get_ort_version()\nexcept oga.OgaError as error: print(error)"
    done = run(script, OGA_ORT_LIBRARY=str(path))
    assert str(path) in done.stdout
    assert done.returncode == 0


def test_a_runtime_in_use_cannot_be_changed(tmp_path: Path, model: oga.Model) -> None:
    with pytest.raises(oga.InvalidStateError):
        oga.set_ort_library(tmp_path / "other.so")


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(None, "does not exist"), (b"not a library", "cannot be loaded")],
)
def test_a_missing_or_broken_liboga_is_named(tmp_path: Path, content: bytes | None, sentence: str) -> None:
    path = tmp_path / "liboga.so"
    if content is not None:
        path.write_bytes(content)
    script = "import oga\ntry: oga.Model('x')\nexcept oga.OgaError as error: print(type(error).__name__, error)"
    done = run(script, OGA_LIBRARY=str(path))
    assert str(path) in done.stdout
    assert sentence in done.stdout
    assert "OGA_LIBRARY" in done.stdout


def test_a_library_that_is_not_liboga_is_refused() -> None:
    script = "import oga\ntry: oga.shutdown()\nexcept oga.OgaError as error: print(error)"
    done = run(script, OGA_LIBRARY=str(onnxruntime_library()))
    assert "is not a liboga" in done.stdout


def test_shutdown_is_harmless_at_any_time(tiny_folder: Path) -> None:
    script = f"""
import oga
oga.shutdown()
for _ in range(2):
    with oga.Model({str(tiny_folder)!r}) as model, oga.Engine(model) as engine:
        oga.shutdown()
        print(len(list(engine.stream([5, 6], max_new_tokens=3, min_new_tokens=3))))
    oga.shutdown()
    oga.shutdown()
"""
    done = run(script)
    assert (done.stdout.split(), done.stderr, done.returncode) == (["3", "3"], "", 0)


ENDINGS = {
    "module level": "",
    "exit in a loop": "import sys\nfor token in engine.stream([5, 6]): sys.exit(7)",
    "exception": "engine.stream([5, 6])\nraise SystemExit(3)",
    "cycle": "engine.me = engine; model.me = model",
    "os._exit": "import os\nos._exit(5)",
    "daemon thread": (
        "import threading, time\n"
        "def work():\n"
        "    with oga.Engine(model) as own:\n"
        "        while True: list(own.stream([5, 6], max_new_tokens=200))\n"
        "threading.Thread(target=work, daemon=True).start(); time.sleep(0.3)"
    ),
}


@pytest.mark.parametrize(("ending", "code"), list(zip(ENDINGS.values(), (0, 7, 3, 0, 5, 0), strict=True)), ids=ENDINGS)
def test_an_interpreter_that_ends_with_everything_open_ends_quietly(tiny_folder: Path, ending: str, code: int) -> None:
    script = f"import oga\nmodel = oga.Model({str(tiny_folder)!r})\nengine = oga.Engine(model)\n"
    script += "request = engine.create_request(); buffer = engine.create_event_buffer(4)\n" + ending
    done = run(script, PYTHONDEVMODE="1")
    assert (done.returncode, done.stderr) == (code, "")


def test_a_forked_child_cannot_use_the_parents_objects(tiny_folder: Path) -> None:
    script = f"""
import gc, os, sys, warnings
import oga
warnings.simplefilter("ignore")
model = oga.Model({str(tiny_folder)!r})
engine = oga.Engine(model)
before = list(engine.stream([5, 6], max_new_tokens=4))
child = os.fork()
if child == 0:
    try:
        engine.create_request()
    except oga.InvalidStateError as error:
        print("refused" if "parent process" in str(error) else error, flush=True)
    del engine, model
    gc.collect()
    os._exit(0)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(list(engine.stream([5, 6], max_new_tokens=4)) == before)
"""
    done = run(script)
    assert (done.stdout.split(), done.stderr) == (["refused", "0", "True"], "")


def test_the_headers_are_where_get_include_says() -> None:
    assert (Path(oga.get_include()) / "oga" / "oga.h").is_file()
    assert (Path(oga.get_include()) / "ort_genai_c.h").is_file()


def test_the_instruction_set_is_the_one_that_the_environment_names() -> None:
    script = "import oga\ntry: print(oga.get_cpu_isa())\nexcept oga.OgaError as error: print(error)"
    assert run(script, OGA_CPU_ISA="portable").stdout == "portable\n"
    assert run(script, OGA_CPU_ISA="").stdout == f"{oga.get_cpu_isa()}\n"
    assert "not one of: portable" in run(script, OGA_CPU_ISA="abacus").stdout
