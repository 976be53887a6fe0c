"""The table of behaviour: rows of sections B to E, G to I and N, each with what is done and the transcript of it.

A row's id is that of the behaviour page of onnxruntime-genai, whose programs we run; ``ruling`` says where we differ on
purpose. Rows about stop strings, drafts, guidance and static batching belong to those features.

Transcripts: ``A1 T`` is a token event of turn 1 of request A; ``F`` the end of a turn with its reason and its usage
[prompt, generated, cached]; ``-`` a run without events. A refused call is the name of its status.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from drivers import Engine, Request
from world import World, attempt, attempts, endings, finish, on_another_thread, step, tokens

Play = Callable[[World], Iterable[str]]

MOST = 2**64 - 1
NAN, INFINITY = float("nan"), float("inf")


@dataclass(frozen=True)
class Case:
    id: str
    done: str
    expected: tuple[str, ...]
    play: Play
    ruling: str
    only: str | None
    failing_model: bool


CASES: list[Case] = []


def row(
    id: str, done: str, *expected: str, ruling: str = "", only: str | None = None, failing_model: bool = False
) -> Callable[[Play], Play]:
    """Adds a row: what is done, and the transcript of what must happen."""

    def add(play: Play) -> Play:
        CASES.append(Case(id, done, expected, play, ruling, only, failing_model))
        return play

    return add


def same(found: object, wanted: object) -> str:
    return "same" if found == wanted else f"{found} is not {wanted}"


# --- B: requests and limits -------------------------------------------------------------------------------------------


@row("B1", "search.num_beams is 4: create a request", "Unsupported")
def _(world: World) -> Iterable[str]:
    engine = world.engine(search={"num_beams": 4})
    yield attempt(lambda: engine.request("A"), "search.num_beams", "4", "verlay")


@row("B2", "search.min_length is 4: create a request", "Unsupported")
def _(world: World) -> Iterable[str]:
    engine = world.engine(search={"min_length": 4})
    yield attempt(lambda: engine.request("A"), "search.min_length", "OgaTurnOptionsSetMinGeneratedTokens")


@row("B3", "search.max_length is 0, then -1", "InvalidArgument", "InvalidArgument", ruling="refused at load already")
def _(world: World) -> Iterable[str]:
    for length in (0, -1):
        yield attempt(lambda length=length: world.model(search={"max_length": length}), "search.max_length")


@row("B4", "search.batch_size and num_return_sequences are set", "same", ruling="9: such keys do nothing")
def _(world: World) -> Iterable[str]:
    engine = world.engine(search={"batch_size": 4, "num_return_sequences": 2})
    engine.request("A").begin([5, 6, 7], 4)
    yield same(tokens(finish(engine)), world.alone([5, 6, 7], 4))


@row("B5", "max_session_tokens of one more than the engine holds, and of 2^64-1", "InvalidArgument", "InvalidArgument")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    for limit in (257, MOST):
        yield attempt(lambda limit=limit: engine.request("A", max_session_tokens=limit), "max_session_tokens", "256")


@row("B6", "max_session_tokens of 0, 1 and 256; the longest prompt of each", "255", "0", "255")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    for limit in (0, 1, 256):
        request = engine.request("A", max_session_tokens=limit)
        fits = 0
        for length in (1, 254, 255, 256):
            turn = attempt(lambda request=request, length=length: request.begin([5] * length))
            if turn != "InvalidArgument":
                fits = length
                request.cancel(int(turn))
                finish(engine)
                request.rewind(int(turn))
        yield str(fits)


@row("B7", "search.max_length 100: the default, and explicit limits of 101 and 256", "100", "101", "256")
def _(world: World) -> Iterable[str]:
    engine = world.engine(search={"max_length": 100})
    for limit in (0, 101, 256):
        request = engine.request("A", max_session_tokens=limit)
        room = (limit or 100) - 90
        request.begin([5] * 90, min_generated_tokens=room)
        yield str(90 + len(tokens(finish(engine), request)))


@row("B8", "a prompt of all 256 tokens, then of 255", "InvalidArgument", "A1 T|F MaxSessionTokens [255,1,0]")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    request = engine.request("A")
    yield attempt(lambda: request.begin([5] * 256), "256")
    request.begin([5] * 255, min_generated_tokens=1)
    yield from map(str, finish(engine))


@row("B9", "a session of 4: a prompt of 4, then of 3", "InvalidArgument", "A1 T|F MaxSessionTokens [3,1,0]")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    request = engine.request("A", max_session_tokens=4)
    yield attempt(lambda: request.begin([5, 6, 7, 8]), "4")
    request.begin([5, 6, 7], min_generated_tokens=1)
    yield from map(str, finish(engine))


@row(
    "B10",
    "50 requests with one turn each, none closed",
    "50 of 50 finished",
    ruling="dormant residents never block others, so there is no CapacityBlocked (rows E5, E6)",
)
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    for number in range(50):
        engine.request(f"R{number}-").begin([5 + number] * (1 + number % 9), 3)
    ended = endings(finish(engine))
    yield f"{sum('F MaxGeneratedTokens' in line for line in ended)} of {len(ended)} finished"


# --- C: BeginTurn -----------------------------------------------------------------------------------------------------


@row("C1", "turns count from 1; a refused one takes no id", "1", "InvalidArgument", "2", "InvalidArgument", "3")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    request = engine.request("A")
    for turn in range(3):
        if turn:
            yield attempt(lambda: request.begin([]))
        yield attempt(lambda: request.begin([5], 1))
        finish(engine)


@row("C2", "empty input", "InvalidArgument", "1")
def _(world: World) -> Iterable[str]:
    request = world.engine().request("A")
    yield attempt(lambda: request.begin([]), "empty")
    yield attempt(lambda: request.begin([5]))


@row("C3", "no input at all where three tokens are promised", "InvalidArgument", "1")
def _(world: World) -> Iterable[str]:
    request = world.engine().request("A")
    yield attempt(lambda: request.begin_with(None))
    yield attempt(lambda: request.begin([5]))


@row("C4", "nowhere to write the id", "InvalidArgument", "1", only="c")
def _(world: World) -> Iterable[str]:
    from drivers import CRequest, check, ffi, lib

    request = world.engine().request("A")
    assert isinstance(request, CRequest)
    token = ffi.new("int32_t[]", [5])
    begin = lib.OgaRequestBeginTurn
    yield attempt(lambda: check(begin(request.pointer, ffi.NULL, token, 1, ffi.NULL)), "out_turn_id")
    yield attempt(lambda: request.begin([5]))


@row("C5", "a count of 2^63 and of 2^64-1: the input is not read", "InvalidArgument", "InvalidArgument", "1", only="c")
def _(world: World) -> Iterable[str]:
    from drivers import CRequest, ffi

    request = world.engine().request("A")
    assert isinstance(request, CRequest)
    token = ffi.new("int32_t[]", [5])
    for count in (2**63, MOST):
        yield attempt(lambda count=count: request.begin_raw(None, token, count), "session limit")
    yield attempt(lambda: request.begin([5]))


@row(
    "C6",
    "while the turn is queued, and while it is active",
    "InvalidState",
    "InvalidState",
    "A1 T|F MaxGeneratedTokens [1,2,0]",
)
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    request, buffer = engine.request("A"), engine.buffer(4)
    request.begin([5], 2)
    yield attempt(lambda: request.begin([6]), "turn 1")
    engine.run(buffer)
    yield attempt(lambda: request.begin([6]), "turn 1")
    yield step(engine, buffer)


@row("C7", "with an own event undrained, and with another's", "InvalidState", "2", "2")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    first, second, buffer = engine.request("A"), engine.request("B"), engine.buffer(1)
    for request in (first, second):
        request.begin([5], 1)
    engine.run(buffer)
    yield attempt(lambda: second.begin([6]), "events")
    yield attempt(lambda: first.begin([6], 1))
    engine.run(buffer)
    yield attempt(lambda: second.begin([6], 1))


@row("C8", "on a closed request, and after the engine is destroyed", "InvalidState", "InvalidState")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    first, second = engine.request("A"), engine.request("B")
    first.close()
    yield attempt(lambda: first.begin([5]), "closed")
    engine.close()
    yield attempt(lambda: second.begin([5]))


@row("C9", "with the options of another request", "InvalidArgument", "1")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    first, second = engine.request("A"), engine.request("B")
    options = second.options(max_generated_tokens=1)
    yield attempt(lambda: first.begin_with([5], options), "another request")
    yield attempt(lambda: first.begin([5]))


@row(
    "C10",
    "ids 512, 1000, -1, -2^31 and 2^31-1 of a vocabulary of 512",
    *["InvalidArgument"] * 5,
    "1",
    ruling="1: refused at the call, nothing changes",
)
def _(world: World) -> Iterable[str]:
    request = world.engine().request("A")
    for token in (512, 1000, -1, -(2**31), 2**31 - 1):
        yield attempt(lambda token=token: request.begin([5, token]), str(token), "511")
    yield attempt(lambda: request.begin([5]))


@row("C11", "max_generated_tokens of 2^64-1: only the session ends it", "A1 T|F MaxSessionTokens [250,6,0]")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    engine.request("A").begin([5] * 250, max_generated_tokens=MOST, min_generated_tokens=6)
    yield from endings(finish(engine))


@row("C12", "max and min of 0 are unset", "same")
def _(world: World) -> Iterable[str]:
    said = []
    for options in ({}, {"max_generated_tokens": 0, "min_generated_tokens": 0}):
        engine = world.engine()
        engine.request("A").begin([5] * 240, **options)
        seen = finish(engine)
        said.append((tokens(seen), endings(seen)))
    yield same(said[1], said[0])


@row("C13", "min of 5 and max of 2", "InvalidArgument", "1")
def _(world: World) -> Iterable[str]:
    request = world.engine().request("A")
    yield attempt(lambda: request.begin([5], min_generated_tokens=5, max_generated_tokens=2), "5", "2")
    yield attempt(lambda: request.begin([5]))


@row("C14", "min beyond the session: 10^6, 2^64-1, 256; then 255", *["InvalidArgument"] * 3, "1")
def _(world: World) -> Iterable[str]:
    request = world.engine().request("A")
    for least in (10**6, MOST, 256, 255):
        yield attempt(lambda least=least: request.begin([5], min_generated_tokens=least))


@row("C15", "C, A, B begin in this order", "C1 T, A1 T, B1 T", "C1 T, A1 T, B1 T")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    by_name = {name: engine.request(name) for name in "ABC"}
    for name in "CAB":
        by_name[name].begin([5], 5)
    buffer = engine.buffer(8)
    yield step(engine, buffer)
    yield step(engine, buffer)


# --- D: runs, events, capacity ----------------------------------------------------------------------------------------


def three(engine: Engine, count: int = 4) -> list[Request]:
    """Requests A, B and C with a turn each."""
    requests = [engine.request(name) for name in "ABC"]
    for length, request in enumerate(requests, start=1):
        request.begin([5] * length, count)
    return requests


@row("D1", "three requests, room for eight events", "A1 T, B1 T, C1 T")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    three(engine)
    yield step(engine, engine.buffer(8))


@row("D2", "room for one event, then for two", "A1 T", "B1 T", "C1 T", "steps: 1", "A1 T, B1 T", "C1 T", "steps: 2")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    three(engine)
    for capacity, runs in ((1, 3), (2, 2)):
        buffer = engine.buffer(capacity)
        for _ in range(runs):
            yield step(engine, buffer)
        yield f"steps: {engine.count('steps')}"


@row("D3", "no room at all", "-", "-", "steps: 0", "true", "InvalidState")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    three(engine)
    buffer = engine.buffer(0)
    yield step(engine, buffer)
    yield step(engine, buffer)
    yield f"steps: {engine.count('steps')}"
    yield attempt(engine.pending)
    yield on_another_thread(lambda: engine.run(buffer))


@row("D4", "no buffer", "InvalidArgument", "steps: 0")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    three(engine)
    yield attempt(lambda: engine.run(None), "buffer")
    yield f"steps: {engine.count('steps')}"


@row("D4", "no buffer and no engine: the buffer is named first", "InvalidArgument", "InvalidArgument", only="c")
def _(world: World) -> Iterable[str]:
    from drivers import CBuffer, check, ffi, lib

    buffer = world.engine().buffer(1)
    assert isinstance(buffer, CBuffer)
    yield attempt(lambda: check(lib.OgaEngineRun(ffi.NULL, ffi.NULL)), "buffer must not be null.")
    yield attempt(lambda: check(lib.OgaEngineRun(ffi.NULL, buffer.pointer)), "engine must not be null.")


@row("D5", "the buffer of another engine", "A1 T", "InvalidArgument", "kept", "steps: 0")
def _(world: World) -> Iterable[str]:
    engine, other = world.engine(), world.engine()
    engine.request("A").begin([5], 2)
    other.request("B").begin([5], 2)
    buffer = engine.buffer(4)
    before = engine.run(buffer)
    yield str(before[0])
    yield attempt(lambda: other.run(buffer), "another engine")
    yield "kept" if buffer.seen() == before else "changed"
    yield f"steps: {other.count('steps')}"


@row("D6", "room for 2^20 events; for more, up to 2^64-1", "ok", *["InvalidArgument"] * 4)
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    for capacity in (2**20, 2**20 + 1, 2**40, 2**60, MOST):
        yield attempt(lambda capacity=capacity: engine.buffer(capacity))


@row("D7", "the last token carries the end", "A1 T", "A1 T|F MaxGeneratedTokens [3,2,0]", "-")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    engine.request("A").begin([5, 6, 7], 2)
    buffer = engine.buffer(4)
    for _ in range(3):
        yield step(engine, buffer)


@row("D8", "an EOS is neither emitted nor counted nor kept", "A1 F Eos [3,4,0]", "token 0", "same")
def _(world: World) -> Iterable[str]:
    said = world.alone([5, 6, 7], 5)
    assert said[4] not in said[:4]
    engine = world.engine(eos=said[4])
    request = engine.request("A")
    request.begin([5, 6, 7])
    seen = finish(engine)
    yield str(seen[-1])
    yield f"token {seen[-1].token}"
    request.begin([9], 3)
    other = world.engine(eos=said[4])
    other.request("B").begin([5, 6, 7, *said[:4], 9], 3)
    yield same(tokens(finish(engine)), tokens(finish(other)))


@row("D9", "an event without an end has no usage, reason, error or stop string", "0 (0, 0, 0) 0 -1")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    engine.request("A").begin([5, 6], 2)
    (event,) = engine.run(engine.buffer(4))
    yield f"{int(event.reason)} {event.usage} {event.error} {event.stop_index}"


@row("D10", "a part of a long prompt gives no event", "-", "true", "-", "A1 T|F MaxGeneratedTokens [10,1,0]", "false")
def _(world: World) -> Iterable[str]:
    engine = world.engine(max_scheduled_tokens=4)
    engine.request("A").begin([7] * 10, 1)
    buffer = engine.buffer(4)
    yield step(engine, buffer)
    yield attempt(engine.pending)
    yield step(engine, buffer)
    yield step(engine, buffer)
    yield attempt(engine.pending)


@row("D11", "an idle engine", "false", "-", "false", "steps: 0")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    engine.request("A")
    yield attempt(engine.pending)
    yield step(engine, engine.buffer(4))
    yield attempt(engine.pending)
    yield f"steps: {engine.count('steps')}"


@row("D12", "the second event, after a run that had but one", "true", "false", ruling="a stale view of Python raises")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    engine.request("A").begin([5], 1)
    engine.request("B").begin([6], 2)
    buffer = engine.buffer(4)
    for _ in range(2):
        engine.run(buffer)
        yield str(buffer.has(1)).lower()


@row("D13", "the event of a request that was closed after the run", "A1 T", "kept", "false")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    request, buffer = engine.request("A"), engine.buffer(4)
    request.begin([5], 2)
    before = engine.run(buffer)
    yield str(before[0])
    request.close()
    yield "kept" if buffer.seen() == before else "changed"
    yield attempt(engine.pending)


@row(
    "D14",
    "sixteen turns whose need is four times the cache",
    "16 finished, 0 without a request",
    ruling="pressure is met by preemption: no CapacityBlocked as long as somebody can run",
)
def _(world: World) -> Iterable[str]:
    engine = world.engine(num_blocks=16)
    for number in range(16):
        engine.request(f"R{number}-").begin([5 + number] * 8, 8)
    seen = finish(engine)
    assert engine.count("preemptions") > 0
    yield f"{len(endings(seen))} finished, {sum(each.request is None for each in seen)} without a request"


@row("D15", "decodes come before prompts", "A1 T", "A1 T, B1 T", "A1 T, B1 T, C1 T")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    buffer = engine.buffer(8)
    for name in "ABC":
        engine.request(name).begin([5], 9)
        yield step(engine, buffer)


# --- E: scheduling ----------------------------------------------------------------------------------------------------


@row("E1", "6 tokens a step, prompts of 10, 3 and 2", "-", "C1 T", "C1 T, A1 T, B1 T")
def _(world: World) -> Iterable[str]:
    engine = world.engine(max_scheduled_tokens=6)
    for name, length in (("A", 10), ("B", 3), ("C", 2)):
        engine.request(name).begin([ord(name)] * length, 9)
    buffer = engine.buffer(8)
    for _ in range(3):
        yield step(engine, buffer)


@row(
    "E2",
    "2 tokens a step, max_wait_steps 8: two long decodes, and a third prompt",
    "C within 8 steps",
    ruling="no starvation: decode first has a bound",
)
def _(world: World) -> Iterable[str]:
    engine = world.engine(max_scheduled_tokens=2, max_wait_steps=8)
    for name in "ABC":
        engine.request(name).begin([5], 60)
    buffer = engine.buffer(8)
    steps = next(n for n in range(1, 60) if engine.requests[2] in [each.request for each in engine.run(buffer)])
    yield "C within 8 steps" if steps <= 8 else f"C after {steps} steps"


@row("E3", "1 token a step, a prompt of 3", "-", "-", "A1 T")
def _(world: World) -> Iterable[str]:
    engine = world.engine(max_scheduled_tokens=1)
    engine.request("A").begin([5, 6, 7], 2)
    buffer = engine.buffer(4)
    for _ in range(3):
        yield step(engine, buffer)


@row("E4", "chunk_size 4, prompts of 10 and 3: B starts at once, A in 4, 4, 2", "B1 T", "B1 T", "B1 T, A1 T")
def _(world: World) -> Iterable[str]:
    engine = world.engine(search={"chunk_size": 4})
    engine.request("A").begin([5] * 10, 9)
    engine.request("B").begin([6] * 3, 9)
    buffer = engine.buffer(4)
    for _ in range(3):
        yield step(engine, buffer)


@row("E4", "chunk_size 0 is off; chunk_size 2 cuts a prompt of 3", "A1 T", "-", "A1 T")
def _(world: World) -> Iterable[str]:
    for chunk, runs in ((0, 1), (2, 2)):
        engine = world.engine(search={"chunk_size": chunk})
        engine.request("A").begin([5] * 3, 9)
        buffer = engine.buffer(4)
        for _ in range(runs):
            yield step(engine, buffer)


@row("E5", "max_batch_size 2: A and B are complete but open, C is new", "C1 T", ruling="E5 is dropped: C runs at once")
def _(world: World) -> Iterable[str]:
    engine = world.engine(max_batch_size=2)
    for name in "AB":
        engine.request(name).begin([5], 1)
    finish(engine)
    engine.request("C").begin([6], 2)
    yield step(engine, engine.buffer(4))


@row(
    "E6",
    "4 blocks: A holds 3 of them between turns, B needs 3; then A goes on",
    "B1 T|F MaxGeneratedTokens [11,1,0]",
    "dropped: 1",
    "same",
    ruling="E6 is dropped: a cache between turns gives way and is computed again",
)
def _(world: World) -> Iterable[str]:
    engine = world.engine(num_blocks=4)
    first, second = engine.request("A"), engine.request("B")
    first.begin([5] * 8, 3)
    said = tokens(finish(engine))
    second.begin([6] * 11, 1)
    yield from map(str, finish(engine))
    yield f"dropped: {engine.count('dropped_residents')}"
    second.close()
    first.begin([7], 3)
    yield same(tokens(finish(engine)), world.alone([5] * 8 + said + [7], 3))


@row("E7", "4 blocks of 4: a prompt of 12 and ten tokens wanted", "A1 T|F MaxSessionTokens [12,5,0]")
def _(world: World) -> Iterable[str]:
    engine = world.engine(num_blocks=4)
    engine.request("A").begin([5] * 12, max_generated_tokens=10, min_generated_tokens=5)
    yield from endings(finish(engine))


@row(
    "E8",
    "what could never fit: a session, then a prompt, beyond the cache",
    "17",
    "InvalidArgument",
    "InvalidArgument",
    "1",
    ruling="refused at the call, so that no turn is ever unserviceable here",
)
def _(world: World) -> Iterable[str]:
    engine = world.engine(num_blocks=4)
    yield str(engine.capabilities()[2])
    yield attempt(lambda: engine.request("A", max_session_tokens=18), "17")
    request = engine.request("A")
    yield attempt(lambda: request.begin([5] * 17), "17")
    yield attempt(lambda: request.begin([5] * 16))


# --- G: cancel, rewind, close -----------------------------------------------------------------------------------------


@row("G1", "cancel before the first turn", "InvalidState", "InvalidState")
def _(world: World) -> Iterable[str]:
    request = world.engine().request("A")
    yield from attempts(lambda: request.cancel(0), lambda: request.cancel(1))


@row("G2", "cancel a stale, zero or future id; a complete turn; twice", *["false"] * 4, "true", *["false"] * 2)
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    request = engine.request("A")
    request.begin([5], 1)
    finish(engine)
    yield attempt(lambda: request.cancel(1))
    request.begin([5], 9)
    yield from attempts(*(lambda turn=turn: request.cancel(turn) for turn in (1, 0, MOST, 2, 2)))
    finish(engine)
    yield attempt(lambda: request.cancel(2))


@row(
    "G3",
    "cancel a queued turn, go on",
    "true",
    "true",
    "A1 F Cancelled [2,0,0]",
    "A2 T|F MaxGeneratedTokens [1,3,0]",
    "same",
)
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    request = engine.request("A")
    request.begin([5, 6])
    yield attempt(lambda: request.cancel(1))
    yield attempt(engine.pending)
    yield from map(str, finish(engine))
    request.begin([7], 3)
    seen = finish(engine)
    yield from endings(seen)
    yield same(tokens(seen), world.alone([5, 6, 7], 3))


@row("G4", "cancel an active turn, go on", "A1 F Cancelled [2,2,0]", "A2 T|F MaxGeneratedTokens [1,3,0]", "same")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    request, buffer = engine.request("A"), engine.buffer(4)
    request.begin([5, 6], 9)
    said = [engine.run(buffer)[0].token for _ in range(2)]
    request.cancel(1)
    yield from map(str, finish(engine))
    request.begin([7], 3)
    seen = finish(engine)
    yield from endings(seen)
    yield same(tokens(seen), world.alone([5, 6, *said, 7], 3))


@row("G4", "cancel inside a chunked prompt, go on", "-", "-", "A1 F Cancelled [40,0,0]", "96 of 96 free but 2", "same")
def _(world: World) -> Iterable[str]:
    engine = world.engine(max_scheduled_tokens=4)
    request, buffer = engine.request("A"), engine.buffer(4)
    request.begin([5] * 40, 9)
    yield step(engine, buffer)
    yield step(engine, buffer)
    request.cancel(1)
    yield from map(str, finish(engine))
    yield f"96 of {engine.count('total_blocks')} free but {engine.count('total_blocks') - engine.count('free_blocks')}"
    request.begin([7], 3)
    yield same(tokens(finish(engine)), world.alone([5] * 40 + [7], 3))


@row("G5", "cancel while a token of the turn is undrained", "A1 T", "true", "B1 T|F Cancelled [2,1,0]", "A1 T")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    first, second, buffer = engine.request("A"), engine.request("B"), engine.buffer(1)
    first.begin([5], 9)
    second.begin([5, 6], 9)
    yield step(engine, buffer)
    yield attempt(lambda: second.cancel(1))
    yield step(engine, buffer)
    yield step(engine, buffer)


@row(
    "G6",
    "cancel after close, and after the engine is destroyed",
    "InvalidState",
    "InvalidState",
    ruling="the message says what is really closed",
)
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    first, second = engine.request("A"), engine.request("B")
    for request in (first, second):
        request.begin([5])
    first.close()
    yield attempt(lambda: first.cancel(1), "closed")
    engine.close()
    yield attempt(lambda: second.cancel(1), "closed")


@row("G7", "rewind before and during a turn", "NotFound", "InvalidState", "InvalidState")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    request = engine.request("A")
    yield attempt(lambda: request.rewind(1))
    request.begin([5], 9)
    yield attempt(lambda: request.rewind(1))
    engine.run(engine.buffer(4))
    yield attempt(lambda: request.rewind(1))


@row("G8", "rewind with an event undrained", "InvalidState", "ok")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    buffer = engine.buffer(1)
    for name in "AB":
        engine.request(name).begin([5], 1)
    engine.run(buffer)
    request = engine.requests[1]
    yield attempt(lambda: request.rewind(1), "events")
    engine.run(buffer)
    yield attempt(lambda: request.rewind(1))


@row("G9", "rewind to an unknown id: 0, future, gone", "NotFound", "NotFound", "ok", "NotFound", "NotFound")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    request = engine.request("A")
    for _ in range(2):
        request.begin([5], 1)
        finish(engine)
    yield from attempts(*(lambda turn=turn: request.rewind(turn) for turn in (0, 3, 1, 1, 2)))


@row("G10", "rewind to turn 2 of 3", "-", "4", "same", "kept 4 blocks")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    request = engine.request("A")
    request.begin([5] * 10, 3)
    finish(engine)
    said = []
    for prompt in ([6, 7], [8]):
        request.begin(prompt, 4)
        said.append(tokens(finish(engine)))
    request.rewind(2)
    kept = engine.count("total_blocks") - engine.count("free_blocks")
    yield step(engine, engine.buffer(4))
    yield attempt(lambda: request.begin([6, 7], 4))
    yield same(tokens(finish(engine)), said[0])
    yield f"kept {kept} blocks"


@row("G11", "rewind a cancelled turn: refused until it is drained", "InvalidState", "ok", "same")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    request = engine.request("A")
    request.begin([9, 9], 9)
    engine.run(engine.buffer(4))
    request.cancel(1)
    yield attempt(lambda: request.rewind(1))
    finish(engine)
    yield attempt(lambda: request.rewind(1))
    request.begin([5, 6, 7], 4)
    yield same(tokens(finish(engine)), world.alone([5, 6, 7], 4))


@row("G12", "rewind a closed request", "InvalidState")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    request = engine.request("A")
    request.begin([5], 1)
    finish(engine)
    request.close()
    yield attempt(lambda: request.rewind(1), "closed")


@row("G13", "close in every state, twice", *["ok false 0"] * 6)
def _(world: World) -> Iterable[str]:
    engine = world.engine(max_scheduled_tokens=8)
    buffer = engine.buffer(1)

    def created(request: Request) -> None: ...

    def queued(request: Request) -> None:
        request.begin([5], 9)

    def prefilling(request: Request) -> None:
        request.begin([5] * 20, 9)
        engine.run(buffer)

    def active(request: Request) -> None:
        request.begin([5], 9)
        engine.run(buffer)

    def complete(request: Request) -> None:
        request.begin([5], 1)
        finish(engine)

    def undrained(request: Request) -> None:
        request.begin([5], 9)
        request.cancel(1)

    for reach in (created, queued, prefilling, active, complete, undrained):
        request = engine.request("A")
        reach(request)
        request.close()
        outcome = attempt(request.close)
        used = engine.count("total_blocks") - engine.count("free_blocks")
        yield f"{outcome} {attempt(engine.pending)} {used}"


@row("G14", "turn options of a closed request: create, set, begin", *["InvalidState"] * 3)
def _(world: World) -> Iterable[str]:
    from drivers import CRequest, check, lib, translated

    request = world.engine().request("A")
    options = request.options(top_k=3)
    request.close()
    yield attempt(lambda: request.options(top_k=3), "closed")
    if isinstance(request, CRequest):
        yield attempt(lambda: check(lib.OgaTurnOptionsReset(options)), "closed")
    else:
        yield attempt(translated(options.reset), "gone")
    yield attempt(lambda: request.begin_with([5], options), "closed")


@row("G15", "release the last handle on another thread", "true", "ok", "false", "live: 1", "A1 T")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    kept, dropped = engine.request("A"), engine.request("B")
    dropped.begin([5] * 9, 9)
    dropped.cancel(1)
    yield attempt(engine.pending)
    yield on_another_thread(dropped.release)
    yield attempt(engine.pending)
    yield f"live: {engine.count('live_requests')}"
    kept.begin([5], 2)
    yield step(engine, engine.buffer(4))


@row("fork", "before a turn, during one, undrained; then both go on", *["InvalidState"] * 3, "2", "2", "same", "same")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    request, other, buffer = engine.request("A"), engine.request("B"), engine.buffer(1)
    yield attempt(lambda: engine.fork("X", request))
    other.begin([9], 4)
    request.begin([5, 6], 4)
    yield attempt(lambda: engine.fork("X", request))
    said = []
    while len(said) < 3:
        said += tokens(engine.run(buffer), request)
    while engine.run(buffer)[0].request is not other:
        raise AssertionError("the events of a step come in the order of submission")
    yield attempt(lambda: engine.fork("X", request), "events")
    said += tokens(finish(engine), request)
    twin = engine.fork("X", request)
    yield attempt(lambda: request.begin([7], 3))
    yield attempt(lambda: twin.begin([8], 3))
    seen = finish(engine)
    yield same(tokens(seen, request), world.alone([5, 6, *said, 7], 3))
    yield same(tokens(seen, twin), world.alone([5, 6, *said, 8], 3))


# --- H: turn policy ---------------------------------------------------------------------------------------------------

REFUSED_IN_THE_SETTER = {
    "H1": ("temperature", (-1.0, NAN, INFINITY)),
    "H2": ("top_p", (-0.1, 1.1, NAN)),
    "H3": ("top_k", (-1, -(2**31))),
    "H5": ("repetition_penalty", (0.0, -1.0, INFINITY, NAN)),
}


def _setter_row(id: str, name: str, values: tuple[float, ...]) -> None:
    @row(id, f"{name} of {values}", *["InvalidArgument"] * len(values), "1", ruling="2: refused in the setter already")
    def _(world: World) -> Iterable[str]:
        request = world.engine().request("A")
        for value in values:
            yield attempt(lambda value=value: request.options(**{name: value}), name)
        yield attempt(lambda: request.begin([5]))


for _id, (_name, _values) in REFUSED_IN_THE_SETTER.items():
    _setter_row(_id, _name, _values)


@row(
    "H4",
    "top_k of 513 of a vocabulary of 512",
    "same",
    ruling="2: H4 is dropped, from the vocabulary size up it is off",
)
def _(world: World) -> Iterable[str]:
    wide = {"do_sample": True, "temperature": 2.0, "seed": 4}
    yield same(world.alone([5], 9, top_k=513, **wide), world.alone([5], 9, top_k=0, **wide))


@row(
    "H6",
    "search.no_repeat_ngram_size of -1",
    "InvalidArgument",
    ruling="the model's own value; there is no turn option",
)
def _(world: World) -> Iterable[str]:
    yield attempt(lambda: world.model(search={"no_repeat_ngram_size": -1}), "search.no_repeat_ngram_size")


@row("H7", "greedy with temperature 0.5, top_p 0.5, top_k 2", *["InvalidArgument"] * 6, "1")
def _(world: World) -> Iterable[str]:
    request = world.engine().request("A")
    for greedy in ({"do_sample": False}, {}):
        for explicit in ({"temperature": 0.5}, {"top_p": 0.5}, {"top_k": 2}):
            yield attempt(lambda options=greedy | explicit: request.begin([5], **options), *explicit)
    yield attempt(lambda: request.begin([5]))


@row("H8", "greedy with top_k, top_p and temperature of 0 and 1", *["same"] * 6)
def _(world: World) -> Iterable[str]:
    plain = world.alone([5, 6, 7], 5)
    for option in (
        {"top_k": 0},
        {"top_k": 1},
        {"top_p": 0.0},
        {"top_p": 1.0},
        {"temperature": 0.0},
        {"temperature": 1.0},
    ):
        yield same(world.alone([5, 6, 7], 5, do_sample=False, **option), plain)


@row("H9", "do_sample with top_k 0 and top_p 0 or 1", "1", "1", "1", ruling="2: H9 is dropped, no bound is simply off")
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    for bound in ({"top_p": 0.0}, {"top_p": 1.0}, {"top_p": 0.5}):
        request = engine.request("A")
        yield attempt(lambda options=bound, request=request: request.begin([5], do_sample=True, top_k=0, **options))


@row("H10", "do_sample with an own top_k of 1, temperature of 0", "same", "same")
def _(world: World) -> Iterable[str]:
    plain = world.alone([5, 6, 7], 5)
    for option in ({"top_k": 1}, {"temperature": 0.0}):
        yield same(world.alone([5, 6, 7], 5, do_sample=True, **option), plain)


@row("H11", "do_sample where the model's own values are greedy", "InvalidArgument", "1", "InvalidArgument", "1")
def _(world: World) -> Iterable[str]:
    for model, own in (({"top_k": 1}, {"top_k": 5}), ({"temperature": 0.0}, {"temperature": 0.7})):
        request = world.engine(search=model).request("A")
        yield attempt(lambda request=request: request.begin([5], do_sample=True), "search." + next(iter(model)))
        yield attempt(lambda request=request, own=own: request.begin([5], do_sample=True, **own))


@row(
    "H12",
    "min_generated_tokens puts the EOS off, and the next best takes its place",
    "F Eos [3,4,0]",
    "F Eos [3,0,0]",
    "5 tokens, no EOS",
)
def _(world: World) -> Iterable[str]:
    said = world.alone([5, 6, 7], 5)
    for eos in (said[4], said[0]):
        engine = world.engine(eos=eos)
        engine.request("A").begin([5, 6, 7])
        yield endings(finish(engine))[0].removeprefix("A1 ")
    engine.request("B").begin([5, 6, 7], 5)
    second = tokens(finish(engine))
    yield f"{len(second)} tokens, {'an' if said[0] in second else 'no'} EOS"


@row("H13", "options serve again and do not carry over", "2", "2", "3")
def _(world: World) -> Iterable[str]:
    engine = world.engine(search={"max_length": 30})
    request = engine.request("A")
    options = request.options(max_generated_tokens=2, min_generated_tokens=2)
    for given in (options, options, request.options(min_generated_tokens=3, max_generated_tokens=3)):
        request.begin_with([5], given)
        yield str(len(tokens(finish(engine))))


@row("H13", "after a sampled turn a turn without options is the model's own again", "same")
def _(world: World) -> Iterable[str]:
    first, second = (world.engine() for _ in range(2))
    for engine, options in ((first, {"do_sample": True, "temperature": 3.0}), (second, {})):
        request = engine.request("A")
        request.begin([5], 1, **options)
        finish(engine)
        request.rewind(1)
        request.begin([5, 6, 7])
    yield same(*([each.token for each in finish(engine)][:8] for engine in (first, second)))


# --- I: seeds ---------------------------------------------------------------------------------------------------------

WIDE = {"do_sample": True, "temperature": 3.0, "top_k": 0, "top_p": 1.0}


@row("I1", "the same seed twice; seeds 0, 1, 2^32 and 2^64-1", "same", "4 streams")
def _(world: World) -> Iterable[str]:
    streams = [tuple(world.alone([5, 6, 7], 12, **WIDE, seed=seed)) for seed in (0, 0, 1, 2**32, MOST)]
    yield same(streams[1], streams[0])
    yield f"{len(set(streams))} streams"


@row("I2", "no seed", "3 streams")
def _(world: World) -> Iterable[str]:
    yield f"{len({tuple(world.alone([5, 6, 7], 16, **WIDE)) for _ in range(3)})} streams"


def _conversation(world: World, middle: dict[str, object] | None) -> list[list[int]]:
    engine = world.engine()
    request = engine.request("A")
    said = []
    for options in (WIDE | {"seed": 9}, middle, WIDE):
        if options is not None:
            request.begin([5], 12, **options)
            said.append(tokens(finish(engine)))
    return said


@row("I3", "a seeded turn, then an unseeded one", "same", "differs from another seed")
def _(world: World) -> Iterable[str]:
    first, second = _conversation(world, None), _conversation(world, None)
    yield same(second, first)
    yield "differs from another seed" if _conversation(world, WIDE | {"seed": 10})[2] != first[1] else "same"


@row("I4", "a greedy turn between a seeded and an unseeded one", "same")
def _(world: World) -> Iterable[str]:
    greedy = {"do_sample": False}
    yield same(_conversation(world, greedy), _conversation(world, greedy))


# --- N: fatal state ---------------------------------------------------------------------------------------------------


@row(
    "N1",
    "the model fails while A decodes and B and C begin; room for two events",
    "A1 T",
    "A1 F|Failed error 6 [2,1,0], B1 F|Failed error 6 [3,0,0]",
    "true",
    "C1 F|Failed error 6 [1,0,0]",
    "false",
    failing_model=True,
)
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    engine.request("A").begin([5, 6], 9)
    buffer = engine.buffer(2)
    yield step(engine, buffer)
    engine.request("B").begin([5, 450, 6], 9)
    engine.request("C").begin([7], 9)
    yield step(engine, buffer)
    yield attempt(engine.pending)
    yield step(engine, buffer)
    yield attempt(engine.pending)


@row(
    "N2",
    "after that: run, run without room, create, begin, rewind, fork",
    *["EngineUnhealthy"] * 6,
    failing_model=True,
)
def _(world: World) -> Iterable[str]:
    engine = world.engine()
    first, failed = engine.request("A"), engine.request("B")
    first.begin([5], 1)
    finish(engine)
    failed.begin([450], 9)
    finish(engine)
    for capacity in (4, 0):
        yield attempt(lambda capacity=capacity: engine.run(engine.buffer(capacity)), "Cause:", "create a new one")
    yield from attempts(
        lambda: engine.request("C"),
        lambda: first.begin([5]),
        lambda: first.rewind(1),
        lambda: engine.fork("X", first),
    )


@row(
    "N3",
    "close, capabilities and statistics after that; another engine",
    "ok",
    "ok",
    "ok",
    "0 used",
    "same",
    failing_model=True,
)
def _(world: World) -> Iterable[str]:
    engine, other = world.engine(), world.engine()
    request = engine.request("A")
    request.begin([450] * 9, 9)
    finish(engine)
    yield attempt(request.close)
    yield attempt(engine.capabilities)
    yield attempt(request.close)
    yield f"{engine.count('total_blocks') - engine.count('free_blocks')} used"
    other.request("B").begin([5, 6, 7], 2)
    seen = tokens(finish(other))
    third = world.engine()
    third.request("C").begin([5, 6, 7], 2)
    yield same(tokens(finish(third)), seen)
