"""Section G, and forks: cancel, rewind, fork, close."""

from __future__ import annotations

from collections.abc import Iterable

from drivers import Request
from rows import MOST, row, same
from world import World, attempt, attempts, endings, finish, on_another_thread, step, tokens


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
    from drivers import CRequest, check, translated

    from oga._native.loader import lib

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
    said: list[int] = []
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
