"""EngineEventBuffer: a sequence of events, and the same as arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import oga


@pytest.fixture
def requests(engine: oga.Engine) -> list[oga.Request]:
    """Three requests that generate two tokens each."""
    made = [engine.create_request() for _ in range(3)]
    for number, request in enumerate(made, start=1):
        request.begin_turn([5] * number, oga.TurnOptions(request, max_generated_tokens=2))
    return made


@pytest.fixture
def buffer(engine: oga.Engine, requests: list[oga.Request]) -> oga.EngineEventBuffer:
    """A buffer after the first run of three requests."""
    return engine.run(engine.create_event_buffer(8))


def test_it_is_a_sequence_in_the_order_of_submission(
    buffer: oga.EngineEventBuffer, requests: list[oga.Request]
) -> None:
    assert len(buffer) == 3
    assert [event.request for event in buffer] == requests
    assert [buffer[index].request for index in (0, 1, 2)] == requests
    assert [buffer[index].request for index in (-3, -2, -1)] == requests
    assert buffer[np.int64(1)].request is requests[1]


def test_one_event_is_one_object(buffer: oga.EngineEventBuffer) -> None:
    assert buffer[0] is buffer[0]
    assert buffer[-1] is buffer[2]
    held = list(buffer)
    assert list(buffer) == held


@pytest.mark.parametrize("index", [3, -4, 2**70])
def test_an_index_out_of_range_is_an_index_error(buffer: oga.EngineEventBuffer, index: int) -> None:
    with pytest.raises(IndexError):
        buffer[index]


@pytest.mark.parametrize("index", [slice(0, 2), 1.0, "0", None])
def test_an_index_is_an_integer(buffer: oga.EngineEventBuffer, index: Any) -> None:
    with pytest.raises(TypeError):
        buffer[index]


def test_columns_say_what_the_events_say(
    engine: oga.Engine, buffer: oga.EngineEventBuffer, requests: list[oga.Request]
) -> None:
    for _ in range(2):
        columns = buffer.columns()
        assert columns.request == requests
        for index, event in enumerate(buffer):
            assert columns.turn_id[index] == event.turn_id
            assert columns.flags[index] == event.flags
            assert columns.token[index] == event.token
            assert columns.finish_reason[index] == event.finish_reason
            assert columns.matched_stop_string_index[index] == -1
            assert columns.error_code[index] == event.error_code
            usage = (columns.prompt_tokens[index], columns.generated_tokens[index], columns.cached_prompt_tokens[index])
            assert usage == event.usage
        engine.run(buffer)


def test_columns_are_typed_copies(engine: oga.Engine, buffer: oga.EngineEventBuffer) -> None:
    columns = buffer.columns()
    kinds = [column.dtype.name for column in columns[1:]]
    assert kinds == ["uint64", "uint32", "int32", "uint32", "int32", "uint32", "uint64", "uint64", "uint64"]
    tokens = columns.token.tolist()
    engine.run(buffer)
    assert columns.token.tolist() == tokens


def test_columns_of_nothing_are_empty(engine: oga.Engine) -> None:
    columns = engine.create_event_buffer(4).columns()
    assert columns.request == []
    assert [column.shape for column in columns[1:]] == [(0,)] * 9


def test_iterating_across_a_run_is_refused(engine: oga.Engine, buffer: oga.EngineEventBuffer) -> None:
    iterator = iter(buffer)
    next(iterator)
    engine.run(buffer)
    with pytest.raises(oga.InvalidStateError, match="stale"):
        next(iterator)


def test_a_refused_run_keeps_the_events(engine: oga.Engine, buffer: oga.EngineEventBuffer, model: oga.Model) -> None:
    event, token = buffer[1], buffer[1].token
    with oga.Engine(model) as other, pytest.raises(oga.OgaError):
        other.run(buffer)
    assert event.token == token
    assert buffer[1] is event


def test_it_keeps_its_events_after_the_engine(model: oga.Model) -> None:
    engine = oga.Engine(model)
    request = engine.create_request()
    request.begin_turn([5])
    buffer = engine.run(engine.create_event_buffer(2))
    token = buffer[0].token
    engine.close()
    assert len(buffer) == 1
    assert buffer[0].token == token
    buffer.close()
    request.close()


def test_a_closed_buffer_says_so(engine: oga.Engine, buffer: oga.EngineEventBuffer) -> None:
    buffer.close()
    buffer.close()
    for use in (lambda: len(buffer), lambda: buffer[0], buffer.columns, lambda: engine.run(buffer)):
        with pytest.raises(oga.InvalidStateError, match="EngineEventBuffer cannot be used"):
            use()


def test_its_capacity_bounds_a_run(engine: oga.Engine, requests: list[oga.Request]) -> None:
    buffer = engine.create_event_buffer(2)
    assert buffer.capacity == 2
    assert [len(engine.run(buffer)) for _ in range(4)] == [2, 1, 2, 1]
    assert not engine.has_pending_requests()


def test_only_an_engine_makes_one() -> None:
    with pytest.raises(TypeError, match="No constructor defined"):
        oga.EngineEventBuffer()
