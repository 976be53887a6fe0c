"""How a process may end, fork and share its interpreter while the engine is at work (cases OB-27, OB-28, OB-29)."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from driving import finish, generate
from tiny_models import LIMITS

import oga
from oga._native.loader import library_path

SECONDS = 20  # a whole interpreter with its imports, on a busy machine; a hang never ends


def program(folder: Path, body: str) -> str:
    """A script with a model and an engine of the tiny model's folder."""
    start = f"import gc, os, sys, threading, time\nimport oga\nFOLDER = {str(folder)!r}\n"
    start += "model = oga.Model(FOLDER)\nengine = oga.Engine(model)\n"
    return start + textwrap.dedent(body)


def start(script: str, *flags: str) -> subprocess.Popen[str]:
    env = os.environ | {"OGA_LIBRARY": str(library_path()), "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-W", "error", *flags, "-c", script]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)


def run(script: str, *flags: str) -> tuple[int, str, str]:
    """Exit status, output and error output of a script; warnings are errors. A script that hangs fails the test."""
    process = start(script, *flags)
    try:
        output, errors = process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        output, errors = process.communicate()
        pytest.fail(f"the script did not end within {SECONDS} s; it wrote {output!r} and {errors!r}")
    return process.returncode, output, errors


# --- OB-27: the end of an interpreter ---------------------------------------------------------------------------------

BUSY = """
request = engine.create_request()
request.begin_turn([5, 6, 7], oga.TurnOptions(request, max_generated_tokens=200, min_generated_tokens=200))
buffer = engine.create_event_buffer(4)
options = oga.RequestOptions(max_session_tokens=9)
event = engine.run(buffer)[0]
"""

ENDINGS: dict[str, tuple[int, str]] = {
    "everything at module level": (0, BUSY),
    "a cycle through every object": (
        0,
        BUSY + "for each in (model, engine, request, buffer, options): each.others = [engine, request, buffer, each]\n"
        "del model, engine, request, buffer, options, event, each\n",
    ),
    "a cycle that __del__ touches": (
        0,
        BUSY
        + """
class Holder:
    def __del__(self):
        self.request.close()
        self.engine.close()
holder = Holder()
holder.engine, holder.request, holder.me = engine, request, holder
del engine, request
""",
    ),
    "a daemon thread in mid run": (
        3,
        """
        started = threading.Event()
        def work():
            with oga.Engine(model) as own:
                buffer = own.create_event_buffer(4)
                request = own.create_request()
                while True:
                    turn = request.begin_turn([5] * 60, oga.TurnOptions(request, max_generated_tokens=60))
                    while own.has_pending_requests():
                        own.run(buffer)
                        started.set()
                    request.rewind_to_start_of_turn(turn)
        threading.Thread(target=work, daemon=True).start()
        started.wait()
        sys.exit(3)
        """,
    ),
    "a daemon thread in mid load": (
        4,
        """
        started = threading.Event()
        def work():
            while True:
                oga.Model(FOLDER).close()
                started.set()
        threading.Thread(target=work, daemon=True).start()
        started.wait()
        sys.exit(4)
        """,
    ),
    "sys.exit in the event loop": (7, BUSY + "while True:\n    for event in engine.run(buffer): sys.exit(7)\n"),
    "os._exit in the event loop": (5, BUSY + "while True:\n    for event in engine.run(buffer): os._exit(5)\n"),
    "exit in a with block": (6, "with engine, model: sys.exit(6)\n"),
    "an atexit function that uses the engine": (
        0,
        BUSY + "import atexit\natexit.register(lambda: (engine.run(buffer), engine.close(), model.close()))\n",
    ),
    "constructors that failed half-way": (
        0,
        """
        made = []
        for attempt in (
            lambda: oga.Model(FOLDER + "/absent"),
            lambda: oga.Engine("x"),
            lambda: oga.Engine(None),
            lambda: oga.TurnOptions(engine.create_request(), temperature=-1.0),
            lambda: oga.RequestOptions(max_session_tokens=-1),
            lambda: engine.create_event_buffer(2**40),
            lambda: engine.create_request(options=oga.RequestOptions(max_session_tokens=2**60)),
            oga.Request, oga.EngineEventBuffer, oga.Model, oga.Engine, oga.TurnOptions,
        ):
            try:
                attempt()
            except (oga.OgaError, TypeError) as error:
                made.append(error)
        assert len(made) == 12
        """,
    ),
    "used after close": (
        0,
        """
        engine.close(); engine.close(); model.close(); model.close()
        for use in (engine.create_request, engine.has_pending_requests, lambda: oga.Engine(model)):
            try:
                use()
            except oga.InvalidStateError:
                continue
            sys.exit("a closed object works")
        """,
    ),
}


@pytest.mark.parametrize("flags", [[], ["-X", "dev"]], ids=["plain", "dev"])
@pytest.mark.parametrize("ending", ENDINGS)
def test_an_interpreter_ends_as_its_script_says_and_quietly(tiny_folder: Path, ending: str, flags: list[str]) -> None:
    status, body = ENDINGS[ending]
    assert run(program(tiny_folder, body), *flags) == (status, "", "")


def test_an_unhandled_exception_leaves_its_own_trace_and_nothing_else(tiny_folder: Path) -> None:
    status, output, errors = run(program(tiny_folder, BUSY + "raise KeyError('the end')\n"))
    lines = errors.splitlines()
    assert (status, output) == (1, "")
    assert (lines[0], lines[-1]) == ("Traceback (most recent call last):", "KeyError: 'the end'")
    assert [line for line in lines[1:-1] if not line.startswith("  ")] == []


