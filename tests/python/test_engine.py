"""Engine: many requests at once, the same tokens whoever else runs, one owner."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from driving import Turn, Turns, finish, generate, note

import oga
from oga._native.loader import library_path

PROMPTS = [[5, 6, 7], [40, 41, 42, 43, 44, 45, 46, 47], [9], [100, 200, 300, 400, 500] * 4]


def begin(engine: oga.Engine, prompt: list[int], count: int) -> tuple[oga.Request, int]:
    """Starts a turn of exactly ``count`` tokens. The caller holds the request; dropping it would end it."""
    request = engine.create_request()
    options = oga.TurnOptions(request, max_generated_tokens=count, min_generated_tokens=count)
    return request, request.begin_turn(prompt, options)


def exactly(engine: oga.Engine, prompt: list[int], count: int) -> list[int]:
    """The tokens of such a turn, alone."""
    request, turn = begin(engine, prompt, count)
    with request:
        return finish(engine)[request, turn].tokens


@pytest.mark.parametrize("settings", [{}, {"max_scheduled_tokens": 7}, {"max_batch_size": 2}, {"num_blocks": 20}])
def test_a_request_generates_the_same_tokens_in_any_company(
    engine: oga.Engine, make_model: Callable[..., oga.Model], settings: dict[str, int]
) -> None:
    alone = [exactly(engine, prompt, 12) for prompt in PROMPTS]
    with oga.Engine(make_model(**settings)) as other:
        begun = [begin(other, prompt, 12) for prompt in PROMPTS]
        turns = finish(other)
    assert [turns[key].tokens for key in begun] == alone


def test_a_chunked_prompt_generates_the_same_tokens(engine: oga.Engine, make_model: Callable[..., oga.Model]) -> None:
    with oga.Engine(make_model(search={"chunk_size": 3})) as other:
        assert [generate(other, prompt, 6) for prompt in PROMPTS] == [generate(engine, prompt, 6) for prompt in PROMPTS]


@pytest.mark.parametrize("capacity", [1, 2, 100])
def test_a_buffer_of_any_capacity_sees_every_event_once(engine: oga.Engine, capacity: int) -> None:
    begun = [begin(engine, prompt, 5) for prompt in PROMPTS]
    turns = finish(engine, capacity)
    assert set(turns) == set(begun)
    for prompt, key in zip(PROMPTS, begun, strict=True):
        assert len(turns[key].tokens) == 5
        assert turns[key].ending is oga.FinishReason.MAX_GENERATED_TOKENS
        assert turns[key].usage == oga.TurnUsage(len(prompt), 5, 0)


def test_more_requests_than_fit_all_finish_and_leave_the_pool_empty(make_model: Callable[..., oga.Model]) -> None:
    with oga.Engine(make_model(num_blocks=24, max_batch_size=4)) as engine:
        begun = [begin(engine, [number + 3] * (number % 40 + 1), 8) for number in range(16)]
        turns = finish(engine)
        assert [turns[key].ending for key in begun] == [oga.FinishReason.MAX_GENERATED_TOKENS] * 16
        for request, _ in begun:
            request.close()
        after = engine.get_statistics()
        assert after.free_blocks == after.total_blocks == 24
        assert after.live_requests == 0


def test_requests_of_all_lengths_finish_in_half_the_cache_they_would_like(long_folder: Path) -> None:
    """32 prompts of 16 to 400 tokens, 8 rows, cache for about half of what 8 of them hold together."""
    lengths = [16 + 384 * number // 31 for number in range(32)]
    prompts = [[3 + (7 * number + place) % 250 for place in range(length)] for number, length in enumerate(lengths)]
    wish = sum(sorted(lengths)[-8:]) // 16
    with oga.Config(long_folder) as config:
        config.overlay(
            {"engine": {"dynamic_batching": {"max_batch_size": 8, "block_size": 16, "num_blocks": wish // 2}}}
        )
        model = oga.Model(config)
    with model, oga.Engine(model) as engine:
        begun = [begin(engine, prompt, 24) for prompt in prompts]
        turns = finish(engine)
        assert [turns[key].ending for key in begun] == [oga.FinishReason.MAX_GENERATED_TOKENS] * 32
        assert [len(turns[key].tokens) for key in begun] == [24] * 32
        for request, _ in begun:
            request.close()
        counts = engine.get_statistics()
        assert counts.free_blocks == counts.total_blocks == wish // 2
        assert [turns[key].tokens for key in begun[::5]] == [exactly(engine, prompt, 24) for prompt in prompts[::5]]


def test_a_trace_tells_every_step(engine: oga.Engine, tmp_path: Path) -> None:
    path = tmp_path / "späte Spur.jsonl"
    engine.set_trace_file(path)
    generate(engine, [5, 6, 7], 4)
    engine.set_trace_file(None)
    generate(engine, [5, 6, 7], 4)
    steps = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [step["outcome"] for step in steps] == ["committed"] * len(steps)
    assert [step["tokens"] for step in steps] == [3] + [1] * (len(steps) - 1)
    assert len(steps) <= 4
    with pytest.raises(OSError, match="absent"):
        engine.set_trace_file(tmp_path / "absent" / "trace")


def test_run_returns_the_buffer_and_is_quiet_when_idle(engine: oga.Engine) -> None:
    buffer = engine.create_event_buffer(4)
    assert engine.run(buffer) is buffer
    assert len(buffer) == 0
    assert not engine.has_pending_requests()


def test_a_capacity_of_zero_runs_nothing(engine: oga.Engine) -> None:
    held = begin(engine, [3], 2)
    with engine.create_event_buffer(0) as buffer:
        for _ in range(3):
            assert len(engine.run(buffer)) == 0
    assert engine.has_pending_requests()
    assert engine.get_statistics().steps == 0
    held[0].close()


def test_a_part_of_a_long_prompt_gives_no_event(make_model: Callable[..., oga.Model]) -> None:
    with oga.Engine(make_model(max_scheduled_tokens=4)) as engine, engine.create_event_buffer(4) as buffer:
        request, _ = begin(engine, [7] * 10, 1)
        assert [len(engine.run(buffer)) for _ in range(3)] == [0, 0, 1]
        assert buffer[0].request is request


def test_a_buffer_of_another_engine_is_refused_and_keeps_its_events(engine: oga.Engine, model: oga.Model) -> None:
    request, _ = begin(engine, [3], 2)
    with oga.Engine(model) as other, engine.create_event_buffer(4) as buffer:
        event = engine.run(buffer)[0]
        token = event.token
        with pytest.raises(oga.OgaError, match="buffer") as caught:
            other.run(buffer)
        assert caught.value.code in (oga.StatusCode.INVALID_ARGUMENT, oga.StatusCode.INVALID_STATE)
        assert event.token == token
        assert event.request is request


@pytest.mark.parametrize("wrong", [None, 4, "buffer", object()])
def test_run_takes_an_event_buffer(engine: oga.Engine, wrong: Any) -> None:
    with pytest.raises(TypeError, match="EngineEventBuffer"):
        engine.run(wrong)


@pytest.mark.parametrize("capacity", [-1, 1.5, "x", None, True, 2**64])
def test_a_capacity_is_a_count(engine: oga.Engine, capacity: Any) -> None:
    with pytest.raises(TypeError, match="capacity"):
        engine.create_event_buffer(capacity)


def test_an_absurd_capacity_is_refused(engine: oga.Engine) -> None:
    with pytest.raises(oga.InvalidArgumentError, match="1048576"):
        engine.create_event_buffer(2**40)


def test_a_cache_that_no_memory_holds_is_a_memory_error(make_model: Callable[..., oga.Model]) -> None:
    huge = make_model(num_blocks=2**31 - 1)
    with pytest.raises(MemoryError, match="num_blocks") as caught:
        oga.Engine(huge)
    assert isinstance(caught.value, oga.ResourceExhaustedError)


def test_an_engine_needs_a_model() -> None:
    with pytest.raises(TypeError, match=r"oga\.Model, not str"):
        oga.Engine("folder")  # type: ignore[arg-type]


def test_options_of_create_request_are_a_keyword(engine: oga.Engine) -> None:
    with oga.RequestOptions() as options, pytest.raises(TypeError):
        engine.create_request(options)  # type: ignore[misc]


def test_use_after_close_is_refused_everywhere(model: oga.Model) -> None:
    engine = oga.Engine(model)
    request, _ = begin(engine, [3], 2)
    buffer = engine.create_event_buffer(2)
    options = oga.TurnOptions(request)
    engine.close()
    engine.close()
    uses: list[Callable[[], Any]] = [
        engine.create_request,
        engine.has_pending_requests,
        engine.get_capabilities,
        engine.get_statistics,
        lambda: engine.run(buffer),
        lambda: engine.create_event_buffer(1),
        lambda: engine.stream([1]),
        lambda: request.begin_turn([3]),
        lambda: request.cancel_turn(1),
        lambda: options.set_top_k(3),
    ]
    for use in uses:
        with pytest.raises(oga.InvalidStateError):
            use()
    assert len(buffer) == 0
    for handle in (request, options, buffer):
        handle.close()


def in_thread(call: Callable[[], Any]) -> BaseException | None:
    """What ``call`` raises on a thread of its own."""
    caught: list[BaseException] = []

    def target() -> None:
        try:
            call()
        except BaseException as error:
            caught.append(error)

    thread = threading.Thread(target=target)
    thread.start()
    thread.join()
    return caught[0] if caught else None


def test_every_call_from_another_thread_is_refused_and_changes_nothing(engine: oga.Engine) -> None:
    request, turn = begin(engine, [5, 6, 7], 6)
    buffer, options = engine.create_event_buffer(4), oga.TurnOptions(request)
    calls: list[Callable[[], Any]] = [
        engine.create_request,
        engine.has_pending_requests,
        engine.get_capabilities,
        engine.get_statistics,
        lambda: engine.run(buffer),
        lambda: engine.create_event_buffer(1),
        lambda: engine.stream([1]),
        lambda: request.begin_turn([3]),
        lambda: request.cancel_turn(turn),
        lambda: request.rewind_to_start_of_turn(turn),
        request.close,
        lambda: oga.TurnOptions(request),
        lambda: options.set_temperature(0.5),
        options.reset,
    ]
    for call in calls:
        error = in_thread(call)
        assert isinstance(error, oga.InvalidStateError), call
        assert "thread" in str(error)
    assert engine.get_statistics().steps == 0
    assert finish(engine)[request, turn].tokens == exactly(engine, [5, 6, 7], 6)


def test_events_may_be_read_on_another_thread_between_runs(engine: oga.Engine) -> None:
    request, _ = begin(engine, [5, 6, 7], 2)
    buffer = engine.run(engine.create_event_buffer(4))
    seen: list[int | None] = []
    assert in_thread(lambda: seen.extend(event.token for event in buffer)) is None
    assert len(seen) == 1
    assert seen == [event.token for event in buffer]
    request.close()


def test_an_engine_may_be_closed_on_another_thread(model: oga.Model) -> None:
    engine = oga.Engine(model)
    assert in_thread(engine.close) is None
    assert engine.closed


def test_other_threads_run_while_the_engine_runs(tiny_folder: Path, tmp_path: Path) -> None:
    """The trace is a small pipe that another Python thread drains: a run ends only if that thread can run meanwhile."""
    os.mkfifo(tmp_path / "trace")
    script = f"""
