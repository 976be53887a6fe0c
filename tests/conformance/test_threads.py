"""Threads, the interpreter lock and Ctrl-C while the engine is at work (case OB-29)."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from driving import finish, generate
from scripts import BUSY, SECONDS, program, start
from tiny_models import LIMITS

import oga


@pytest.fixture(scope="module")
def model(tiny_folder: Path) -> Iterator[oga.Model]:
    with oga.Config(tiny_folder) as config:
        config.overlay({"engine": {"dynamic_batching": LIMITS}})
        with oga.Model(config) as loaded:
            yield loaded


def test_eight_threads_of_every_foreign_call_change_nothing_for_two_seconds(model: oga.Model) -> None:
    with oga.Engine(model) as engine:
        prompts = [[5, 6, 7], [40, 41], [9] * 11]
        alone = [generate(engine, prompt, 200) for prompt in prompts]
        idle = engine.create_request()
        idle.begin_turn([3], oga.TurnOptions(idle, max_generated_tokens=1))
        finish(engine)
        requests = [engine.create_request() for _ in prompts]
        buffer, foreign, options = engine.create_event_buffer(4), engine.create_event_buffer(4), oga.TurnOptions(idle)
        calls: list[Callable[[], Any]] = [
            engine.create_request,
            engine.has_pending_requests,
            engine.get_capabilities,
            engine.get_statistics,
            engine.drop_prefix_cache,
            lambda: engine.set_trace_file(None),
            lambda: engine.create_event_buffer(1),
            lambda: engine.run(foreign),
            lambda: idle.begin_turn([5]),
            lambda: idle.cancel_turn(1),
            lambda: idle.rewind_to_start_of_turn(1),
            idle.fork,
            idle.close,
            lambda: oga.TurnOptions(idle),
            options.reset,
            lambda: options.set_seed(1),
        ]
        stop = threading.Event()
        refused = [0] * 8
        accepted: list[int] = []

        def hammer(number: int) -> None:
            turn = number
            while not stop.is_set():
                turn = (turn + 1) % len(calls)
                try:
                    calls[turn]()
                    accepted.append(turn)
                except oga.InvalidStateError:
                    refused[number] += 1

        threads = [threading.Thread(target=hammer, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 2
        rounds = 0
        try:
            while time.monotonic() < deadline or rounds == 0:
                turns = [
                    request.begin_turn(prompt, oga.TurnOptions(request, max_generated_tokens=200))
                    for request, prompt in zip(requests, prompts, strict=True)
                ]
                found: dict[oga.Request | None, list[int]] = {request: [] for request in requests}
                while engine.has_pending_requests():
                    for event in engine.run(buffer):
                        if event.token is not None:
                            found[event.request].append(event.token)
                assert [found[request] for request in requests] == alone
                for request, turn in zip(requests, turns, strict=True):
                    request.rewind_to_start_of_turn(turn)
                rounds += 1
        finally:
            stop.set()
            for thread in threads:
                thread.join()
        assert accepted == []
        assert min(refused) > len(calls)
        assert engine.get_statistics().live_requests == 1 + len(requests)
        assert idle.begin_turn([4]) == 2


def test_handles_released_on_other_threads_are_reaped_at_the_next_boundary(model: oga.Model) -> None:
    with oga.Engine(model) as engine:
        alone = generate(engine, [5, 6, 7], 60)
        kept = engine.create_request()
        turn = kept.begin_turn([5, 6, 7], oga.TurnOptions(kept, max_generated_tokens=60))
        buffer, tokens = engine.create_event_buffer(8), []
        while True:
            dropped = [engine.create_request() for _ in range(4)]
            for request in dropped:
                request.begin_turn([8] * 9)
            threads = [threading.Thread(target=dropped.pop) for _ in range(4)]
            del request
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert engine.has_pending_requests()
            assert engine.get_statistics().live_requests == 1
            tokens += [event.token for event in engine.run(buffer) if event.request is kept]
            if not engine.has_pending_requests():
                break
        assert tokens == alone
        kept.rewind_to_start_of_turn(turn)
        kept.close()
        assert engine.get_statistics().free_blocks == LIMITS["num_blocks"]


class Ticker:
    """A thread that counts while it can run, with the longest pause it saw."""

    def __init__(self) -> None:
        self.ticks, self.longest = 0, 0.0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._tick)

    def _tick(self) -> None:
        last = time.monotonic()
        while not self._stop.wait(0.001):
            now = time.monotonic()
            self.longest = max(self.longest, now - last)
            last = now
            self.ticks += 1

    def __enter__(self) -> Ticker:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()


@pytest.fixture(scope="module")
def slow_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose load and whose prompts each take a good part of a second."""
    from tiny_llama import write_tiny_llama

    from oga import export

    home = tmp_path_factory.mktemp("slow")
    wide: dict[str, Any] = {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 6}
    wide |= {"max_position_embeddings": 2048, "num_attention_heads": 8, "num_key_value_heads": 8}
    source = write_tiny_llama(home / "source", **wide)
    return export.convert(source, home / "model", precision="fp32").folder


def test_another_thread_keeps_ticking_while_a_model_loads_and_a_long_step_runs(slow_model: Path) -> None:
    loads = 5  # one may be over after a few ticks
    with Ticker() as loading:
        for _ in range(loads - 1):
            oga.Model(slow_model).close()
        model = oga.Model(slow_model)
    with model, oga.Engine(model) as engine, engine.create_event_buffer(1) as buffer:
        request = engine.create_request()
        request.begin_turn([5 + place % 500 for place in range(2000)])
        with Ticker() as running:
            began = time.monotonic()
            engine.run(buffer)
            step = time.monotonic() - began
    # With the lock held for a call, there would be a tick or two between calls, and the call's whole length one pause.
    assert loading.ticks > 5 * loads
    assert running.ticks > 5
    assert running.longest < 0.8 * step


def test_ctrl_c_between_runs_is_a_keyboard_interrupt_and_the_engine_goes_on(tiny_folder: Path) -> None:
    body = """
    request, buffer = engine.create_request(), engine.create_event_buffer(4)
    interrupts = 0
    for _ in range(3):
        turn = request.begin_turn([5, 6, 7], oga.TurnOptions(request, max_generated_tokens=20))
        print("running", flush=True)
        try:
            while True:
                engine.run(buffer)
        except KeyboardInterrupt:
            interrupts += 1
        request.cancel_turn(turn)
        while engine.has_pending_requests():
            engine.run(buffer)
        request.rewind_to_start_of_turn(turn)
    print(interrupts, len(list(engine.stream([5, 6, 7], max_new_tokens=5, min_new_tokens=5))), flush=True)
    """
    process = start(program(tiny_folder, body))
    assert process.stdout is not None
    try:
        for _ in range(3):
            assert process.stdout.readline() == "running\n"
            time.sleep(0.05)
            process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
        process.wait()
    assert (process.returncode, output, errors) == (0, "3 5\n", "")


def test_ctrl_c_ends_a_program_that_does_not_catch_it(tiny_folder: Path) -> None:
    process = start(program(tiny_folder, BUSY + "print('running', flush=True)\nwhile True: engine.run(buffer)\n"))
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "running\n"
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=SECONDS)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == -signal.SIGINT
    assert errors.splitlines()[-1] == "KeyboardInterrupt"
