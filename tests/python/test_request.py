"""Request and RequestOptions: turns, continuation, cancel, rewind, close and abandonment."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from driving import finish, generate

import oga


@pytest.fixture
def request_(engine: oga.Engine) -> oga.Request:
    return engine.create_request()


def limited(request: oga.Request, count: int) -> oga.TurnOptions:
    return oga.TurnOptions(request, max_generated_tokens=count)


def test_turn_ids_count_from_one_and_a_refused_turn_takes_none(engine: oga.Engine, request_: oga.Request) -> None:
    for wanted in (1, 2, 3):
        with pytest.raises(oga.InvalidArgumentError):
            request_.begin_turn([])
        assert request_.begin_turn([5], limited(request_, 2)) == wanted
        finish(engine)


def test_a_continuation_generates_what_the_whole_sequence_would(engine: oga.Engine, request_: oga.Request) -> None:
    first = request_.begin_turn([5, 6, 7], limited(request_, 4))
    tokens = finish(engine)[request_, first].tokens
    second = request_.begin_turn([8, 9], limited(request_, 4))
    continued = finish(engine)[request_, second]
    assert continued.tokens == generate(engine, [5, 6, 7, *tokens, 8, 9], 4)
    assert continued.usage is not None
    assert continued.usage.prompt_tokens == 2


@pytest.mark.parametrize(
    "tokens", [np.array([5, 6, 7], np.uint8), np.array([5, 0, 6, 0, 7])[::2], range(5, 8), iter([5, 6, 7])]
)
def test_any_integer_sequence_is_a_prompt(engine: oga.Engine, request_: oga.Request, tokens: Any) -> None:
    turn = request_.begin_turn(tokens, limited(request_, 3))
    assert finish(engine)[request_, turn].tokens == generate(engine, [5, 6, 7], 3)


def test_tokens_are_copied_in_the_call(engine: oga.Engine, request_: oga.Request) -> None:
    tokens = np.array([5, 6, 7], np.int32)
    turn = request_.begin_turn(tokens, limited(request_, 3))
    tokens[:] = 100
    assert finish(engine)[request_, turn].tokens == generate(engine, [5, 6, 7], 3)


BAD_PROMPTS: list[tuple[Any, type[Exception]]] = [
    ([], ValueError),
    (np.array([], np.int32), ValueError),
    ([512], ValueError),
    ([-1], ValueError),
    ([2**31 - 1], ValueError),
    ([-(2**31)], ValueError),
    ([5] * 256, ValueError),
    ([2**40], ValueError),
    (np.array([3.7]), TypeError),
    (np.zeros((2, 2), np.int32), ValueError),
    (None, TypeError),
    ("text", TypeError),
    (5, TypeError),
]


@pytest.mark.parametrize(("tokens", "kind"), BAD_PROMPTS, ids=lambda value: repr(value)[:20])
def test_a_bad_prompt_is_refused_and_changes_nothing(
    engine: oga.Engine, request_: oga.Request, tokens: Any, kind: type[Exception]
) -> None:
    neighbour = engine.create_request()
    other = neighbour.begin_turn([9], limited(neighbour, 5))
    with pytest.raises(kind) as caught:
        request_.begin_turn(tokens)
    assert isinstance(caught.value, oga.OgaError)
    turn = request_.begin_turn([5, 6, 7], limited(request_, 5))
    turns = finish(engine)
    assert turn == 1
    assert turns[request_, turn].tokens == generate(engine, [5, 6, 7], 5)
    assert turns[neighbour, other].tokens == generate(engine, [9], 5)


def test_an_id_outside_the_vocabulary_is_named(request_: oga.Request) -> None:
    with pytest.raises(oga.InvalidArgumentError, match="512"):
        request_.begin_turn([5, 512])


def test_a_prompt_that_leaves_room_for_one_token_ends_after_it(engine: oga.Engine, request_: oga.Request) -> None:
    turn = request_.begin_turn([5] * 255)
    ended = finish(engine)[request_, turn]
    assert len(ended.tokens) == 1
    assert ended.ending is oga.FinishReason.MAX_SESSION_TOKENS


def test_a_turn_cannot_begin_while_another_is_open_or_undrained(engine: oga.Engine, request_: oga.Request) -> None:
    request_.begin_turn([5], limited(request_, 1))
    with pytest.raises(oga.InvalidStateError):
        request_.begin_turn([6])
    other = engine.create_request()
    other.begin_turn([6], limited(other, 1))
    buffer = engine.create_event_buffer(1)
    first = engine.run(buffer)[0].request
    undrained = other if first is request_ else request_
    with pytest.raises(oga.InvalidStateError):
        undrained.begin_turn([7])
    assert first is not None
    assert first.begin_turn([7]) == 2


def test_cancel_ends_a_live_turn_once(engine: oga.Engine, request_: oga.Request) -> None:
    with pytest.raises(oga.InvalidStateError):
        request_.cancel_turn(1)
    turn = request_.begin_turn([5, 6])
    buffer = engine.create_event_buffer(4)
    first = engine.run(buffer)[0].token
    assert request_.cancel_turn(turn)
    assert not request_.cancel_turn(turn)
    assert not request_.cancel_turn(99)
    ended = finish(engine)[request_, turn]
    assert ended.ending is oga.FinishReason.CANCELLED
    assert ended.usage is not None
    assert ended.usage.generated_tokens == 1
    again = request_.begin_turn([7], limited(request_, 3))
    assert finish(engine)[request_, again].tokens == generate(engine, [5, 6, first or 0, 7], 3)


def test_rewind_forgets_a_turn_and_all_later_ones(engine: oga.Engine, request_: oga.Request) -> None:
    first = request_.begin_turn([5, 6], limited(request_, 2))
    tokens = finish(engine)[request_, first].tokens
    for prompt in ([7], [8]):
        request_.begin_turn(prompt, limited(request_, 2))
        finish(engine)
    request_.rewind_to_start_of_turn(2)
    with pytest.raises(oga.NotFoundError):
        request_.rewind_to_start_of_turn(3)
    again = request_.begin_turn([9], limited(request_, 3))
    assert again == 4
    assert finish(engine)[request_, again].tokens == generate(engine, [5, 6, *tokens, 9], 3)


def test_rewind_is_refused_while_a_turn_is_live(request_: oga.Request) -> None:
    turn = request_.begin_turn([5])
    with pytest.raises(oga.InvalidStateError):
        request_.rewind_to_start_of_turn(turn)


@pytest.mark.parametrize("wrong", [-1, 1.0, "1", None, 2**64])
def test_a_turn_id_is_an_integer(request_: oga.Request, wrong: Any) -> None:
    request_.begin_turn([5])
    for call in (request_.cancel_turn, request_.rewind_to_start_of_turn):
        with pytest.raises(TypeError, match="turn_id"):
            call(wrong)


def test_a_fork_continues_the_same_sequence_on_its_own(engine: oga.Engine, request_: oga.Request) -> None:
    with pytest.raises(oga.InvalidStateError):
        request_.fork()
    first = request_.begin_turn([5, 6, 7], limited(request_, 4))
    with pytest.raises(oga.InvalidStateError):
        request_.fork()
    tokens = finish(engine)[request_, first].tokens
    twin = request_.fork()
    assert twin is not request_
    begun = [(each, each.begin_turn(prompt, limited(each, 5))) for each, prompt in ((request_, [8]), (twin, [9, 10]))]
    assert [turn for _, turn in begun] == [2, 2]
    turns = finish(engine)
    assert turns[begun[0]].tokens == generate(engine, [5, 6, 7, *tokens, 8], 5)
    assert turns[begun[1]].tokens == generate(engine, [5, 6, 7, *tokens, 9, 10], 5)


def test_a_fork_outlives_its_origin(engine: oga.Engine, request_: oga.Request) -> None:
    first = request_.begin_turn([5, 6, 7], limited(request_, 4))
    tokens = finish(engine)[request_, first].tokens
    twin = request_.fork()
    request_.close()
    turn = twin.begin_turn([8], limited(twin, 5))
    assert finish(engine)[twin, turn].tokens == generate(engine, [5, 6, 7, *tokens, 8], 5)
    twin.close()
    assert engine.get_statistics().free_blocks == 96


def test_close_frees_the_cache_at_once_and_ends_everything(engine: oga.Engine, request_: oga.Request) -> None:
    request_.begin_turn([5] * 20)
    engine.run(engine.create_event_buffer(4))
    assert engine.get_statistics().free_blocks < 96
    request_.close()
    request_.close()
    assert engine.get_statistics().free_blocks == 96
    assert not engine.has_pending_requests()
    uses: list[Callable[[], Any]] = [
        lambda: request_.begin_turn([5]),
        lambda: request_.cancel_turn(1),
        lambda: request_.rewind_to_start_of_turn(1),
        lambda: oga.TurnOptions(request_),
    ]
    for use in uses:
        with pytest.raises(oga.InvalidStateError, match="closed"):
            use()


def test_a_with_block_closes_its_request(engine: oga.Engine) -> None:
    with engine.create_request() as request:
        request.begin_turn([5] * 20)
        engine.run(engine.create_event_buffer(4))
    assert request.closed
    assert engine.get_statistics().free_blocks == 96


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_dropped_request_is_reclaimed(engine: oga.Engine, elsewhere: bool) -> None:
    held = [engine.create_request()]
    held[0].begin_turn([5] * 20)
    engine.run(engine.create_event_buffer(4))
    if elsewhere:
        thread = threading.Thread(target=held.clear)
        thread.start()
        thread.join()
    else:
        held.clear()
    gc.collect()
    assert not engine.has_pending_requests()
    counts = engine.get_statistics()
    assert (counts.live_requests, counts.free_blocks) == (0, 96)


def test_requests_are_their_own_keys(engine: oga.Engine) -> None:
    first, second = engine.create_request(), engine.create_request()
    assert first != second
    assert {first: 1, second: 2}[first] == 1


def test_only_an_engine_makes_one() -> None:
    with pytest.raises(TypeError, match="No constructor defined"):
        oga.Request()


def test_options_of_another_request_are_refused(engine: oga.Engine, request_: oga.Request) -> None:
    other = engine.create_request()
    with pytest.raises(oga.OgaError):
        request_.begin_turn([5], oga.TurnOptions(other))
    with pytest.raises(TypeError, match="turn_options"):
        request_.begin_turn([5], {"top_k": 1})  # type: ignore[arg-type]
    assert request_.begin_turn([5]) == 1


@pytest.mark.parametrize("limit", [4, 5, 256])
def test_a_session_limit_counts_prompt_and_output(engine: oga.Engine, limit: int) -> None:
    with oga.RequestOptions(max_session_tokens=limit) as options:
        request = engine.create_request(options=options)
    turn = request.begin_turn([5, 6, 7], oga.TurnOptions(request, min_generated_tokens=limit - 3))
    ended = finish(engine)[request, turn]
    assert 3 + len(ended.tokens) == limit
    assert ended.ending is oga.FinishReason.MAX_SESSION_TOKENS


def test_a_session_limit_of_the_prompt_leaves_no_room(engine: oga.Engine) -> None:
    request = engine.create_request(options=oga.RequestOptions(max_session_tokens=3))
    with pytest.raises(oga.InvalidArgumentError):
        request.begin_turn([5, 6, 7])
    assert request.begin_turn([5, 6]) == 1


@pytest.mark.parametrize("limit", [257, 2**64 - 1])
def test_a_session_limit_beyond_the_engines_is_refused_at_creation(engine: oga.Engine, limit: int) -> None:
    with pytest.raises(oga.InvalidArgumentError, match="256"):
        engine.create_request(options=oga.RequestOptions(max_session_tokens=limit))


def test_zero_unsets_a_session_limit(engine: oga.Engine) -> None:
    options = oga.RequestOptions(max_session_tokens=2)
    options.set_max_session_tokens(0)
    assert engine.create_request(options=options).begin_turn([5] * 200) == 1


def test_the_higher_priority_goes_first(make_model: Callable[..., oga.Model]) -> None:
    with oga.Engine(make_model(max_batch_size=1)) as engine:
        order: list[oga.Request | None] = []
        low = engine.create_request(options=oga.RequestOptions(priority=-5))
        high = engine.create_request(options=oga.RequestOptions(priority=5))
        for request in (low, high):
            request.begin_turn([5], limited(request, 1))
        buffer = engine.create_event_buffer(4)
        while engine.has_pending_requests():
            order += [event.request for event in engine.run(buffer)]
    assert order == [high, low]


@pytest.mark.parametrize("wrong", [-1, 1.5, "4", True, 2**64])
def test_a_session_limit_is_a_count(wrong: Any) -> None:
    with oga.RequestOptions() as options, pytest.raises(TypeError, match="max_session_tokens"):
        options.set_max_session_tokens(wrong)


@pytest.mark.parametrize("wrong", [1.5, "4", 2**31, -(2**31) - 1])
def test_a_priority_is_a_small_integer(wrong: Any) -> None:
    with pytest.raises(TypeError, match="priority"):
        oga.RequestOptions(priority=wrong)


def test_a_failed_turn_leaves_rewind_and_close(poisoned_folder: Path) -> None:
    with oga.Model(poisoned_folder) as model, oga.Engine(model) as engine:
        request = engine.create_request()
        first = request.begin_turn([5, 6], limited(request, 3))
        tokens = finish(engine)[request, first].tokens
        second = request.begin_turn([300])
        failed = finish(engine)[request, second]
        assert failed.ending is oga.FinishReason.FAILED
        assert failed.tokens == []
        with pytest.raises(oga.InvalidStateError):
            request.begin_turn([7])
        request.rewind_to_start_of_turn(second)
        third = request.begin_turn([7], limited(request, 3))
        assert finish(engine)[request, third].tokens == generate(engine, [5, 6, *tokens, 7], 3)
        request.close()


@pytest.mark.parametrize("chunk", [0, 7])
@pytest.mark.parametrize(
    ("length", "session"), [(62, 64), (63, 64), (64, 64), (65, 64), (64, 65), (254, 0), (255, 0), (256, 0)]
)
def test_input_must_leave_room_for_one_token(
    make_model: Callable[..., oga.Model], chunk: int, length: int, session: int
) -> None:
    with oga.Engine(make_model(search={"chunk_size": chunk})) as engine:
        request = engine.create_request(options=oga.RequestOptions(max_session_tokens=session))
        room = (session or 256) - length
        if room < 1:
            with pytest.raises(
                oga.InvalidArgumentError, match=rf"{length}.*{session or 256}|{session or 256}.*{length}"
            ):
                request.begin_turn([5] * length)
            assert request.begin_turn([5]) == 1
            return
        turn = request.begin_turn([5] * length, oga.TurnOptions(request, min_generated_tokens=room))
        ended = finish(engine)[request, turn]
        assert len(ended.tokens) == room
        assert ended.ending is oga.FinishReason.MAX_SESSION_TOKENS


def test_a_continuation_fits_exactly_or_not_at_all(engine: oga.Engine) -> None:
    request = engine.create_request(options=oga.RequestOptions(max_session_tokens=20))
    request.begin_turn([5] * 10, oga.TurnOptions(request, max_generated_tokens=4, min_generated_tokens=4))
    finish(engine)
    with pytest.raises(oga.InvalidArgumentError):
        request.begin_turn([6] * 6)
    turn = request.begin_turn([6] * 5, oga.TurnOptions(request, min_generated_tokens=1))
    ended = finish(engine)[request, turn]
    assert (len(ended.tokens), ended.ending) == (1, oga.FinishReason.MAX_SESSION_TOKENS)


@pytest.mark.parametrize(("key", "value"), [("num_beams", 4), ("min_length", 4)])
def test_a_model_that_asks_for_what_there_is_not_is_refused_by_name(
    make_model: Callable[..., oga.Model], key: str, value: int
) -> None:
    with oga.Engine(make_model(search={key: value})) as engine, pytest.raises(oga.OgaError, match=rf"search\.{key}"):
        engine.create_request()


@pytest.mark.parametrize("length", [0, -1, 257])
def test_a_length_that_cannot_be_is_refused_by_name(make_model: Callable[..., oga.Model], length: int) -> None:
    with (
        pytest.raises(oga.InvalidArgumentError, match="max_length"),
        oga.Engine(make_model(search={"max_length": length})) as engine,
    ):
        engine.create_request()


@pytest.mark.parametrize(("session", "room"), [(0, 100), (100, 100), (101, 101)])
def test_the_models_own_length_is_a_default_and_no_bound(
    make_model: Callable[..., oga.Model], session: int, room: int
) -> None:
    with oga.Engine(make_model(search={"max_length": 100})) as engine:
        request = engine.create_request(options=oga.RequestOptions(max_session_tokens=session))
        turn = request.begin_turn([5] * 98, oga.TurnOptions(request, min_generated_tokens=room - 98))
        assert len(finish(engine)[request, turn].tokens) == room - 98


def test_turns_run_in_the_order_they_began(engine: oga.Engine) -> None:
    first, second = engine.create_request(), engine.create_request()
    for request in (second, first):
        request.begin_turn([5], limited(request, 1))
    assert [event.request for event in engine.run(engine.create_event_buffer(4))] == [second, first]
