"""Sections B and C: requests, their limits, and the start of turns."""

from __future__ import annotations

from collections.abc import Iterable

from rows import MOST, row, same
from world import World, attempt, endings, finish, step, tokens


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
    from drivers import CRequest, check

    from oga._native.loader import ffi, lib

    request = world.engine().request("A")
    assert isinstance(request, CRequest)
    token = ffi.new("int32_t[]", [5])
    begin = lib.OgaRequestBeginTurn
    yield attempt(lambda: check(begin(request.pointer, ffi.NULL, token, 1, ffi.NULL)), "out_turn_id")
    yield attempt(lambda: request.begin([5]))


@row("C5", "a count of 2^63 and of 2^64-1: the input is not read", "InvalidArgument", "InvalidArgument", "1", only="c")
def _(world: World) -> Iterable[str]:
    from drivers import CRequest

    from oga._native.loader import ffi

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
