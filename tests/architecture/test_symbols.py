"""include/oga/symbols.txt is the ledger of the C API, and every function in it can be reached and read about."""

from __future__ import annotations

import re
from pathlib import Path

from planted import Plant, assert_none

DECLARATION = re.compile(r"OGA_EXPORT\b[^;{]*?\bOGA_API_CALL\s+(\w+)\s*\(", re.DOTALL)
DOCUMENTED = re.compile(r"\*/\s*OGA_EXPORT\b[^;{]*?\bOGA_API_CALL\s+(\w+)\s*\(", re.DOTALL)


def headers(root: Path) -> list[Path]:
    """Returns the public C headers."""
    return sorted((root / "include" / "oga").glob("*.h"))


# Functions that the Python layer does without, and why.
NOT_IN_PYTHON = {
    "OgaTokenizerDecode": "loses NUL characters; Python decodes by OgaTokenizerStreamDecodeTokens",
    "OgaTokenizerStreamDecode": "loses NUL characters; Python decodes by OgaTokenizerStreamDecodeTokens",
}

# Functions that the C++ headers do without, and why.
NOT_IN_CPP = {
    "OgaTokenizerStreamDecode": "loses NUL characters; C++ decodes by OgaTokenizerStreamDecodeTokens",
}


def declared(root: Path) -> dict[str, Path]:
    """Returns every public function and the header that declares it."""
    return {name: path for path in headers(root) for name in DECLARATION.findall(path.read_text(encoding="utf-8"))}


def version(text: str) -> tuple[int, ...]:
    """Turns "0.1" into a value that compares."""
    return tuple(int(part) for part in text.split("."))


def ledger_violations(root: Path) -> list[str]:
    """Returns where the ledger and the headers differ, and where the ledger breaks its own form."""
    project = re.search(r"project\(oga VERSION ([0-9]+\.[0-9]+)", (root / "CMakeLists.txt").read_text(encoding="utf-8"))
    assert project, "CMakeLists.txt no longer says project(oga VERSION x.y.z"
    lines = (root / "include" / "oga" / "symbols.txt").read_text(encoding="utf-8").splitlines()
    found = []
    since: dict[str, str] = {}
    for line in lines:
        match = re.fullmatch(r"(\w+) (\d+\.\d+)", line)
        if not match:
            found.append(f"symbols.txt: `{line}` must read `Name major.minor`, the version the function came with")
            continue
        since[match[1]] = match[2]
        if version(match[2]) > version(project[1]):
            found.append(f"symbols.txt: {match[1]} is since {match[2]}, but the project is {project[1]}")
    if lines != sorted(set(lines)):
        found.append("symbols.txt must be sorted and name each function once: LC_ALL=C sort -u")
    names = declared(root)
    found += [
        f"{name} is declared in {names[name].name}: add it to symbols.txt" for name in sorted(names.keys() - since)
    ]
    found += [
        f"symbols.txt has {name}, which no header declares: an ABI never loses one"
        for name in sorted(since.keys() - names)
    ]
    return found


def reach_violations(root: Path, exceptions: dict[str, str] = NOT_IN_PYTHON) -> list[str]:
    """Returns the public functions that the Python layer or the documentation leaves out, and needless exceptions."""
    python = "\n".join(
        path.read_text(encoding="utf-8")
        for path in sorted((root / "oga").rglob("*.py"))
        if path.name not in {"cdef.py", "_ffi.py"}
    )
    called = set(re.findall(r"\bOga\w+", python))
    found = [f"oga/ calls {name}: remove it from NOT_IN_PYTHON" for name in sorted(called & exceptions.keys())]
    for header in headers(root):
        text = header.read_text(encoding="utf-8")
        names = DECLARATION.findall(text)
        found += [
            f"oga/ never calls {name}: give the noun's Python class a method for it"
            for name in names
            if name not in called and name not in exceptions
        ]
        described = set(DOCUMENTED.findall(text))
        found += [
            f"{name} in {header.name} needs a /** comment */ right above it" for name in names if name not in described
        ]
        page = root / "docs" / "reference" / f"{header.stem}.rst"
        directive = f".. c:autodoc:: oga/{header.name}"
        if names and not (page.is_file() and directive in page.read_text(encoding="utf-8")):
            found.append(f"docs/reference/{header.stem}.rst must contain `{directive}`")
    return found


