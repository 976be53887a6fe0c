"""Guided turns: the output has the form that was asked for, whole and streamed, and a wrong wish changes nothing."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from driving import Turn, Turns, finish, note

import oga
from oga._native.loader import library_path

ROOT = Path(__file__).resolve().parents[2]
PROMPT = "the form is"
SAMPLED: dict[str, Any] = {"max_new_tokens": 120, "temperature": 2.0, "top_k": 0}
PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 4}, "age": {"type": "integer", "minimum": 1, "maximum": 99}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
LIST = 'start: "[" item ("," item){1,3} "]"\nitem: /[a-c]{2}/ | "é" | "水"'
LIST_PATTERN = r"\[([a-c]{2}|é|水)(,([a-c]{2}|é|水)){1,3}\]"


def is_person(text: str) -> None:
    jsonschema.validate(json.loads(text), PERSON)


def is_object(text: str) -> None:
    assert isinstance(json.loads(text), dict)


def matches(pattern: str) -> Callable[[str], None]:
    def check(text: str) -> None:
        assert re.fullmatch(pattern, text), text

    return check


KINDS: dict[str, tuple[Any, Callable[[str], None]]] = {
    "schema as text": (("json_schema", json.dumps(PERSON)), is_person),
    "schema as mapping": (("json_schema", PERSON), is_person),
    "object": (("json_object", ""), is_object),
    "regex": (("regex", "[0-9]{3}-[a-f]+"), matches("[0-9]{3}-[a-f]+")),
    "lark_grammar": (("lark_grammar", LIST), matches(LIST_PATTERN)),
    "lark": (("lark", LIST), matches(LIST_PATTERN)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_finished_turn_has_the_form_and_is_streamed_as_it_is(engine: oga.Engine, kind: str) -> None:
    guidance, check = KINDS[kind]
    tokenizer = engine.model.tokenizer
    ends_soon = {tokenizer.to_token_id(end): 4.0 for end in "}]"}
    streams = [
        engine.stream(PROMPT, guidance=guidance, seed=seed, logit_bias=ends_soon, **SAMPLED) for seed in range(6)
    ]
    texts = ["".join(stream) for stream in streams]
    finished = [
        text for text, stream in zip(texts, streams, strict=True) if stream.finish_reason is oga.FinishReason.EOS
    ]
    assert len(finished) >= 3
    assert len(set(finished)) >= 2
    for text in finished:
        check(text)
    for text, stream in zip(texts, streams, strict=True):
        assert stream.usage is not None
        assert stream.usage.generated_tokens == len(stream.token_ids)
        assert tokenizer.decode(stream.token_ids) == text


def test_pieces_are_whole_characters(engine: oga.Engine) -> None:
    pieces = list(engine.stream(PROMPT, guidance=("regex", "(é水👍🏽){4}"), **SAMPLED))
    assert "".join(pieces) == "é水👍🏽" * 4
    assert all(set(piece) <= set("é水👍🏽") for piece in pieces)


def test_a_schema_is_the_same_as_text_and_as_mapping(engine: oga.Engine) -> None:
    schema = {"enum": ["é", "水", 3.5, None, {"a": [1, "\u2028"]}]}
    for seed in range(4):
        streams = [
            engine.stream(PROMPT, guidance=("json_schema", data), seed=seed, **SAMPLED)
            for data in (schema, json.dumps(schema), json.dumps(schema, ensure_ascii=False))
        ]
        texts = {"".join(stream) for stream in streams}
        assert len(texts) == 1
        jsonschema.validate(json.loads(texts.pop()), schema)


def test_what_a_turn_says_does_not_depend_on_its_neighbours(engine: oga.Engine) -> None:
    wishes: list[dict[str, Any]] = [
        {"guidance": ("json_schema", PERSON), "seed": 3},
        {"seed": 4, "max_new_tokens": 30},
        {"guidance": ("regex", "[a-z]{10,20}!"), "seed": 5},
        {"guidance": ("lark", LIST), "seed": 6},
    ]
    alone = [list(engine.stream([5, 6, 7], **SAMPLED | wish)) for wish in wishes]
    streams = [engine.stream([5, 6, 7], **SAMPLED | wish) for wish in wishes]
    assert [list(stream) for stream in streams] == alone


def test_every_turn_starts_at_the_grammars_start(engine: oga.Engine) -> None:
    tokenizer = engine.model.tokenizer
    with engine.create_request() as request:
        options = oga.TurnOptions(request, guidance=("regex", "ab"))
        for prompt in ("abab", "a", "b"):
            turn = request.begin_turn(tokenizer.encode(prompt), options)
            ended = finish(engine)[request, turn]
            assert (tokenizer.decode(ended.tokens), ended.ending) == ("ab", oga.FinishReason.EOS)
        options.clear_guidance()
        options.set_max_generated_tokens(30)
        turn = request.begin_turn(tokenizer.encode("a"), options)
        assert tokenizer.decode(finish(engine)[request, turn].tokens) != "ab"


def soon_a_person(tokenizer: oga.Tokenizer) -> dict[str, Any]:
    """The options of a turn that writes a person without spaces and soon comes to its end."""
    biases = {tokenizer.to_token_id(end): 4.0 for end in '"}'} | dict.fromkeys(
        tokenizer.encode(" \n\r\t").tolist(), -50.0
    )
    return {"guidance": ("json_schema", PERSON), "logit_bias": biases, "max_generated_tokens": 100}


def test_two_guided_turns_of_a_request_are_two_whole_objects(engine: oga.Engine) -> None:
    tokenizer = engine.model.tokenizer
    with engine.create_request() as request:
        for seed, prompt in enumerate((PROMPT, '{"name": "a', "and another one")):
            options = oga.TurnOptions(
                request, do_sample=True, temperature=1.5, top_k=0, seed=seed, **soon_a_person(tokenizer)
            )
            turn = request.begin_turn(tokenizer.encode(prompt), options)
            ended = finish(engine)[request, turn]
            assert ended.ending is oga.FinishReason.EOS
            is_person(tokenizer.decode(ended.tokens))


@pytest.mark.parametrize("tokens_before_the_end", [1, 4, 9, 14])
def test_a_turn_after_one_that_was_cancelled_in_mid_object_is_a_whole_object(
    engine: oga.Engine, tokens_before_the_end: int
) -> None:
    tokenizer = engine.model.tokenizer
    with engine.create_request() as request, engine.create_event_buffer(1) as buffer:
        options = oga.TurnOptions(request, **soon_a_person(tokenizer))
        cancelled = request.begin_turn(tokenizer.encode(PROMPT), options)
        turns: Turns = {}
        while len(turns.get((request, cancelled), Turn()).tokens) < tokens_before_the_end:
            note(engine.run(buffer), turns)
        assert request.cancel_turn(cancelled)
        assert finish(engine)[request, cancelled].ending is oga.FinishReason.CANCELLED
        begun = tokenizer.decode(turns[request, cancelled].tokens)
        assert begun.startswith("{")
        assert not begun.endswith("}")
        for prompt in ("again", '"'):
            turn = request.begin_turn(tokenizer.encode(prompt), options)
            ended = finish(engine)[request, turn]
            assert ended.ending is oga.FinishReason.EOS
            is_person(tokenizer.decode(ended.tokens))


def test_stop_strings_and_limits_cut_guided_text_as_any_other(engine: oga.Engine) -> None:
    wish: dict[str, Any] = {"guidance": ("regex", "abcdefgh")}
    stream = engine.stream(PROMPT, **wish, stop_strings=["de"])
    assert ("".join(stream), stream.finish_reason) == ("abc", oga.FinishReason.STOP_STRING)
    stream = engine.stream(PROMPT, **wish, max_new_tokens=3)
    assert ("".join(stream), stream.finish_reason) == ("abc", oga.FinishReason.MAX_GENERATED_TOKENS)


def test_guidance_between_two_tokens_leaves_the_rest_free(engine: oga.Engine) -> None:
    tokenizer = engine.model.tokenizer
    opening, closing = tokenizer.to_token_id("<"), tokenizer.to_token_id(">")
    with engine.create_request() as request:
        options = oga.TurnOptions(request, max_generated_tokens=120, seed=1, do_sample=True, temperature=2.0, top_k=0)
        options.set_logit_bias({opening: 4.0} | dict.fromkeys(tokenizer.eos_token_ids, -50.0))
        options.set_delimited_guidance(opening, closing, 'start: "f(" /[0-9]/ ")"')
        turn = request.begin_turn([5, 6], options)
        text = tokenizer.decode(finish(engine)[request, turn].tokens)
    calls = re.findall(r"<(.{1,4})>", text, re.DOTALL)
    assert len(calls) >= 2
    assert all(re.fullmatch(r"f\([0-9]\)", call) for call in calls), calls
    free = re.sub(r"<f\([0-9]\)(>|$)", "", text)
    assert len(free) >= 2
    assert "<" not in free[:-4]


def test_log_probabilities_know_what_the_grammar_excludes(engine: oga.Engine) -> None:
    with engine.create_request() as request, engine.create_event_buffer(4) as buffer:
        options = oga.TurnOptions(request, guidance=("regex", "[ab]{3}"))
        options.set_logprobs(20, processed=True)
        request.begin_turn([5, 6], options)
        seen = 0
        allowed = {engine.model.tokenizer.to_token_id(letter) for letter in "ab"}
        while engine.has_pending_requests():
            for event in engine.run(buffer):
                if event.logprobs is not None:
                    seen += 1
                    assert {entry.token for entry in event.logprobs.alternatives} <= allowed
                    assert event.logprobs.token in allowed
    assert seen == 3


# A wrong wish

REFUSED_BY_THE_SETTER: list[tuple[Any, Any, type[Exception], str]] = [
    ("xml", "x", oga.InvalidArgumentError, "xml"),
    ("json_scheme", "{}", oga.InvalidArgumentError, "json_schema"),
    ("regex", "", oga.InvalidArgumentError, "empty"),
    ("lark", "", oga.InvalidArgumentError, "empty"),
    ("regex", "a" * (8 * 1024 + 1), oga.InvalidArgumentError, "at most 8192"),
    ("json_schema", " " * (256 * 1024) + "{}", oga.InvalidArgumentError, "at most 262144"),
    ("regex", "a\0b", oga.InvalidArgumentError, "NUL"),
    ("regex", "\ud800", oga.InvalidArgumentError, "Unicode"),
    ("regex", b"\xff", oga.InvalidArgumentError, "UTF-8"),
    ("regex", 5, oga.ArgumentTypeError, "guidance_data"),
    ("regex", {"type": "object"}, oga.ArgumentTypeError, "only a json_schema"),
    ("json_object", "{}", oga.InvalidArgumentError, "json_schema"),
    ("json_schema", [1], oga.ArgumentTypeError, "guidance_data"),
    ("json_schema", {"enum": [{1, 2}]}, oga.InvalidArgumentError, "set"),
    ("json_schema", {"minimum": float("nan")}, oga.InvalidArgumentError, "JSON compliant"),
    (7, "x", oga.ArgumentTypeError, "guidance_type"),
]


@pytest.mark.parametrize(("kind", "data", "error", "sentence"), REFUSED_BY_THE_SETTER)
def test_a_setter_that_refuses_keeps_the_old_guidance(
    engine: oga.Engine, kind: Any, data: Any, error: type[Exception], sentence: str
) -> None:
    with engine.create_request() as request:
        options = oga.TurnOptions(request, guidance=("regex", "ok"))
        with pytest.raises(error, match=re.escape(sentence)):
            options.set_guidance(kind, data)
        turn = request.begin_turn([5], options)
        assert engine.model.tokenizer.decode(finish(engine)[request, turn].tokens) == "ok"


REFUSED_BY_THE_TURN: list[tuple[str, Any, str]] = [
    ("regex", "ab(c", "character 3"),
    ("regex", "x[z-a]", "character 3"),
    ("regex", r"(a)\1", "character 4"),
    ("regex", "a(?=b)", "look-ahead"),
    ("json_schema", "{,}", "line 1"),
    ("json_schema", "7", "schema"),
    ("json_schema", {"type": "objekt"}, "objekt"),
    ("json_schema", {"typ": "object"}, "'typ' at #"),
    ("json_schema", {"type": "string", "format": "phone"}, "phone"),
    ("json_schema", {"type": "string", "minLength": 3, "maxLength": 2}, "minLength"),
    ("json_schema", {"properties": {"a": {"$ref": "#/$defs/b"}}}, "#/$defs/b"),
    ("json_schema", {"$ref": "https://example.org/schema.json"}, "'$ref' at #"),
    ("json_schema", {"type": "array", "items": {"uniqueItems": True}}, "'uniqueItems' at #/items"),
    ("lark", "start: thing", 'unknown name: "thing"'),
    ("lark", "start: (", "1(9)"),
    ("lark", 'begin: "a"', "start"),
    ("lark", 'start: start "a"', "admits no text"),
]


@pytest.mark.parametrize(("kind", "data", "sentence"), REFUSED_BY_THE_TURN)
def test_what_cannot_be_followed_is_refused_with_its_place_and_the_request_goes_on(
    engine: oga.Engine, kind: str, data: Any, sentence: str
) -> None:
    with engine.create_request() as request:
        options = oga.TurnOptions(request, guidance=(kind, data))
        with pytest.raises(oga.InvalidArgumentError, match=re.escape(sentence)):
            request.begin_turn([5], options)
        options.set_guidance("regex", "ok")
        assert request.begin_turn([5], options) == 1
        assert engine.model.tokenizer.decode(finish(engine)[request, 1].tokens) == "ok"


SLOW = ("regex", "a{50000}")


def test_a_prepared_grammar_is_there_when_its_turn_begins(engine: oga.Engine) -> None:
    """Prepared on another thread while this one, the engine's, goes on with a turn."""
    neighbour = engine.stream([5, 6, 7], ignore_eos=True, max_new_tokens=None)
    start = time.process_time()
    engine.prepare_guidance("regex", "a{49999}")
    compiling = time.process_time() - start
    heard = 0
    with ThreadPoolExecutor(1) as others:
        prepared = others.submit(engine.prepare_guidance, *SLOW)
        while not prepared.done():
            heard += next(neighbour, None) is not None
        prepared.result()
    assert heard > 0
    start = time.process_time()
    guided = engine.stream("x", guidance=SLOW, max_new_tokens=9)
    assert time.process_time() - start < compiling / 2
    assert re.fullmatch("a+", "".join(guided))
    neighbour.close()