# --- OB-28: fork ------------------------------------------------------------------------------------------------------

FORK = """
said = list(engine.stream([5, 6, 7], max_new_tokens=12, min_new_tokens=12))
def child(work):
    "Exit status of a child that does ``work``, or 'hang' when it takes more than five seconds."
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException as error:
            print(type(error).__name__, flush=True)
            os._exit(9)
        os._exit(0)
    return ended(pid)
def ended(pid):
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    return "hang"
def refused(*calls):
    for call in calls:
        try:
            call()
        except oga.InvalidStateError as error:
            assert "parent process" in str(error), error
        else:
            raise AssertionError("not refused")
"""
CHECK = """
print(list(engine.stream([5, 6, 7], max_new_tokens=12, min_new_tokens=12)) == said)
"""

FORKS: dict[str, tuple[str, str]] = {
    "exits at once": ("print(child(lambda: None))", "0"),
    "exits as an interpreter does": ("pid = os.fork()\nif pid == 0: sys.exit(0)\nprint(ended(pid))", "0"),
    "drops everything": (
        """
        def drop():
            global engine, model
            del engine, model
            gc.collect()
        print(child(drop))
        """,
        "0",
    ),
    "closes everything": ("print(child(lambda: (engine.close(), model.close(), oga.shutdown())))", "0"),
    "uses what it inherited": (
        """
        buffer, request = engine.create_event_buffer(4), engine.create_request()
        options = oga.TurnOptions(request)
        print(child(lambda: refused(
            lambda: engine.run(buffer), engine.create_request, engine.has_pending_requests, engine.get_statistics,
            lambda: engine.stream([5]), lambda: request.begin_turn([5]), lambda: options.set_top_k(1),
            lambda: oga.Engine(model), lambda: len(buffer))))
        """,
        "0",
    ),
    "has a parent in mid turn": (
        """
        request, buffer = engine.create_request(), engine.create_event_buffer(4)
        turn = request.begin_turn([5, 6, 7], oga.TurnOptions(request, max_generated_tokens=12, min_generated_tokens=12))
        tokens = [engine.run(buffer)[0].token for _ in range(5)]
        print(child(lambda: refused(lambda: engine.run(buffer))))
        while engine.has_pending_requests():
            tokens += [event.token for event in engine.run(buffer)]
        assert tokens == said
        """,
        "0",
    ),
    "loads a fresh model": (
        """
        def fresh():
            with oga.Model(FOLDER) as own, oga.Engine(own) as runs:
                assert list(runs.stream([5, 6, 7], max_new_tokens=12, min_new_tokens=12)) == said
        print(child(fresh))
        """,
        "0",
    ),
    "is one of four workers that load their own": (
        """
        def fresh():
            with oga.Model(FOLDER) as own, oga.Engine(own) as runs:
                assert list(runs.stream([5, 6, 7], max_new_tokens=12, min_new_tokens=12)) == said
        print({child(fresh) for _ in range(4)})
        """,
        "{0}",
    ),
    "goes through the C API": (
        """
        from oga._native.loader import ffi, lib
        def raw():
            out = ffi.new("OgaRequest **")
            results = [lib.OgaEngineCreateRequest(pointers[1], ffi.NULL, out),
                       lib.OgaEngineRun(pointers[1], pointers[2]),
                       lib.OgaRequestClose(pointers[3]),
                       lib.OgaCreateEngine(pointers[0], ffi.new("OgaEngine **"))]
            for result in results:
                assert lib.OgaResultGetCode(result) == lib.OgaStatusCode_InvalidState
                assert b"parent process" in ffi.string(lib.OgaResultGetError(result))
                lib.OgaDestroyResult(result)
            lib.OgaDestroyRequest(pointers[3])
            lib.OgaDestroyEngineEventBuffer(pointers[2])
            lib.OgaDestroyEngine(pointers[1])
            lib.OgaDestroyModel(pointers[0])
            lib.OgaShutdown()
        buffer, request = engine.create_event_buffer(4), engine.create_request()
        pointers = [each._pointer for each in (model, engine, buffer, request)]
        print(child(raw))
        """,
        "0",
    ),
    "destroys a model that had no engine": (
        """
        from oga._native.loader import lib
        alone = oga.Model(FOLDER)
        pointer = alone._pointer
        print(child(lambda: lib.OgaDestroyModel(pointer)))
        """,
        "0",
    ),
}


@pytest.mark.parametrize("name", FORKS)
def test_a_forked_child_that(tiny_folder: Path, name: str) -> None:
    work, outcome = FORKS[name]
    script = program(tiny_folder, FORK + textwrap.dedent(work) + CHECK)
    assert run(script) == (0, f"{outcome}\nTrue\n", "")


# --- OB-29: threads and the interpreter lock --------------------------------------------------------------------------


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
    with Ticker() as loading:
        began = time.monotonic()
        model = oga.Model(slow_model)
        load = time.monotonic() - began
    with model, oga.Engine(model) as engine, engine.create_event_buffer(1) as buffer:
        request = engine.create_request()
        request.begin_turn([5 + place % 500 for place in range(2000)])
        with Ticker() as running:
            began = time.monotonic()
            engine.run(buffer)
            step = time.monotonic() - began
    # With the lock held for the call, its whole length would be one pause.
    for ticker, length in ((loading, load), (running, step)):
        assert length > 0.05
        assert ticker.ticks > 5
        assert ticker.longest < max(0.05, length * 0.8)


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
