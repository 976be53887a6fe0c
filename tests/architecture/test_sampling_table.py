"""Whatever is derived from the table of sampling options is up to date, and what is written by hand agrees with it."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

HEADER = Path("native", "step", "sampling_table.h")


@pytest.fixture(scope="session")
def gen_sampling(root: Path) -> ModuleType:
    """tools/gen_sampling.py as a module."""
    spec = importlib.util.spec_from_file_location("gen_sampling", root / "tools" / "gen_sampling.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["gen_sampling"] = module  # its dataclass looks itself up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def copy(gen_sampling: ModuleType, root: Path, tmp_path: Path) -> Path:
    """A tree with the table and what is generated from it."""
    for path in (HEADER, gen_sampling.PYTHON, gen_sampling.PAGE):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / path, tmp_path / path)
    return tmp_path


def test_what_is_generated_is_up_to_date(gen_sampling: ModuleType, root: Path) -> None:
    assert gen_sampling.out_of_date(root) == [], "run `python tools/gen_sampling.py` and commit what it writes"


def test_a_changed_row_is_caught(gen_sampling: ModuleType, copy: Path) -> None:
    header = copy / HEADER
    text = header.read_text(encoding="utf-8")
    header.write_text(text.replace("X(MinP, min_p, float, 0,", "X(MinP, min_q, float, 0,"), encoding="utf-8")
    assert [path.name for path in gen_sampling.out_of_date(copy)] == ["sampling_table.py", "sampling.rst"]


def test_every_row_is_read_whole(gen_sampling: ModuleType, root: Path) -> None:
    text = (root / HEADER).read_text(encoding="utf-8")
    table = gen_sampling.options(text)
    assert len(table) == text.count("  X(")
    for option in table:
        assert option.setter.lower() == option.name.replace("_", "")
        assert option.stage in gen_sampling.STAGES
        assert option.range in gen_sampling.RANGES
        assert option.doc.endswith(".")


def test_a_row_with_commas_and_two_strings_is_split_where_it_should(gen_sampling: ModuleType) -> None:
    row = 'Name, name, float, 0, 0, 0, kCount, kTurn, kTurnOnly, "a, b", "one, " "two."'
    columns = gen_sampling.columns(row)
    assert columns[-2:] == ["a, b", "one, two."]
    assert len(columns) == 11