def test_preparing_refuses_what_beginning_refuses(engine: oga.Engine) -> None:
    for _ in range(2):
        with pytest.raises(oga.InvalidArgumentError, match="character 1: unclosed group"):
            engine.prepare_guidance("regex", "(")
    with pytest.raises(oga.InvalidArgumentError, match="'uniqueItems' at #"):
        engine.prepare_guidance("json_schema", {"type": "array", "uniqueItems": True})
    with pytest.raises(oga.InvalidArgumentError, match="json_schema, json_object, regex or lark_grammar"):
        engine.prepare_guidance("xml", "<a/>")
    with pytest.raises(oga.ArgumentTypeError, match="only a json_schema"):
        engine.prepare_guidance("regex", {"type": "array"})
    engine.prepare_guidance("json_object")
    engine.close()
    with pytest.raises(oga.InvalidStateError, match="already closed"):
        engine.prepare_guidance("json_object")


def test_closing_waits_for_a_preparation(engine: oga.Engine) -> None:
    with ThreadPoolExecutor(8) as others:
        wishes = [others.submit(engine.prepare_guidance, "regex", f"a{{{count}}}") for count in range(30_000, 30_008)]
        engine.close()
        for wish in wishes:
            assert isinstance(wish.exception(), oga.InvalidStateError | None)


