"""Whatever is derived from the table of sampling options is up to date, and what is written by hand agrees with it."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from planted import Plant, assert_none

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
    for path in (HEADER, gen_sampling.PYTHON, gen_sampling.SCHEMA, gen_sampling.PAGE):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / path, tmp_path / path)
    return tmp_path


def test_what_is_generated_is_up_to_date(gen_sampling: ModuleType, root: Path) -> None:
    assert gen_sampling.out_of_date(root) == [], "run `python tools/gen_sampling.py` and commit what it writes"


def test_a_changed_row_is_caught(gen_sampling: ModuleType, copy: Path) -> None:
    header = copy / HEADER
    text = header.read_text(encoding="utf-8")
    header.write_text(text.replace("X(MinP, min_p, float, 0,", "X(MinP, min_q, float, 0,"), encoding="utf-8")
    assert [path.name for path in gen_sampling.out_of_date(copy)] == ["sampling_table.py", "sampler.py", "sampling.rst"]


def test_a_changed_bound_is_caught(gen_sampling: ModuleType, copy: Path) -> None:
    header = copy / HEADER
    text = header.read_text(encoding="utf-8")
    header.write_text(text.replace("kWithinTwo{-2, 2}", "kWithinTwo{-2, 3}"), encoding="utf-8")
    assert [path.name for path in gen_sampling.out_of_date(copy)] == ["sampler.py", "sampling.rst"]


def test_every_row_is_read_whole(gen_sampling: ModuleType, root: Path) -> None:
    text = (root / HEADER).read_text(encoding="utf-8")
    table = gen_sampling.options(text)
    assert len(table) == text.count("  X(")
    for option in table:
        assert option.setter.lower() == option.name.replace("_", "")
        assert option.stage in gen_sampling.STAGES
        assert isinstance(option.range, gen_sampling.Range)
        assert isinstance(option.served, gen_sampling.Range)
        assert option.doc.endswith(".")


def test_a_row_with_commas_and_two_strings_is_split_where_it_should(gen_sampling: ModuleType) -> None:
    row = 'Name, name, float, 0, 0, 0, kCount, kRun, kTurn, kTurnOnly, "a, b", "one, " "two."'
    columns = gen_sampling.columns(row)
    assert columns[-2:] == ["a, b", "one, two."]
    assert len(columns) == 12


def test_a_range_is_read_with_its_limits_and_written_for_people(gen_sampling: ModuleType, root: Path) -> None:
    ranges = gen_sampling.ranges((root / HEADER).read_text(encoding="utf-8"))
    texts = {name: each.text() for name, each in ranges.items()}
    assert texts["kAnyReal"] == "finite"
    assert (texts["kNotNegative"], texts["kPositive"], texts["kCountFromOne"]) == (">= 0", "> 0", ">= 1")
    assert (texts["kFraction"], texts["kPositiveUpToHundred"]) == ("0 to 1", "above 0 to 100")
    assert (ranges["kCount"].high, ranges["kAnyReal"].low) == (2**31 - 1, -gen_sampling.LIMITS["kLargestReal"])


# What a new row must be enough for, besides C++. No native library is needed to ask.
NEW_ROW = """  X(TopA, top_a, float, 0, 0, 0, kNotNegative, kUpToHundred, kWarper, kModelAndTurn, "0 is off", "New.") \\
  X(NewCount, new_count, int32_t, 0, 0, 0, kCount, kRun, kProcessor, kModelAndTurn, "0 is off", "Is new too.") \\
"""
ASK = """
import inspect, json
from oga._native.sampling_table import ScalarOptions
from oga.cli.chat_settings import KNOWN
from oga.cli.generation import with_sampling_options
from oga.server import page, sampling
from oga.server.schemas.chat import ChatRequest
from oga.server.schemas.completions import CompletionRequest
from oga.stream import Generation, turn_settings
from oga.turn_options import _SETTERS
import asyncio

def command(*, sampling): ...

