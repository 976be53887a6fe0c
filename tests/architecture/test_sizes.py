"""Files and functions stay small enough to read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from planted import Plant, assert_none

FILE_LINES = 500
FUNCTION_LINES = 70
FOLDERS = ("include", "native", "oga", "tests", "tools", "docs")
SUFFIXES = {".h", ".hpp", ".c", ".cpp", ".py"}
GENERATED = {"cdef.py", "_ffi.py"}
NOISE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9a-fA-F])\'(?:\\.|[^\'\\\n])*\'', re.DOTALL
)
OPENS_SCOPE = re.compile(r"\bnamespace\b|\bextern\s*$|\b(?:class|struct|union|enum)\b[^()=]*$")


def sources(root: Path) -> Iterator[Path]:
    """Yields the hand-written source files."""
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SUFFIXES and path.name not in GENERATED and "_build" not in path.parts:
                yield path


def cpp_functions(text: str) -> Iterator[tuple[int, int]]:
    """Yields the first line and the number of lines of each function body at namespace or class level."""
    code = NOISE.sub(lambda match: "\n" * match[0].count("\n"), text)
    code = re.sub(r"^[ \t]*#.*(?:\\\n.*)*", "", code, flags=re.MULTILINE)
    line = first = 1
    head = ""
    depth_in_function = 0
    for character in code:
        if character == "\n":
            line += 1
        if depth_in_function:
            depth_in_function += (character == "{") - (character == "}")
            if depth_in_function == 0:
                yield first, line - first + 1
                head = ""
        elif character == "{" and not OPENS_SCOPE.search(head) and "(" in head:
            first = line - head.lstrip().count("\n")
            depth_in_function = 1
        else:
            head = "" if character in "{};" else head + character


def python_functions(text: str) -> Iterator[tuple[int, int]]:
    """Yields the first line and the number of lines of each function."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1


def violations(root: Path) -> list[str]:
    """Returns one sentence for each file and function that is too long."""
    found = []
    for path in sources(root):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(root)
        if (count := len(text.splitlines())) > FILE_LINES:
            found.append(f"{name} has {count} lines, the limit is {FILE_LINES}: split it by responsibility")
        functions = python_functions(text) if path.suffix == ".py" else cpp_functions(text)
        found += [
            f"{name}:{first} is a function of {count} lines, the limit is {FUNCTION_LINES}: move a named step out of it"
            for first, count in functions
            if count > FUNCTION_LINES
        ]
    return found


def test_files_and_functions_are_within_their_limits(root: Path) -> None:
    assert_none(violations(root))


def test_a_long_file_is_caught(plant: Plant) -> None:
    assert violations(plant({"oga/big.py": "x = 1\n" * (FILE_LINES + 1)})) == [
        "oga/big.py has 501 lines, the limit is 500: split it by responsibility"
    ]


def test_a_long_cpp_function_is_caught_and_its_class_is_not(plant: Plant) -> None:
    body = "  int x = 0;  // }\n" * (FUNCTION_LINES + 1)
    short = "  int a = 0;\n" * FUNCTION_LINES
    text = (
        f"namespace oga {{\nclass A {{\n{short}\n  void F() {{ char c = '{{'; }}\n}};\nvoid G(int a) {{\n{body}}}\n}}\n"
    )
    found = violations(plant({"native/base/a.cpp": text}))
    assert len(found) == 1
    assert "native/base/a.cpp:76 is a function of 73 lines" in found[0]


def test_a_long_python_function_is_caught(plant: Plant) -> None:
    text = "def f():\n" + "    x = 1\n" * FUNCTION_LINES
    assert "oga/a.py:1 is a function of 71 lines" in violations(plant({"oga/a.py": text}))[0]