def unenforceable() -> list[str]:
    table = (ROOT / "native" / "grammar" / "schema_keywords.h").read_text(encoding="utf-8")
    return re.findall(r'\{"([^"]+)", SchemaKeyword::kUnenforceable\}', table)


def test_a_keyword_that_cannot_be_enforced_is_refused_by_name(engine: oga.Engine) -> None:
    names = unenforceable()
    assert {"not", "uniqueItems", "if", "contains"} <= set(names)
    with engine.create_request() as request:
        for name in names:
            schema = {"type": "object", "properties": {"a": {"type": "array", name: True}}}
            options = oga.TurnOptions(request, guidance=("json_schema", schema))
            with pytest.raises(oga.InvalidArgumentError, match=re.escape(f"'{name}' at #/properties/a")):
                request.begin_turn([5], options)
        assert request.begin_turn([5], oga.TurnOptions(request, max_generated_tokens=1)) == 1


def test_guidance_of_two_sorts_and_against_the_end_is_contradictory(engine: oga.Engine) -> None:
    with engine.create_request() as request:
        options = oga.TurnOptions(request, guidance=("regex", "ok"))
        with pytest.raises(oga.InvalidStateError, match="guidance"):
            options.set_delimited_guidance(5, 6, 'start: "a"')
        options.clear_guidance()
        for opening, closing in ((5, 5), (-1, 5), (5, -1)):
            with pytest.raises(oga.InvalidArgumentError):
                options.set_delimited_guidance(opening, closing, 'start: "a"')
        options.set_delimited_guidance(5, 6, 'start: "a"')
        with pytest.raises(oga.InvalidStateError, match="guidance"):
            options.set_guidance("regex", "ok")
        options.set_delimited_guidance(5, 10_000, 'start: "a"')
        with pytest.raises(oga.InvalidArgumentError, match="10000"):
            request.begin_turn([5], options)
        options.clear_guidance()
        options.set_guidance("regex", "ok")
        options.set_bool("ignore_eos", True)
        with pytest.raises(oga.InvalidArgumentError, match="ignore_eos"):
            request.begin_turn([5], options)


