"""The package as a whole: names, laziness, types, version, import cost."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import oga

ROOT = Path(__file__).resolve().parents[2]


def test_every_public_name_is_there_and_documented() -> None:
    for name in oga.__all__:
        value = getattr(oga, name)
        assert name.startswith("__") or value.__doc__, name
    assert set(oga.__all__) <= set(dir(oga))


def test_every_module_exports_what_it_says() -> None:
    for name in oga.__all__:
        if not name.startswith("__"):
            assert name in importlib.import_module(getattr(oga, name).__module__).__all__


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Generator'"):
        oga.Generator  # noqa: B018


def test_the_version_is_that_of_the_project() -> None:
    found = re.search(r"project\(oga VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    assert found
    assert oga.__version__ == found[1]


def test_importing_oga_loads_neither_numpy_nor_the_library() -> None:
    script = "import sys, oga; print(sorted({'numpy', 'cffi', '_cffi_backend', 'rich', 'typer'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout.strip(), done.stderr) == ("[]", "")


def test_enums_need_no_library(tmp_path: Path) -> None:
    script = "import oga; print(oga.EngineEventFlags.TOKEN.value, oga.StatusCode.NOT_FOUND.value)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={"OGA_LIBRARY": str(tmp_path / "absent"), "PYTHONPATH": ":".join(sys.path)},
    )
    assert (done.stdout, done.stderr) == ("1 3\n", "")


def test_the_package_is_typed() -> None:
    assert (Path(oga.__file__).parent / "py.typed").is_file()
