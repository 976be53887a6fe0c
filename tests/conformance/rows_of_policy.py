"""Sections H and I: how a turn generates, and seeds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from rows import MOST, row, same
from world import World, attempt, endings, finish, tokens

NAN, INFINITY = float("nan"), float("inf")


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


WIDE = {"do_sample": True, "temperature": 3.0, "top_k": 0, "top_p": 1.0}


@row("I1", "the same seed twice; seeds 0, 1, 2^32 and 2^64-1", "same", "4 streams")
def _(world: World) -> Iterable[str]:
    streams = [tuple(world.alone([5, 6, 7], 12, **WIDE, seed=seed)) for seed in (0, 0, 1, 2**32, MOST)]
    yield same(streams[1], streams[0])
    yield f"{len(set(streams))} streams"


@row("I2", "no seed", "3 streams")
def _(world: World) -> Iterable[str]:
    yield f"{len({tuple(world.alone([5, 6, 7], 16, **WIDE)) for _ in range(3)})} streams"


def _conversation(world: World, middle: Mapping[str, object] | None) -> list[list[int]]:
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
