"""Absurd limits, no input and impossible ids, while two other requests run undisturbed (cases OB-19, OB-20, OB-21)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from drivers import DRIVERS, Driver, Engine, Request, Seen
from tiny_models import CONTEXT, VOCABULARY
from world import World, attempt, endings, finish, tokens

NEIGHBOURS = ([40, 41, 42], [100, 200, 300, 400, 500] * 3)
LENGTH = 30


class Bystanders:
    """Two requests in mid turn; ``end`` finishes everything and returns the events of the others."""

    def __init__(self, world: World, engine: Engine) -> None:
        self._engine = engine
        self._alone = [world.alone(prompt, LENGTH) for prompt in NEIGHBOURS]
        self._requests = [engine.request(f"neighbour{number}-") for number in range(len(NEIGHBOURS))]
        for request, prompt in zip(self._requests, NEIGHBOURS, strict=True):
            request.begin(prompt, LENGTH)
        self._buffer = engine.buffer(16)
        self._seen: list[Seen] = []
        for _ in range(3):
            self._seen += engine.run(self._buffer)

    def end(self) -> list[Seen]:
        self._seen += finish(self._engine, buffer=self._buffer)
        assert [tokens(self._seen, request) for request in self._requests] == self._alone
        assert len([each for each in self._seen if each.request in self._requests and each.usage != (0, 0, 0)]) == 2
        return [each for each in self._seen if each.request not in self._requests]


@pytest.fixture(params=DRIVERS, ids=lambda driver: driver.name)
def world(request: pytest.FixtureRequest, tiny_folder: Path) -> Iterator[World]:
    driver: Driver = request.param
    models: dict[str, Any] = {}
    made = World(driver, tiny_folder, models)
    try:
        yield made
    finally:
        made.end()
        for model in models.values():
            driver.unload(model)


# Per max_generated_tokens: what a prompt of 250 leads to in a session of 256, with EOS put off as far as is legal.
LIMITS = {0: (6, "MaxSessionTokens"), 1: (1, "MaxGeneratedTokens"), 2**31 - 1: (6, "MaxSessionTokens")}
LIMITS |= {2**31: (6, "MaxSessionTokens"), 2**63: (6, "MaxSessionTokens"), 2**64 - 1: (6, "MaxSessionTokens")}


@pytest.mark.parametrize("limit", LIMITS)
def test_a_limit_on_output_is_a_number_however_large_and_zero_is_none(world: World, limit: int) -> None:
    count, reason = LIMITS[limit]
    engine = world.engine()
    others = Bystanders(world, engine)
    request = engine.request("A")
    request.begin([5] * 250, max_generated_tokens=limit, min_generated_tokens=count)
    seen = others.end()
    assert len(tokens(seen)) == count
    assert endings(seen) == [f"A1 T|F {reason} [250,{count},0]"]


@pytest.mark.parametrize("least", [2**31 - 1, 2**31, 2**63, 2**64 - 1])
def test_a_minimum_that_cannot_be_reached_is_refused(world: World, least: int) -> None:
    engine = world.engine()
    others = Bystanders(world, engine)
    request = engine.request("A")
    assert attempt(lambda: request.begin([5], min_generated_tokens=least), str(least)) == "InvalidArgument"
    assert attempt(lambda: request.begin([5], 2)) == "1"
    assert endings(others.end()) == ["A1 T|F MaxGeneratedTokens [1,2,0]"]


@pytest.mark.parametrize("limit", [CONTEXT + 1, 2**31 - 1, 2**31, 2**32, 2**63, 2**64 - 1])
def test_a_session_longer_than_the_engine_holds_is_refused(world: World, limit: int) -> None:
    engine = world.engine()
    others = Bystanders(world, engine)
    assert attempt(lambda: engine.request("A", max_session_tokens=limit), str(limit)) == "InvalidArgument"
    assert others.end() == []


@pytest.mark.parametrize("length", [CONTEXT - 1, CONTEXT, CONTEXT + 1, 10**6])
def test_a_prompt_fits_with_room_for_one_token_or_is_refused(world: World, length: int) -> None:
    engine = world.engine()
    others = Bystanders(world, engine)
    request = engine.request("A")
    outcome = attempt(lambda: request.begin([5] * length, min_generated_tokens=1))
    if length < CONTEXT:
        assert outcome == "1"
        assert endings(others.end()) == [f"A1 T|F MaxSessionTokens [{length},1,0]"]
    else:
        assert outcome == "InvalidArgument"
        assert attempt(lambda: request.begin([5], 2)) == "1"
        assert endings(others.end()) == ["A1 T|F MaxGeneratedTokens [1,2,0]"]


def nothing(request: Request) -> int:
    return request.begin([])


def no_memory(request: Request) -> int:
    """NULL with a count of 0 where there are pointers, an empty array elsewhere."""
    from drivers import CRequest

    from oga._native.loader import ffi

    if isinstance(request, CRequest):
        return request.begin_raw(None, ffi.NULL, 0)
    return request.begin_with(np.zeros(0, np.int32))


@pytest.mark.parametrize("begin", [nothing, no_memory])
@pytest.mark.parametrize("continuation", [False, True])
def test_no_input_is_refused_and_the_request_can_still_be_used(
    world: World, begin: Callable[[Request], int], continuation: bool
) -> None:
    engine = world.engine()
    request = engine.request("A")
    if continuation:
        request.begin([5, 6], 2)
        before = tokens(finish(engine))
    others = Bystanders(world, engine)
    assert attempt(lambda: begin(request), "empty") == "InvalidArgument"
    assert request.begin([7], 3) == (2 if continuation else 1)
    prompt = [5, 6, *before, 7] if continuation else [7]
    assert tokens(others.end()) == world.alone(prompt, 3)


IMPOSSIBLE = (-1, VOCABULARY, VOCABULARY + 1, 2**31 - 1, -(2**31))


@pytest.mark.parametrize("token", IMPOSSIBLE)
@pytest.mark.parametrize("place", [0, 7, 63])
@pytest.mark.parametrize("continuation", [False, True])
def test_an_id_outside_the_vocabulary_is_named_and_nothing_changes(
    world: World, token: int, place: int, continuation: bool
) -> None:
    engine = world.engine()
    request = engine.request("A")
    if continuation:
        request.begin([5, 6], 2)
        before = tokens(finish(engine))
    others = Bystanders(world, engine)
    prompt = [7] * 64
    prompt[place] = token
    assert attempt(lambda: request.begin(prompt), str(token), str(place), str(VOCABULARY - 1)) == "InvalidArgument"
    assert request.begin([7], 3) == (2 if continuation else 1)
    whole = [5, 6, *before, 7] if continuation else [7]
    assert tokens(others.end()) == world.alone(whole, 3)


@pytest.mark.parametrize("world", [DRIVERS[0]], ids=["python"], indirect=True)
@pytest.mark.parametrize("token", [2**40, 2**40 + 5, -(2**33), 2**32 + 5, 2**63 - 1])
@pytest.mark.parametrize("kind", [list, lambda ids: np.array(ids, np.int64), iter], ids=["list", "int64", "iterator"])
def test_an_id_of_more_than_32_bits_is_not_cut_down_to_a_legal_one(
    world: World, token: int, kind: Callable[[list[int]], Any]
) -> None:
    """Python only: the C API takes 32 bits. 2^32 + 5 would become 5."""
    engine = world.engine()
    others = Bystanders(world, engine)
    request = engine.request("A")
    assert attempt(lambda: request.begin_with(kind([7, token])), str(token)) == "InvalidArgument"
    assert request.begin([7], 3) == 1
    assert tokens(others.end()) == world.alone([7], 3)
