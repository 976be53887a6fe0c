"""Sections D and E: runs, events, capacity and scheduling."""

from __future__ import annotations

from collections.abc import Iterable

from drivers import Engine, Request
from rows import MOST, row, same
from world import World, attempt, endings, finish, on_another_thread, step, tokens


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
    from drivers import CBuffer, check

    from oga._native.loader import ffi, lib

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
    "sixteen turns whose need is ten times the cache",
    "16 finished, 0 without a request",
    ruling="pressure is met by preemption: no CapacityBlocked as long as somebody can run",
)
def _(world: World) -> Iterable[str]:
    engine = world.engine(num_blocks=16)
    for number in range(16):
        engine.request(f"R{number}-").begin([5 + number] * 8, 32)
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