@pytest.mark.parametrize("wrong", ["regex", ("regex",), ("regex", "a", "b"), 5, {"regex": "a"}])
def test_the_keyword_takes_a_pair(engine: oga.Engine, wrong: Any) -> None:
    with pytest.raises(oga.ArgumentTypeError, match="pair"):
        engine.stream(PROMPT, guidance=wrong)


# The end of a grammar


def test_a_finished_grammar_wins_over_a_minimum_of_tokens(engine: oga.Engine) -> None:
    stream = engine.stream(PROMPT, guidance=("regex", "ok"), min_new_tokens=20, max_new_tokens=40)
    assert ("".join(stream), stream.finish_reason) == ("ok", oga.FinishReason.EOS)


def test_a_bias_against_every_legal_token_gives_no_illegal_one(engine: oga.Engine) -> None:
    tokenizer = engine.model.tokenizer
    against = {tokenizer.to_token_id(letter): -100.0 for letter in "ok"}
    for warpers in ({}, {"temperature": 1.0, "seed": 1}, {"min_p": 0.5, "seed": 1}, {"top_k": 2, "seed": 1}):
        stream = engine.stream(PROMPT, guidance=("regex", "[ok]{4}"), logit_bias=against, **warpers)
        assert re.fullmatch("[ok]{4}", "".join(stream))
        assert stream.finish_reason is oga.FinishReason.EOS


