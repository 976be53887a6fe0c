"""`oga run`: the options of generation act as the keywords of Python do, and what they give is shown and told."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import oga
from oga._native.sampling_table import INTEGERS, NUMBERS
from oga.cli.app import app

Invoke = Callable[..., Result]


@pytest.fixture
def invoke() -> Invoke:
    """Runs the command in this process."""
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_every_sampling_option_has_a_flag(invoke: Invoke, tiny_folder: Path) -> None:
    shown = invoke("run", "--help").stdout
    for name in (*INTEGERS, *NUMBERS, "ignore_eos"):
        assert f" --{name.replace('_', '-')} " in shown
    for name in (*INTEGERS, *NUMBERS):
        done = invoke("run", tiny_folder, "x", f"--{name.replace('_', '-')}", -1e6 if name in NUMBERS else -1)
        refused = name not in ("presence_penalty", "frequency_penalty")
        assert (done.exit_code == 1) == refused, name
        assert (name in done.stderr) == refused


def test_options_act_as_their_keywords_do(invoke: Invoke, engine: oga.Engine, tiny_folder: Path) -> None:
    def run(*options: Any) -> str:
        return invoke("run", tiny_folder, "the end", "--raw", "-n", 20, "--seed", 4, "-q", *options).stdout

    asked: list[tuple[tuple[Any, ...], Any]] = [
        (("--min-p", 0.2, "--temperature", 3), {"min_p": 0.2, "temperature": 3.0}),
        (("--frequency-penalty", 9, "--ignore-eos"), {"frequency_penalty": 9.0, "ignore_eos": True}),
        (("--min-tokens", 20), {"min_new_tokens": 20}),
        (("--no-repeat-ngram-size", 1, "--ignore-eos"), {"no_repeat_ngram_size": 1, "ignore_eos": True}),
    ]
    plain = "".join(engine.stream("the end", max_new_tokens=20, seed=4))
    for flags, keywords in asked:
        wanted = "".join(engine.stream("the end", max_new_tokens=20, seed=4, **keywords))
        assert wanted != plain
        assert run(*flags) == wanted + "\n"


def test_stop_texts_end_an_answer(invoke: Invoke, tiny_folder: Path) -> None:
    done = invoke("run", tiny_folder, "the end", "--regex", "abcdefgh", "--json", "--stop", "ef", "--stop", "cd")
    (entry,) = json.loads(done.stdout)["answers"]
    assert entry["text"] == "ab"
    assert (entry["finish_reason"], entry["stop_string_index"]) == ("stop_string", 1)


def test_answers_have_the_form_that_is_asked_for(invoke: Invoke, tiny_folder: Path, tmp_path: Path) -> None:
    schema, grammar = tmp_path / "schema.json", tmp_path / "list.lark"
    schema.write_text('{"enum": ["é", {"a": 1}]}', encoding="utf-8")
    grammar.write_text('start: "[" /[a-c]/ ("," /[a-c]/){1,2} "]"', encoding="utf-8")

    def run(*options: Any) -> str:
        done = invoke("run", tiny_folder, "x", "-n", 100, "-q", "--temperature", 2, "--seed", 1, *options)
        assert done.exit_code == 0, done.output
        return done.stdout.removesuffix("\n")

    assert json.loads(run("--json-schema", schema)) in ("é", {"a": 1})
    assert json.loads(run("--json-schema", '{"type": "integer", "minimum": 3, "maximum": 4}')) in (3, 4)
    assert re.fullmatch("[xy]{5}", run("--regex", "[xy]{5}"))
    assert re.fullmatch(r"\[[a-c](,[a-c]){1,2}\]", run("--grammar", grammar))
    assert run("--json-object").startswith("{")


def test_log_probabilities_are_shown_and_told(invoke: Invoke, engine: oga.Engine, tiny_folder: Path) -> None:
    asked = ("run", tiny_folder, "the end", "another", "--raw", "-n", 6, "--logprobs")
    stream = engine.stream("the end", max_new_tokens=6, logprobs=2)
    text = "".join(stream)
    answers = json.loads(invoke(*asked, 2, "--json").stdout, parse_constant=pytest.fail)["answers"]
    told = answers[0]["logprobs"]
    assert [entry["token"] for entry in told] == stream.token_ids
    assert b"".join(bytes(entry["bytes"]) for entry in told).decode("utf-8", "replace") == text
    for entry, wanted in zip(told, stream.logprobs, strict=True):
        assert (entry["logprob"], entry["rank"]) == (wanted.logprob, wanted.rank)
        assert [other["token"] for other in entry["top"]] == [other.token for other in wanted.alternatives]
    shown = invoke(*asked, 2).stdout.splitlines()
    assert sum("   of " in line for line in shown) == 2 * 6
    assert any(f"{stream.logprobs[0].logprob:9.4f} " in line for line in shown)
    alone = invoke(*asked, 0).stdout
    assert "   of " not in alone
    assert f"{stream.logprobs[0].logprob:9.4f} " in alone
    assert invoke(*asked, 2, "-q").stdout == invoke(*asked[:-1], "-q").stdout
