"""A noun of the API has the same name in its header, boundary, Python module, tests and reference page."""

from __future__ import annotations

from pathlib import Path

from planted import Plant, assert_none

PLACES = {
    "boundary": "native/capi/{}_capi.cpp",
    "python": "oga/{}.py",
    "c test": "tests/capi/{}_test.cpp",
    "python test": "tests/python/test_{}.py",
    "reference": "docs/reference/{}.rst",
}
NOT_NOUNS = {
    "base": "handles and the calling convention only; no function",
    "oga": "the umbrella header",
}
# (noun, place): why it has no file of its own there.
EXCEPTIONS: dict[tuple[str, str], str] = {}


def violations(root: Path, exceptions: dict[tuple[str, str], str] = EXCEPTIONS) -> list[str]:
    """Returns one sentence for each place where a noun is missing, and for each exception that is not needed."""
    nouns = [path.stem for path in sorted((root / "include" / "oga").glob("*.h")) if path.stem not in NOT_NOUNS]
    found = []
    for noun in nouns:
        for place, pattern in PLACES.items():
            name = pattern.format(noun)
            present = (root / name).is_file()
            excused = (noun, place) in exceptions
            if not present and not excused:
                found.append(
                    f"include/oga/{noun}.h has no {name}: create it, or add ({noun!r}, {place!r}) with its reason to "
                    "EXCEPTIONS in tests/architecture/test_nouns.py"
                )
            if present and excused:
                found.append(f"{name} exists: remove ({noun!r}, {place!r}) from EXCEPTIONS")
    for path in sorted((root / "native" / "capi").glob("*_capi.cpp")):
        noun = path.name.removesuffix("_capi.cpp")
        if noun not in nouns:
            found.append(f"native/capi/{path.name} has no include/oga/{noun}.h: give both the same noun")
    return found


def test_every_noun_has_one_name_in_all_places(root: Path) -> None:
    assert_none(violations(root))


def whole(noun: str) -> dict[str, str]:
    """The files of a complete noun."""
    return {f"include/oga/{noun}.h": ""} | {pattern.format(noun): "" for pattern in PLACES.values()}


def test_a_missing_place_is_caught(plant: Plant) -> None:
    files = whole("thing")
    del files["tests/python/test_thing.py"]
    assert "include/oga/thing.h has no tests/python/test_thing.py" in violations(plant(files))[0]


def test_a_boundary_file_without_a_header_is_caught(plant: Plant) -> None:
    tree = plant(whole("thing") | {"native/capi/other_capi.cpp": ""})
    assert violations(tree) == ["native/capi/other_capi.cpp has no include/oga/other.h: give both the same noun"]


def test_an_exception_that_is_not_needed_is_caught(plant: Plant) -> None:
    assert "remove" in violations(plant(whole("thing")), {("thing", "python"): "none"})[0]


def test_a_complete_noun_passes(plant: Plant) -> None:
    assert violations(plant(whole("thing"))) == []