def test_a_dead_end_fails_its_turn_and_no_other(engine: oga.Engine) -> None:
    tokenizer = engine.model.tokenizer
    plain: dict[str, Any] = {"max_new_tokens": 12, "ignore_eos": True}
    wanted = list(engine.stream([5, 6], **plain))
    beside = engine.stream([5, 6], **plain)
    dead = engine.stream(
        PROMPT, guidance=("regex", "[ab]c+d"), allowed_tokens=tokenizer.encode("abc"), max_new_tokens=9
    )
    banned = engine.stream(PROMPT, guidance=("regex", "[xy]z"), banned_sequences=[tokenizer.encode(x) for x in "xy"])
    assert set("".join(dead)) <= set("abc")
    with pytest.raises(oga.ModelError):
        list(banned)
    assert banned.token_ids == []
    assert list(beside) == wanted


# Without the package

WITHOUT = """
import sys
import oga

with oga.Model(sys.argv[1]) as model, oga.Engine(model) as engine, engine.create_request() as request:
    options = oga.TurnOptions(request, guidance=("regex", "ok"), max_generated_tokens=3)
    for _ in range(2):
        try:
            request.begin_turn([5, 6], options)
        except oga.UnsupportedError as error:
            print(error)
    options.clear_guidance()
    request.begin_turn([5, 6], options)
    with engine.create_event_buffer(4) as buffer:
        while engine.has_pending_requests():
            for event in engine.run(buffer):
                print(event.token)
"""


def test_without_llguidance_the_error_says_what_to_install_and_the_request_goes_on(
    tiny_folder: Path, engine: oga.Engine
) -> None:
    environment = os.environ | {"OGA_LLGUIDANCE_LIBRARY": "/nowhere/_lib.so", "OGA_LIBRARY": str(library_path())}
    environment["PYTHONPATH"] = ":".join(sys.path)
    command = [sys.executable, "-c", WITHOUT, str(tiny_folder)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    first, second, *tokens = done.stdout.splitlines()
    assert first == second
    assert "pip install 'llguidance>=1.8,<2'" in first
    assert "/nowhere/_lib.so" in first
    stream = engine.stream([5, 6], max_new_tokens=3)
    assert [int(token) for token in tokens] == list(stream)