def cpp_violations(root: Path, exceptions: dict[str, str] = NOT_IN_CPP) -> list[str]:
    """Returns the functions of the ledger that no C++ header calls, and needless exceptions."""
    wrappers = sorted((root / "include" / "oga").glob("*.hpp"))
    called = {name for path in wrappers for name in re.findall(r"\bOga\w+", path.read_text(encoding="utf-8"))}
    ledger = (root / "include" / "oga" / "symbols.txt").read_text(encoding="utf-8").split()[::2]
    found = [
        f"no header of include/oga/*.hpp calls {name}: give the noun's C++ class a method for it, and test it in "
        "tests/capi/hpp_test.cpp"
        for name in ledger
        if name not in called and name not in exceptions
    ]
    found += [
        f"include/oga/*.hpp calls {name}: remove it from NOT_IN_CPP" for name in sorted(called & exceptions.keys())
    ]
    found += [
        f"symbols.txt has no {name}: remove it from NOT_IN_CPP" for name in sorted(exceptions.keys() - set(ledger))
    ]
    return found


def test_the_ledger_equals_the_headers(root: Path) -> None:
    assert_none(ledger_violations(root))


def test_every_function_is_reachable_from_python_and_documented(root: Path) -> None:
    assert_none(reach_violations(root))


def test_every_function_is_called_by_the_cpp_headers(root: Path) -> None:
    assert_none(cpp_violations(root))


HEADER = "/** Ends it. */\nOGA_EXPORT void OGA_API_CALL OgaDestroyThing(OgaThing* thing);\n"
TREE = {
    "CMakeLists.txt": "project(oga VERSION 0.2.0 LANGUAGES C)\n",
    "include/oga/thing.h": HEADER,
    "include/oga/symbols.txt": "OgaDestroyThing 0.1\n",
    "include/oga/oga.hpp": "class Thing : public Handle<OgaThing, OgaDestroyThing> {};\n",
    "oga/thing.py": "lib.OgaDestroyThing(pointer)\n",
    "docs/reference/thing.rst": ".. c:autodoc:: oga/thing.h\n",
}


def test_a_complete_tree_passes(plant: Plant) -> None:
    tree = plant(TREE)
    assert ledger_violations(tree) + reach_violations(tree) + cpp_violations(tree, {}) == []


def test_an_exception_that_is_not_needed_is_caught(plant: Plant) -> None:
    assert reach_violations(plant(TREE), {"OgaDestroyThing": "no reason"}) == [
        "oga/ calls OgaDestroyThing: remove it from NOT_IN_PYTHON"
    ]


def test_a_function_missing_from_the_ledger_is_caught(plant: Plant) -> None:
    tree = plant(TREE | {"include/oga/symbols.txt": ""})
    assert ledger_violations(tree) == ["OgaDestroyThing is declared in thing.h: add it to symbols.txt"]


def test_a_function_that_vanished_from_the_headers_is_caught(plant: Plant) -> None:
    tree = plant(TREE | {"include/oga/symbols.txt": "OgaDestroyThing 0.1\nOgaOldThing 0.1\n"})
    assert "OgaOldThing, which no header declares" in ledger_violations(tree)[0]


def test_a_version_of_the_future_and_disorder_are_caught(plant: Plant) -> None:
    tree = plant(TREE | {"include/oga/symbols.txt": "OgaDestroyThing 0.3\nA\n"})
    found = "\n".join(ledger_violations(tree))
    assert "since 0.3, but the project is 0.2" in found
    assert "`A` must read" in found
    assert "must be sorted" in found


def test_a_function_without_python_docs_or_comment_is_caught(plant: Plant) -> None:
    bare = HEADER.splitlines()[1] + "\n"
    tree = plant(TREE | {"include/oga/thing.h": bare, "oga/thing.py": "\n", "docs/reference/thing.rst": "Thing\n"})
    found = "\n".join(reach_violations(tree))
    assert "oga/ never calls OgaDestroyThing" in found
    assert "needs a /** comment */" in found
    assert "must contain `.. c:autodoc:: oga/thing.h`" in found


def test_a_function_that_no_cpp_header_calls_is_caught(plant: Plant) -> None:
    tree = plant(TREE | {"include/oga/oga.hpp": "class Thing {};\n"})
    assert "calls OgaDestroyThing: give the noun's C++ class a method" in cpp_violations(tree, {})[0]
    assert cpp_violations(tree, {"OgaDestroyThing": "a reason"}) == []


def test_an_exception_of_cpp_that_is_not_needed_is_caught(plant: Plant) -> None:
    assert cpp_violations(plant(TREE), {"OgaDestroyThing": "no reason", "OgaGone": "no reason"}) == [
        "include/oga/*.hpp calls OgaDestroyThing: remove it from NOT_IN_CPP",
        "symbols.txt has no OgaGone: remove it from NOT_IN_CPP",
    ]
