"""Section N: what is left after the model failed for good."""

from __future__ import annotations

from collections.abc import Iterable

from rows import row, same
from world import World, attempt, attempts, finish, step, tokens


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