import fcntl, os, threading
import oga
engine = oga.Engine(oga.Model({str(tiny_folder)!r}))
lines = []
# Made small while it is empty: afterwards the system refuses.
pipe = os.open({str(tmp_path / "trace")!r}, os.O_RDONLY | os.O_NONBLOCK)
fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, 4096)
os.set_blocking(pipe, True)
def drain():
    with open(pipe) as trace:
        lines.extend(trace)
reader = threading.Thread(target=drain)
engine.set_trace_file({str(tmp_path / "trace")!r})
reader.start()  # with a writer there: without one a reader is at the end at once
tokens = list(engine.stream([5, 6], max_new_tokens=200, min_new_tokens=200))
engine.set_trace_file(None)
reader.join()
print(len(tokens), len(lines))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env={**os.environ, "OGA_LIBRARY": str(library_path()), "PYTHONPATH": ":".join(sys.path)},
    )
    assert (done.stdout, done.stderr) == ("200 200\n", "")


def test_an_engine_of_a_finished_thread_cannot_be_used_elsewhere(model: oga.Model) -> None:
    made: list[oga.Engine] = []
    assert in_thread(lambda: made.append(oga.Engine(model))) is None
    with pytest.raises(oga.InvalidStateError, match="thread"):
        made[0].create_request()
    made[0].close()


