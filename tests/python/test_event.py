"""EngineEvent: a cheap view with the caller's own objects, dead after the next run."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import pytest

import oga
from oga._native.loader import lib


def token_event(engine: oga.Engine) -> tuple[oga.Request, oga.EngineEventBuffer]:
    request = engine.create_request()
    request.begin_turn([5, 6, 7], oga.TurnOptions(request, max_generated_tokens=2))
    return request, engine.run(engine.create_event_buffer(4))


def test_a_token_event(engine: oga.Engine) -> None:
    request, buffer = token_event(engine)
    (event,) = buffer
    assert event.request is request
    assert event.turn_id == 1
    assert event.flags == oga.EngineEventFlags.TOKEN
    assert isinstance(event.token, int)
    assert event.finish_reason is oga.FinishReason.NONE
    assert event.matched_stop_string_index is None
    assert event.error_code is oga.EngineErrorCode.NONE
    assert event.usage == oga.TurnUsage(0, 0, 0)


def test_the_last_token_carries_the_ending(engine: oga.Engine) -> None:
    request, buffer = token_event(engine)
    (event,) = engine.run(buffer)
    assert event.request is request
    assert event.flags == oga.EngineEventFlags.TOKEN | oga.EngineEventFlags.TURN_FINISHED
    assert event.finish_reason is oga.FinishReason.MAX_GENERATED_TOKENS
    assert event.usage == oga.TurnUsage(prompt_tokens=3, generated_tokens=2, cached_prompt_tokens=0)


def test_an_ending_without_a_token_has_none(engine: oga.Engine) -> None:
    request = engine.create_request()
    turn = request.begin_turn([5])
    request.cancel_turn(turn)
    (event,) = engine.run(engine.create_event_buffer(4))
    assert event.token is None
    assert event.flags == oga.EngineEventFlags.TURN_FINISHED
    assert event.finish_reason is oga.FinishReason.CANCELLED


READS: dict[str, Callable[[oga.EngineEvent], Any]] = {
    name: (lambda event, name=name: getattr(event, name))
    for name in (
        "request",
        "turn_id",
        "flags",
        "token",
        "finish_reason",
        "matched_stop_string_index",
        "error_code",
        "usage",
    )
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize("ended_by", ["run", "close"])
def test_a_view_is_stale_after_the_next_run_or_close(
    engine: oga.Engine, read: Callable[[oga.EngineEvent], Any], ended_by: str
) -> None:
    _, buffer = token_event(engine)
    event = buffer[0]
    read(event)
    if ended_by == "run":
        engine.run(buffer)
    else:
        buffer.close()
    with pytest.raises(oga.InvalidStateError, match="stale"):
        read(event)
    assert "stale" in repr(event)


def test_a_run_on_another_buffer_leaves_a_view_alone(engine: oga.Engine) -> None:
    _, buffer = token_event(engine)
    event, token = buffer[0], buffer[0].token
    engine.run(engine.create_event_buffer(4))
    assert event.token == token


def test_a_view_keeps_its_buffer_alive(engine: oga.Engine) -> None:
    event = token_event(engine)[1][0]
    gc.collect()
    assert event.token is not None


def test_what_was_read_stays_valid(engine: oga.Engine) -> None:
    _, buffer = token_event(engine)
    usage = engine.run(buffer)[0].usage
    engine.run(buffer)
    assert usage.generated_tokens == 2


def test_the_event_of_a_closed_request_still_reads(engine: oga.Engine) -> None:
    request, buffer = token_event(engine)
    request.close()
    assert buffer[0].request is request
    assert buffer[0].token is not None


def test_the_event_of_a_dropped_request_has_a_closed_stand_in(engine: oga.Engine) -> None:
    request, buffer = token_event(engine)
    del request
    gc.collect()
    found = buffer[0].request
    assert isinstance(found, oga.Request)
    assert buffer[0].request is found
    assert found.closed
    found.close()
    with pytest.raises(oga.InvalidStateError, match="dropped"):
        found.begin_turn([5])


def test_events_say_what_they_are(engine: oga.Engine) -> None:
    _, buffer = token_event(engine)
    assert repr(buffer[0]) == f"<oga.EngineEvent turn_id=1 flags=TOKEN token={buffer[0].token}>"
    engine.run(buffer)
    assert "flags=TOKEN|TURN_FINISHED" in repr(buffer[0])
    assert "finish_reason=MAX_GENERATED_TOKENS" in repr(buffer[0])


def test_only_a_buffer_makes_one() -> None:
    with pytest.raises(TypeError, match="No constructor defined"):
        oga.EngineEvent()


@pytest.mark.parametrize(
    ("kind", "prefix"),
    [
        (oga.EngineEventFlags, "OgaEngineEventFlag"),
        (oga.FinishReason, "OgaFinishReason"),
        (oga.EngineErrorCode, "OgaErrorCode"),
        (oga.FailureKind, "OgaFailureKind"),
    ],
)
def test_the_values_equal_the_constants_of_the_header(kind: Any, prefix: str) -> None:
    for member in kind.__members__.values():
        name = "".join(part.capitalize() for part in member.name.split("_"))
        assert getattr(lib, f"{prefix}_{name}") == member.value


def test_flags_combine_as_a_set_of_bits() -> None:
    flags = oga.EngineEventFlags
    both = flags.TOKEN | flags.TURN_FINISHED
    assert both & flags.TOKEN
    assert not both & flags.FAILED
    assert both != flags.TOKEN
    assert str(both) == "EngineEventFlags.TOKEN|TURN_FINISHED"
    assert str(flags.NONE) == "EngineEventFlags.NONE"
    assert f"{oga.FinishReason.EOS}" == "FinishReason.EOS"
    assert f"{oga.EngineErrorCode.CAPACITY_DEFERRED}" == "EngineErrorCode.CAPACITY_DEFERRED"
    assert oga.ErrorCode is oga.EngineErrorCode
