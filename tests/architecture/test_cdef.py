"""The committed cffi declarations are the ones the headers give."""

from __future__ import annotations

import importlib.util
import shutil
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def gen_cdef(root: Path) -> ModuleType:
    """tools/gen_cdef.py as a module."""
    spec = importlib.util.spec_from_file_location("gen_cdef", root / "tools" / "gen_cdef.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_declarations_are_up_to_date(gen_cdef: ModuleType, root: Path) -> None:
    assert gen_cdef.out_of_date(root) == [], "run `python tools/gen_cdef.py` and commit what it writes"


def test_a_changed_header_is_caught(gen_cdef: ModuleType, root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "include", tmp_path / "include")
    shutil.copytree(root / "oga" / "_native", tmp_path / "oga" / "_native")
    header = tmp_path / "include" / "oga" / "usage.h"
    text = header.read_text(encoding="utf-8")
    header.write_text(text.replace("uint64_t* out", "uint32_t* out", 1), encoding="utf-8")
    assert [path.name for path in gen_cdef.out_of_date(tmp_path)] == ["cdef.py", "_ffi.py"]


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("((OgaFinishReason)3)", 3),
        ("((uint32_t)((2u << 16) | 1u))", 131073),
        ("__attribute__((x))", None),
        ("0x1F", 31),
    ],
)
def test_macro_bodies_are_evaluated(gen_cdef: ModuleType, expression: str, value: int | None) -> None:
    assert gen_cdef.integer(expression) == value


def test_constants_reach_python(gen_cdef: ModuleType, root: Path) -> None:
    cdef = gen_cdef.cdef_text(root / "include")
    assert "#define OgaFinishReason_Failed 6" in cdef
    assert "#define OgaEngineEventFlag_Retryable 16" in cdef
    assert "OGA_EXPORT" not in cdef
