"""Stop strings and the text of events: what a user sees, streamed and whole, and where a turn ends."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
from driving import finish

import oga

PROMPT = "the end of the"
LONG = 40
SAMPLED: dict[str, Any] = {"max_new_tokens": LONG, "ignore_eos": True, "temperature": 3.0, "top_k": 0, "seed": 5}


@pytest.fixture(scope="module")
def letters(model: oga.Model) -> list[int]:
    """The tokens that write letters and spaces: what stop strings of this file are made of."""
    texts = {token: model.tokenizer.decode([token]) for token in range(3, 200)}
    return [token for token, text in texts.items() if text.isascii() and text.replace(" ", "a").isalpha()]


@pytest.fixture(scope="module")
def plain(model: oga.Model, letters: list[int]) -> tuple[str, list[int]]:
    """The text and tokens of a turn that nothing stops."""
    with oga.Engine(model) as engine:
        stream = engine.stream(PROMPT, **SAMPLED, allowed_tokens=letters)
        return "".join(stream), stream.token_ids


@pytest.fixture
def talk(engine: oga.Engine, letters: list[int]) -> Callable[..., oga.Stream[str]]:
    """The same turn with other options."""
    return lambda **options: engine.stream(PROMPT, **SAMPLED, allowed_tokens=letters, **options)


Talk = Callable[..., "oga.Stream[str]"]


def test_every_part_of_the_text_can_stop_it(talk: Talk, plain: tuple[str, list[int]]) -> None:
    text, tokens = plain
    for begin in range(0, len(text) - 3):
        stop = text[begin : begin + 3]
        with talk(stop_strings=["no such text", stop]) as stream:
            shown = "".join(stream)
            assert shown == text[: text.index(stop)]
            assert stream.finish_reason is oga.FinishReason.STOP_STRING
            assert stream.matched_stop_string_index == 1
            # The token that completes the match is the last one, and it is counted.
            assert stream.token_ids == tokens[: len(stream.token_ids)]
            assert stream.usage is not None
            assert stream.usage.generated_tokens == len(stream.token_ids)


def test_pieces_never_show_a_part_of_the_stop(talk: Talk, plain: tuple[str, list[int]]) -> None:
    text, _ = plain
    stop = text[10:18]
    shown = ""
    for piece in talk(stop_strings=[stop]):
        shown += piece
        assert text[: text.index(stop)].startswith(shown)
    assert shown == text[: text.index(stop)]


def test_a_stop_that_only_begins_to_match_is_shown_at_the_end(talk: Talk, plain: tuple[str, list[int]]) -> None:
    text, _ = plain
    stream = talk(stop_strings=[text[-5:] + "and no more"])
    assert "".join(stream) == text
    assert stream.finish_reason is oga.FinishReason.MAX_GENERATED_TOKENS
    assert stream.matched_stop_string_index is None


def test_a_stop_of_the_prompt_does_not_stop(talk: Talk, plain: tuple[str, list[int]]) -> None:
    text, _ = plain
    stop = PROMPT[-1] + text[0]
    if stop in text:
        pytest.fail("the prompt of this test must not reappear in its output")
    assert "".join(talk(stop_strings=[stop])) == text


def test_neighbours_with_other_stops_end_for_themselves(talk: Talk, plain: tuple[str, list[int]]) -> None:
    text, _ = plain
    stops = [[text[begin : begin + 4]] for begin in (2, 9, 15)] + [[]]
    streams = [talk(stop_strings=each) for each in stops]
    assert ["".join(stream) for stream in streams] == [text[: text.index(each[0])] if each else text for each in stops]


def test_the_next_turn_continues_after_the_kept_token(
    engine: oga.Engine, letters: list[int], plain: tuple[str, list[int]]
) -> None:
    text, tokens = plain
    request = engine.create_request()
    prompt = engine.model.tokenizer.encode(PROMPT)
    sampled = {"temperature": 3.0, "top_k": 0, "seed": 5, "do_sample": True, "allowed_tokens": letters}
    options = oga.TurnOptions(request, ignore_eos=True, max_generated_tokens=LONG, stop_strings=[text[6:10]], **sampled)
    turn = request.begin_turn(prompt, options)
    stopped = finish(engine)[request, turn].tokens
    options.set_stop_strings([])
    options.set_max_generated_tokens(5)
    turn = request.begin_turn([tokens[len(stopped)]], options)
    # One token of the plain output was given back as input, so the rest of it follows.
    assert finish(engine)[request, turn].tokens == tokens[len(stopped) + 1 :][:5]


def test_events_carry_text_only_when_asked(engine: oga.Engine) -> None:
    for emit in (False, True):
        with engine.create_request() as request, engine.create_event_buffer(4) as buffer:
            request.begin_turn([5, 6, 7], oga.TurnOptions(request, max_generated_tokens=8, emit_text=emit))
            texts = ""
            while engine.has_pending_requests():
                texts += "".join(event.text for event in engine.run(buffer))
            assert (texts != "") is emit


@pytest.mark.parametrize(
    ("stops", "error"),
    [
        ("a bare string", oga.ArgumentTypeError),
        ([""], oga.InvalidArgumentError),
        (["x"] * 17, oga.InvalidArgumentError),
        (["x" * 16385], oga.InvalidArgumentError),
        ([b"\xff"], oga.InvalidArgumentError),
        (["a\0b"], oga.InvalidArgumentError),
        ([3], oga.ArgumentTypeError),
    ],
)
def test_bad_stop_strings_are_refused_and_the_old_ones_stay(
    engine: oga.Engine, letters: list[int], stops: Any, error: type[Exception]
) -> None:
    with engine.create_request() as request:
        options = oga.TurnOptions(request, max_generated_tokens=LONG, allowed_tokens=letters[:1])
        options.set_stop_strings([engine.model.tokenizer.decode(letters[:1]) * 3])
        with pytest.raises(error):
            options.set_stop_strings(stops)
        turn = request.begin_turn(engine.model.tokenizer.encode(PROMPT), options)
        assert finish(engine)[request, turn].ending is oga.FinishReason.STOP_STRING


def test_without_a_tokenizer_stop_strings_are_refused_and_ids_go_on(tiny_folder: Any, tmp_path: Any) -> None:
    for file in tiny_folder.iterdir():
        if "token" not in file.name:
            (tmp_path / file.name).symlink_to(file)
    with oga.Model(tmp_path) as model, oga.Engine(model) as engine, engine.create_request() as request:
        with pytest.raises(oga.NotFoundError, match="tokenizer"):
            request.begin_turn([5], oga.TurnOptions(request, stop_strings=["x"]))
        assert request.begin_turn([5], oga.TurnOptions(request, max_generated_tokens=2)) == 1


# text of the turn: stop strings, what is seen, which of them ended it
TOLD: list[tuple[str, list[str], str, int | None]] = [
    ("UNO DUE TRE", ["TRE\nAAAA"], "UNO DUE TRE", None),
    (" Alice!", ["\n", "Alice:"], " Alice!", None),
    (" Alice: hello", ["\n", "Alice:"], " ", 1),
    ("one\ntwo", ["two", "\n"], "one", 1),
    ("abcabd", ["abd"], "abc", 0),
    ("aaaab", ["aab"], "aa", 0),
    ("say stop", ["p", "stop", "op"], "say ", 1),
    ("é水👍🏽!", ["👍"], "é水", 0),
    ("é水👍🏽!", ["🏽?"], "é水👍🏽!", None),
    ("end", ["end"], "", 0),
]


@pytest.mark.parametrize(("told", "stops", "seen", "index"), TOLD)
@pytest.mark.parametrize("limit", [None, 5])
def test_streamed_and_whole_are_equal_and_nothing_follows_a_stop(
    engine: oga.Engine, told: str, stops: list[str], seen: str, index: int | None, limit: int | None
) -> None:
    stream = engine.stream(PROMPT, guidance=("regex", re.escape(told)), stop_strings=stops, max_new_tokens=limit)
    shown = ""
    for piece in stream:
        shown += piece
        assert seen.startswith(shown) or limit is not None
    whole = engine.model.tokenizer.decode(stream.token_ids)
    if stream.finish_reason is oga.FinishReason.STOP_STRING:
        assert shown == seen
        assert stream.matched_stop_string_index == index
        assert whole.startswith(seen)
    else:
        assert shown == whole
        assert stream.matched_stop_string_index is None
        assert index is None or limit is not None