def test_an_engine_dropped_on_a_foreign_thread_is_left_alone_with_a_warning(model: oga.Model) -> None:
    made = [oga.Engine(model)]

    def drop() -> None:
        made.clear()
        gc.collect()

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        in_thread(drop)
    assert [warning.category for warning in caught] == [ResourceWarning]
    assert "Close an engine" in str(caught[0].message)


def test_an_engine_dropped_on_its_own_thread_is_freed_silently(model: oga.Model) -> None:
    engine = oga.Engine(model)
    request = engine.create_request()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        del engine
        gc.collect()
    with pytest.raises(oga.InvalidStateError):
        request.begin_turn([3])
    request.close()


def test_engines_on_their_own_threads_share_a_model(model: oga.Model, engine: oga.Engine) -> None:
    alone = [generate(engine, prompt, 8) for prompt in PROMPTS]
    results: dict[int, list[int]] = {}

    def work(number: int) -> None:
        with oga.Engine(model) as own:
            for _ in range(3):
                results[number] = generate(own, PROMPTS[number], 8)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(PROMPTS))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [results[number] for number in range(len(PROMPTS))] == alone


def test_threads_that_hammer_a_foreign_engine_change_nothing(engine: oga.Engine) -> None:
    alone = exactly(engine, PROMPTS[1], 30)
    request, turn = begin(engine, PROMPTS[1], 30)
    stop = threading.Event()
    refused = [0] * 4

    def hammer(number: int) -> None:
        while not stop.is_set():
            try:
                engine.create_request()
            except oga.InvalidStateError:
                refused[number] += 1

    threads = [threading.Thread(target=hammer, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    turns: Turns = {}
    buffer = engine.create_event_buffer(4)
    while engine.has_pending_requests():
        note(engine.run(buffer), turns)
    stop.set()
    for thread in threads:
        thread.join()
    assert turns[request, turn] == Turn(alone, [oga.FinishReason.MAX_GENERATED_TOKENS], turns[request, turn].usage)
    assert min(refused) > 0
    assert engine.get_statistics().live_requests == 1
