"""The example programs of the tutorials do what the tutorials say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from terminals import environment

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"
TUTORIALS = EXAMPLES.parent / "tutorials"


def run(name: str, *arguments: Any) -> str:
    """What an example prints; it must succeed and complain of nothing."""
    done = subprocess.run(
        [sys.executable, EXAMPLES / name, *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=environment(),
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_every_example_has_a_tutorial_that_shows_it_whole() -> None:
    shown = {
        Path(name).name
        for page in TUTORIALS.glob("*.md")
        for name in re.findall(r"\{literalinclude\} \.\./examples/(\S+)", page.read_text(encoding="utf-8"))
    }
    assert {path.name for path in EXAMPLES.glob("*.py")} <= shown


def test_the_first_answer(tiny_folder: Path) -> None:
    lines = run("first_answer.py", tiny_folder, "the end").splitlines()
    assert re.fullmatch(r"[A-Z_]+: TurnUsage\(prompt_tokens=\d+, generated_tokens=\d+, .*\)", lines[-1])


def test_the_conversion_of_a_model(tmp_path: Path) -> None:
    from tiny_llama import write_tiny_llama

    printed = run("convert_a_model.py", write_tiny_llama(tmp_path / "source"), tmp_path / "models", "the end")
    sizes = dict(re.findall(r"^(fp32|int8): .* of a llama, ([\d,]+) bytes$", printed, re.MULTILINE))
    fp32, int8 = (int(sizes[precision].replace(",", "")) for precision in ("fp32", "int8"))
    assert int8 < fp32


def test_json_of_a_fixed_form(tmp_path: Path) -> None:
    from tiny_llama import write_tiny_llama

    from oga import export

    # A random model writes as much white space as a schema lets it.
    source = write_tiny_llama(tmp_path / "source", max_position_embeddings=1024)
    folder = export.convert(source, tmp_path / "model", precision="int8").folder
    printed = run("constrained_json.py", folder, "x")
    found = dict(line.split(": ", 1) for line in printed.splitlines())
    assert found["kind"] in ("city", "river", "person", "other")
    assert len(found["name"]) <= 24
    assert 0 <= int(found["confidence"]) <= 100


def test_a_long_conversation(long_folder: Path) -> None:
    printed = run("long_conversations.py", long_folder)
    assert len(re.findall(r"^  \d+ new tokens, the sequence has \d+$", printed, re.MULTILINE)) >= 5
    for question in ("My name is Ada.", "Greet me.", "In French.", "In Latin."):
        assert f"{question}  -> " in printed
    assert "the context is full" in printed