body = ChatRequest.model_validate(
    {"messages": [{"role": "user", "content": "x"}], "top_a": 0.5, "new_count": 3}
)
parameters = inspect.signature(with_sampling_options(command)).parameters
schemas = [kind.model_json_schema()["properties"] for kind in (ChatRequest, CompletionRequest)]
print(json.dumps({
    "keywords": [name for name in ("top_a", "new_count") if name in ScalarOptions.__annotations__],
    "setters": [name for name in ("top_a", "new_count") if name in _SETTERS],
    "streams": turn_settings({"top_a": 0.5}),
    "flags": [name for name in ("top_a", "new_count") if name in parameters],
    "settings": [name for name in ("top_a", "new_count") if name in KNOWN],
    "served": sampling.options(body, None),
    "schemas": [[schema[name]["anyOf"][0] for name in ("top_a", "new_count")] for schema in schemas],
    "page": asyncio.run(page.index()).body.decode(),
}))
"""


def test_a_row_is_all_that_a_new_option_needs(gen_sampling: ModuleType, root: Path, tmp_path: Path) -> None:
    shutil.copytree(root / "oga", tmp_path / "oga", ignore=shutil.ignore_patterns("__pycache__", "lib"))
    for path in (HEADER, gen_sampling.PAGE):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(root / path, tmp_path / path)
    header = tmp_path / HEADER
    text = header.read_text(encoding="utf-8")
    header.write_text(text.replace("  X(MinP, ", NEW_ROW + "  X(MinP, "), encoding="utf-8")
    for path, generated in gen_sampling.generate(tmp_path).items():
        path.write_text(generated, encoding="utf-8")
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    asked = subprocess.run([sys.executable, "-c", ASK], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert asked.returncode == 0, asked.stderr
    found = json.loads(asked.stdout)
    both = ["top_a", "new_count"]
    assert found["keywords"] == found["setters"] == found["flags"] == found["settings"] == both
    assert found["streams"]["do_sample"] is True, "a new warper turns sampling on"
    assert found["served"] == {"top_a": 0.5, "new_count": 3}
    bounds = [{"type": "number", "minimum": 0, "maximum": 100}, {"type": "integer", "minimum": 0, "maximum": 65536}]
    assert found["schemas"] == [bounds, bounds]
    assert '<input name="top_a" type="number" min="0" max="100" step="0.01"' in found["page"]
    assert '<input name="new_count" type="number" min="0" max="65536" step="1"' in found["page"]
    page = (tmp_path / gen_sampling.PAGE).read_text(encoding="utf-8")
    assert "   * - ``top_a``\n     - 0\n     - >= 0\n     - 0 to 100\n     - New. 0 is off.\n" in page


# Files that may name many options, and why.
LISTS = {
    "oga/_native/cdef.py": "generated",
    "oga/_native/sampling_table.py": "generated",
    "oga/server/schemas/sampler.py": "generated",
    "oga/turn_options.py": "the typed setters of the C API, which came before the setters by name",
}
MOST_NAMES = 4
KINDS = (".py", ".js", ".html")


def hand_kept_lists(root: Path, names: list[str], allowed: dict[str, str] = LISTS) -> list[str]:
    """Returns the files of the package that name so many options that they are a list kept by hand."""
    found = []
    for path in sorted((root / "oga").rglob("*")):
        place = path.relative_to(root).as_posix()
        if path.suffix not in KINDS or place in allowed:
            continue
        words = set(re.findall(r"\w+", path.read_text(encoding="utf-8")))
        if len(named := [name for name in names if name in words]) > MOST_NAMES:
            found.append(
                f"{place} names {len(named)} options of the sampling table ({', '.join(named)}): read them from "
                "oga/_native/sampling_table.py or oga/server/schemas/sampler.py"
            )
    return found


def scalar_names(gen_sampling: ModuleType, root: Path) -> list[str]:
    """The options that everything has a field, a flag or a keyword for."""
    table = gen_sampling.options((root / HEADER).read_text(encoding="utf-8"))
    return [option.name for option in table if option.is_served]


def test_no_file_keeps_a_list_of_options_by_hand(gen_sampling: ModuleType, root: Path) -> None:
    assert_none(hand_kept_lists(root, scalar_names(gen_sampling, root)))
    assert all((root / place).is_file() for place in LISTS)


def test_a_list_of_options_kept_by_hand_is_caught(gen_sampling: ModuleType, root: Path, plant: Plant) -> None:
    names = scalar_names(gen_sampling, root)
    tree = plant({"oga/server/static/chat.js": "const SETTINGS = " + json.dumps(names[4:10]), "oga/few.py": names[4]})
    found = hand_kept_lists(tree, names)
    assert len(found) == 1
    assert found[0].startswith("oga/server/static/chat.js names 6 options")


@pytest.mark.parametrize(
    ("name", "header", "constant"),
    [
        ("MAX_STOP_STRINGS", "native/text/stop_strings.h", "kMaxStrings"),
        ("MAX_LOGPROBS", "native/step/sampling.h", "kMaxTop"),
    ],
)
def test_limits_of_lists_in_requests_are_the_library_s(root: Path, name: str, header: str, constant: str) -> None:
    limit = re.search(rf"\b{constant} = (\d+);", (root / header).read_text(encoding="utf-8"))
    held = re.search(
        rf"^{name} = (\d+)$", (root / "oga/server/schemas/common.py").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert limit
    assert held
    assert held[1] == limit[1], f"{name} of the server is {held[1]}, but {header} has {constant} = {limit[1]}"
