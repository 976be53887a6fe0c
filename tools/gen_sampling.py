"""Derives from the table of sampling options what is not C++: keywords of Python, fields of requests, documentation.

The table is OGA_SAMPLING_OPTIONS in ``native/step/sampling_table.h``. Written from it:

- ``oga/_native/sampling_table.py``: the typed keywords, their kinds, what they do, and the warpers among them with
  the values that turn them off; the flags of the command line are read from it;
- ``oga/server/schemas/sampler.py``: the fields of requests with their bounds, from which the settings of the chat page
  are read;
- ``docs/reference/sampling.rst``, between its two marks: the table as documentation.

All are committed. ``python tools/gen_sampling.py`` rewrites them; ``--check`` only fails when they are out of date.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = Path("native", "step", "sampling_table.h")
PYTHON = Path("oga", "_native", "sampling_table.py")
SCHEMA = Path("oga", "server", "schemas", "sampler.py")
PAGE = Path("docs", "reference", "sampling.rst")
BEGIN, END = ".. begin of the generated table\n", ".. end of the generated table\n"

PYTHON_TYPES = {"bool": "bool", "float": "float", "int32_t": "int", "uint64_t": "int"}
LIMITS = {
    "kLargestReal": 3.4028234663852886e38,
    "std::numeric_limits<int32_t>::max()": 2**31 - 1,
}
STAGES = {
    "kTurn": "When the turn ends",
    "kMode": "Whether it samples",
    "kProcessor": "Processors: change the logits, of greedy turns too",
    "kWarper": "Warpers: shape the distribution that is drawn from; refused on a greedy turn",
}


@dataclasses.dataclass(frozen=True)
class Range:
    """A range of the header."""

    low: float
    high: float
    is_low_excluded: bool

    @property
    def is_open(self) -> bool:
        """Whether only the type bounds it above."""
        return self.high >= min(LIMITS.values())

    def text(self) -> str:
        """The range for people."""
        if self.low <= -LIMITS["kLargestReal"]:
            return "finite"
        if self.is_open:
            return f"{'>' if self.is_low_excluded else '>='} {self.low:g}"
        return f"{'above ' if self.is_low_excluded else ''}{self.low:g} to {self.high:g}"


@dataclasses.dataclass(frozen=True)
class Option:
    """One row of the table, each column as it is written there, and its ranges."""

    setter: str
    name: str
    type: str
    default: str
    also_off: str
    off: str
    range: Range
    served: Range
    stage: str
    source: str
    note: str
    doc: str

    @property
    def is_served(self) -> bool:
        """Whether requests have a field of this name."""
        return self.served.low <= self.served.high

    @property
    def legal(self) -> str:
        """The legal range for people."""
        return "true, false" if self.type == "bool" else self.range.text()

    def described(self, allowed: Range) -> str:
        """What the option does, and what its numbers mean in the range that is allowed."""
        if self.type == "bool":
            return self.doc
        return f"{self.doc} [{'; '.join(filter(None, (allowed.text(), self.note)))}]"


def ranges(header: str) -> dict[str, Range]:
    """Reads the named ranges out of the text of the header."""
    found = {}
    for name, text in re.findall(r"inline constexpr OptionRange (\w+)\{([^}]*)\};", header):
        low, high, *excluded = (re.sub(r"/\*.*\*/", "", part).strip() for part in text.split(","))
        found[name] = Range(number(low), number(high), excluded == ["true"])
    return found


def number(text: str) -> float:
    """The value of a bound; integers stay integers."""
    sign, text = (-1, text[1:]) if text.startswith("-") else (1, text)
    value = LIMITS[text] if text in LIMITS else float(text)
    return sign * (int(value) if value == int(value) and abs(value) < 2**63 else value)


def options(header: str) -> list[Option]:
    """Reads the rows out of the text of the header."""
    named = ranges(header)
    body = header[header.index("#define OGA_SAMPLING_OPTIONS(X)") :].replace("\\\n", " ")
    body = body[: body.index("\n")]
    rows = re.findall(r'X\(((?:[^()"]|"(?:[^"\\]|\\.)*")*)\)', body[body.index(")") + 1 :])
    return [Option(*(named.get(column, column) for column in columns(row))) for row in rows]  # type: ignore[arg-type]


def columns(row: str) -> list[str]:
    """Splits a row at the commas outside strings, and joins the strings that stand side by side."""
    pieces = re.findall(r'(?:"(?:[^"\\]|\\.)*"\s*)+|[^,"]+', row)
    found = []
    for piece in (piece.strip() for piece in pieces):
        if piece.startswith('"'):
            found.append("".join(re.findall(r'"((?:[^"\\]|\\.)*)"', piece)))
        elif piece:
            found.append(piece)
    return found


def python_text(table: list[Option]) -> str:
    """The module with the typed keywords."""
    lines = [
        '"""The scalar options of a turn. Generated by tools/gen_sampling.py from native/step/sampling_table.h."""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import TypedDict",
        "",
        '__all__ = ["DESCRIPTIONS", "INTEGERS", "NUMBERS", "OFF", "WARPERS", "ScalarOptions"]',
        "",
        "",
        "class ScalarOptions(TypedDict, total=False):",
        '    """Keywords that turns and streams share; None leaves one unset."""',
        "",
    ]
    shared = [option for option in table if not option.name.endswith("_generated_tokens")]
    for option in shared:
        lines.append(f"    {option.name}: {PYTHON_TYPES[option.type]} | None")
    integers = [option.name for option in shared if PYTHON_TYPES[option.type] == "int"]
    numbers = [option.name for option in shared if PYTHON_TYPES[option.type] == "float"]
    warpers = [option.name for option in shared if option.stage == "kWarper"]
    lines += ["", ""]
    for name, members in (("INTEGERS", integers), ("NUMBERS", numbers), ("WARPERS", warpers)):
        lines += [f"{name} = (", *(f'    "{member}",' for member in members), ")"]
    lines.append("OFF: dict[str, tuple[float, float]] = {")
    lines += [f'    "{each.name}": ({each.off}, {each.also_off}),' for each in shared if each.name in warpers]
    lines += ["}", '"""The values at which a warper does nothing; for temperature and top_k one of them is greedy."""']
    lines.append("DESCRIPTIONS = {")
    for option in shared:
        lines += text_lines(f'    "{option.name}": ', option.described(option.range))
    return "\n".join([*lines, "}", ""])


def text_lines(head: str, text: str) -> list[str]:
    """A text behind ``head``, in lines of at most 120 columns."""
    line = f"{head}{json.dumps(text)},"
    if len(line) <= 120:
        return [line]
    indent = " " * (len(head) - len(head.lstrip()))
    pieces = textwrap.wrap(text, 112 - len(indent), drop_whitespace=False)
    return [f"{head}(", *(f"{indent}    {json.dumps(piece)}" for piece in pieces), f"{indent}),"]


def schema_text(table: list[Option]) -> str:
    """The module with the fields of requests."""
    lines = [
        '"""The sampler fields of requests. Generated by tools/gen_sampling.py from native/step/sampling_table.h."""',
        "",
        "from __future__ import annotations",
        "",
        "from pydantic import Field",
        "",
        "from oga.server.schemas.strict import Ignored",
        "",
        "",
        "class SamplerFields(Ignored):",
        '    """One field for each option that requests may have."""',
        "",
    ]
    for option in (option for option in table if option.is_served):
        arguments = ["None"]
        if option.type != "bool":
            low = "gt" if option.served.is_low_excluded else "ge"
            arguments += [f"{low}={option.served.low}", f"le={option.served.high}"]
        lines += [f"    {option.name}: {PYTHON_TYPES[option.type]} | None = Field("]
        lines += [f"        {argument}," for argument in arguments]
        lines += text_lines("        description=", option.described(option.served))
        lines.append("    )")
    return "\n".join([*lines, ""])


def page_text(table: list[Option]) -> str:
    """The generated part of the reference page: one table for each stage."""
    lines = []
    for stage, title in STAGES.items():
        lines += ["", title, "-" * len(title), ""]
        lines += [".. list-table::", "   :header-rows: 1", "   :widths: 22 10 14 14 40", ""]
        lines += ["   * - option", "     - default", "     - legal", "     - in a request", "     - what it does"]
        for option in (option for option in table if option.stage == stage):
            served = option.legal if option.served == option.range else option.served.text()
            note = f" {option.note[0].upper()}{option.note[1:]}." if option.note else ""
            only = " Not a key of the model's ``search``." if option.source == "kTurnOnly" else ""
            doc = re.sub(r"\b(dry_\w+ \* .* - dry_allowed_length\))", r"``\1``", option.doc)
            doc = re.sub(r"(?<!`)`(\w+)`(?!`)", r"``\1``", doc)
            lines += [
                f"   * - ``{option.name}``",
                f"     - {option.default}",
                f"     - {option.legal}",
                f"     - {served if option.is_served else 'no field'}",
                f"     - {doc}{note}{only}",
            ]
    return "\n".join([*lines, "", ""])


def generate(root: Path) -> dict[Path, str]:
    """Returns what each generated file must contain, by path."""
    table = options((root / TABLE).read_text(encoding="utf-8"))
    page = (root / PAGE).read_text(encoding="utf-8")
    head, rest = page.split(BEGIN)
    _, tail = rest.split(END)
    return {
        root / PYTHON: python_text(table),
        root / SCHEMA: schema_text(table),
        root / PAGE: head + BEGIN + page_text(table) + END + tail,
    }


def out_of_date(root: Path) -> list[Path]:
    """Returns the generated files that differ from what the table gives."""
    return [
        path for path, text in generate(root).items() if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]


def main() -> int:
    """Rewrites the generated files, or with ``--check`` reports the ones that are out of date."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a file is out of date")
    if parser.parse_args().check:
        stale = out_of_date(ROOT)
        for path in stale:
            print(f"{path.relative_to(ROOT)} is out of date; run `python tools/gen_sampling.py`", file=sys.stderr)
        return 1 if stale else 0
    for path, text in generate(ROOT).items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
