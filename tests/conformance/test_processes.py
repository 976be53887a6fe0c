"""How a process may end and fork while the engine is at work (cases OB-27 and OB-28)."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from scripts import BUSY, program, run

# --- OB-27: the end of an interpreter ---------------------------------------------------------------------------------

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
