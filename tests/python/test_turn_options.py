"""TurnOptions: every option acts, every bad value is refused and the good one before it stays."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from driving import finish

import oga

NAN, INFINITY = float("nan"), float("inf")


@pytest.fixture
def sample(engine: oga.Engine) -> Callable[..., list[int]]:
    """The tokens of a fresh request with some options."""

    def run(prompt: list[int] | None = None, **options: Any) -> list[int]:
        with engine.create_request() as request:
            count = {"max_generated_tokens": 12} | options
            turn = request.begin_turn(prompt or [5, 6, 7], oga.TurnOptions(request, **count))
            return finish(engine)[request, turn].tokens

    return run


Sample = Callable[..., list[int]]
WIDE = {"do_sample": True, "temperature": 3.0, "top_k": 0, "top_p": 1.0, "min_generated_tokens": 12}


def test_the_default_of_a_greedy_model_is_greedy(sample: Sample) -> None:
    assert (
        sample()
        == sample(do_sample=False)
        == sample(do_sample=True, temperature=0.0)
        == sample(do_sample=True, top_k=1)
    )


def test_a_seed_reproduces_and_another_one_does_not(sample: Sample) -> None:
    first = sample(**WIDE, seed=7)
    assert sample(**WIDE, seed=7) == first
    assert len({tuple(sample(**WIDE, seed=seed)) for seed in (0, 1, 2**32, 2**64 - 1)}) == 4


def test_without_a_seed_requests_differ(sample: Sample) -> None:
    assert len({tuple(sample(**WIDE)) for _ in range(3)}) > 1


def test_a_cleared_seed_is_no_seed(engine: oga.Engine) -> None:
    outputs = set()
    for _ in range(3):
        request = engine.create_request()
        options = oga.TurnOptions(request, **WIDE, seed=7)  # type: ignore[arg-type]
        options.clear_seed()
        options.set_max_generated_tokens(12)
        turn = request.begin_turn([5, 6, 7], options)
        outputs.add(tuple(finish(engine)[request, turn].tokens))
    assert len(outputs) > 1


@pytest.mark.parametrize("narrow", [{"top_k": 1}, {"top_p": 1e-6}, {"temperature": 1e-4}])
def test_a_narrow_distribution_is_the_greedy_one(sample: Sample, narrow: dict[str, float]) -> None:
    assert sample(**(WIDE | narrow)) == sample(min_generated_tokens=12)


def test_a_repetition_penalty_avoids_what_was_said(sample: Sample) -> None:
    plain = sample(min_generated_tokens=12)
    penalised = sample(repetition_penalty=1e6, min_generated_tokens=12)
    assert len(set(penalised)) == 12
    assert len(set(plain)) < 12 or plain != penalised


@pytest.mark.parametrize("count", [1, 2, 7])
def test_the_turn_ends_at_its_limit(sample: Sample, count: int) -> None:
    assert len(sample(max_generated_tokens=count, min_generated_tokens=count)) == count


def test_zero_is_no_limit(sample: Sample) -> None:
    tokens = sample([5] * 240, max_generated_tokens=0, min_generated_tokens=0)
    assert 0 < len(tokens) <= 16


def test_reset_unsets_everything(engine: oga.Engine, sample: Sample) -> None:
    request = engine.create_request()
    options = oga.TurnOptions(request, **WIDE, max_generated_tokens=2, seed=3)  # type: ignore[arg-type]
    options.reset()
    options.set_max_generated_tokens(12)
    turn = request.begin_turn([5, 6, 7], options)
    assert finish(engine)[request, turn].tokens == sample()


def test_options_are_copied_in_begin_turn_and_serve_again(engine: oga.Engine) -> None:
    request = engine.create_request()
    options = oga.TurnOptions(request, max_generated_tokens=2, min_generated_tokens=2)
    turn = request.begin_turn([5], options)
    options.set_max_generated_tokens(5)
    assert len(finish(engine)[request, turn].tokens) == 2
    turn = request.begin_turn([5], options)
    options.close()
    assert len(finish(engine)[request, turn].tokens) in range(2, 6)


ILLEGAL: list[tuple[str, list[float]]] = [
    ("temperature", [NAN, INFINITY, -INFINITY, -0.5]),
    ("top_p", [NAN, -0.1, 1.1, INFINITY]),
    ("top_k", [-1, -(2**31)]),
    ("repetition_penalty", [NAN, INFINITY, 0.0, -1.0]),
]


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in ILLEGAL for value in values])
def test_an_illegal_value_is_refused_in_the_setter_and_the_old_one_stays(
    engine: oga.Engine, sample: Sample, name: str, value: float
) -> None:
    legal = {"temperature": 2.0, "top_p": 0.9, "top_k": 40, "repetition_penalty": 1.5}
    settings = WIDE | {name: legal[name], "seed": 5}
    request = engine.create_request()
    options = oga.TurnOptions(request, **settings, max_generated_tokens=12)  # type: ignore[arg-type]
    with pytest.raises(oga.InvalidArgumentError, match=name) as caught:
        getattr(options, f"set_{name}")(value)
    assert isinstance(caught.value, ValueError)
    turn = request.begin_turn([5, 6, 7], options)
    assert finish(engine)[request, turn].tokens == sample(**settings)


WRONG_TYPES: list[tuple[str, list[Any]]] = [
    ("temperature", ["0.7", None, True, [1.0]]),
    ("top_p", ["0.7", None, False]),
    ("top_k", [1.0, "3", None, True, 2**31]),
    ("repetition_penalty", ["1", None]),
    ("max_generated_tokens", [-1, 1.5, "3", None, 2**64]),
    ("min_generated_tokens", [-1, 1.5, "3", None]),
    ("seed", [-1, 0.5, "7", 2**64]),
    ("do_sample", [1, 0, "yes", None]),
]


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG_TYPES for value in values])
def test_a_value_of_another_type_is_a_type_error(engine: oga.Engine, name: str, value: Any) -> None:
    options = oga.TurnOptions(engine.create_request())
    with pytest.raises(TypeError, match=name):
        getattr(options, f"set_{name}")(value)


def test_numpy_scalars_are_numbers(sample: Sample) -> None:
    typed = {
        "do_sample": np.bool_(True),
        "temperature": np.float32(3.0),
        "top_k": np.int64(0),
        "seed": np.uint8(7),
        "min_generated_tokens": np.int32(12),
    }
    assert sample(**typed) == sample(**WIDE, seed=7)


CONTRADICTIONS: list[dict[str, Any]] = [
    {"min_generated_tokens": 5, "max_generated_tokens": 2},
    {"min_generated_tokens": 10**6, "max_generated_tokens": 0},
    {"do_sample": False, "temperature": 0.5},
    {"do_sample": False, "top_k": 5},
    {"do_sample": False, "top_p": 0.5},
]


@pytest.mark.parametrize("options", CONTRADICTIONS, ids=str)
def test_contradictory_options_are_refused_at_begin_turn(engine: oga.Engine, options: dict[str, Any]) -> None:
    request = engine.create_request()
    with pytest.raises(oga.InvalidArgumentError):
        request.begin_turn([5], oga.TurnOptions(request, **options))
    assert request.begin_turn([5]) == 1


def test_they_do_not_keep_their_request_alive(engine: oga.Engine) -> None:
    options = oga.TurnOptions(engine.create_request())
    gc.collect()
    assert not engine.has_pending_requests()
    with pytest.raises(oga.InvalidStateError):
        options.set_top_k(3)


@pytest.mark.parametrize("wrong", [None, "request", 5])
def test_they_belong_to_a_request(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"oga\.Request"):
        oga.TurnOptions(wrong)


def test_closed_options_say_so(engine: oga.Engine) -> None:
    request = engine.create_request()
    options = oga.TurnOptions(request)
    options.close()
    for use in (options.reset, lambda: options.set_seed(1), lambda: request.begin_turn([5], options)):
        with pytest.raises(oga.InvalidStateError, match="TurnOptions cannot be used"):
            use()
    assert request.begin_turn([5]) == 1


def test_options_of_one_turn_do_not_carry_over_to_the_next(make_model: Callable[..., oga.Model]) -> None:
    with oga.Engine(make_model(search={"max_length": 12})) as engine:
        fresh, used = engine.create_request(), engine.create_request()
        used.begin_turn([5], oga.TurnOptions(used, **(WIDE | {"min_generated_tokens": 1, "max_generated_tokens": 1})))
        finish(engine)
        used.rewind_to_start_of_turn(1)
        plain, after = fresh.begin_turn([5, 6, 7]), used.begin_turn([5, 6, 7])
        turns = finish(engine)
        assert len(turns[fresh, plain].tokens) > 1
        assert turns[used, after].tokens == turns[fresh, plain].tokens


def test_an_unseeded_turn_continues_a_seeded_one_and_a_greedy_turn_draws_nothing(engine: oga.Engine) -> None:
    def conversation(greedy: dict[str, Any]) -> list[list[int]]:
        request = engine.create_request()
        said = []
        for options in ({**WIDE, "seed": 9}, greedy, WIDE):
            turn = request.begin_turn([5], oga.TurnOptions(request, **{**options, "max_generated_tokens": 12}))
            said.append(finish(engine)[request, turn].tokens)
        return said

    greedy = {"do_sample": False, "min_generated_tokens": 12}
    assert conversation(greedy) == conversation(greedy)


def test_sampling_from_a_model_that_is_greedy_by_its_own_settings_needs_a_distribution(
    make_model: Callable[..., oga.Model],
) -> None:
    with oga.Engine(make_model(search={"top_k": 1})) as engine:
        request = engine.create_request()
        with pytest.raises(oga.InvalidArgumentError, match=r"top_k"):
            request.begin_turn([5], oga.TurnOptions(request, do_sample=True))
        assert request.begin_turn([5], oga.TurnOptions(request, do_sample=True, top_k=5)) == 1
