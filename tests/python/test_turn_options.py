"""TurnOptions: every option acts, every bad value is refused and the good one before it stays."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from driving import finish

import oga
from oga._native import sampling_table

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


FRACTIONS = ("top_p", "typical_p", "min_p", "xtc_probability", "xtc_threshold")
ILLEGAL: list[tuple[str, list[float]]] = [
    ("temperature", [NAN, INFINITY, -INFINITY, -0.5]),
    *((name, [NAN, -0.1, 1.0001, INFINITY]) for name in FRACTIONS),
    ("top_n_sigma", [NAN, -1.0, INFINITY]),
    ("top_k", [-1, -(2**31)]),
    ("repetition_penalty", [NAN, INFINITY, 0.0, -1.0]),
    ("presence_penalty", [NAN, INFINITY, 1e300]),
    ("frequency_penalty", [NAN, -INFINITY, -1e300]),
    ("no_repeat_ngram_size", [-1]),
    ("dry_multiplier", [NAN, -0.1]),
    ("dry_base", [0.99, NAN]),
    ("dry_allowed_length", [0, -1]),
    ("dry_range", [-1]),
]
LEGAL: dict[str, float] = {
    "temperature": 2.0,
    "top_p": 0.3,
    "typical_p": 0.3,
    "min_p": 0.9,
    "xtc_probability": 0.5,
    "xtc_threshold": 0.34,
    "top_n_sigma": 0.5,
    "top_k": 2,
    "repetition_penalty": 1.5,
    "presence_penalty": 1.5,
    "frequency_penalty": 0.5,
    "no_repeat_ngram_size": 4,
    "dry_multiplier": 0.8,
    "dry_base": 1.0,
    "dry_allowed_length": 1,
    "dry_range": 5,
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in ILLEGAL for value in values])
def test_an_illegal_value_is_refused_in_the_setter_and_the_old_one_stays(
    engine: oga.Engine, sample: Sample, name: str, value: float
) -> None:
    settings = WIDE | {name: LEGAL[name], "seed": 5}
    request = engine.create_request()
    options = oga.TurnOptions(request, **settings, max_generated_tokens=12)  # type: ignore[arg-type]
    with pytest.raises(oga.InvalidArgumentError, match=name) as caught:
        options.set_number(name, value)
    assert isinstance(caught.value, ValueError)
    turn = request.begin_turn([5, 6, 7], options)
    assert finish(engine)[request, turn].tokens == sample(**settings)


def test_every_number_of_the_table_is_checked() -> None:
    assert {name for name, _ in ILLEGAL} == set(sampling_table.INTEGERS + sampling_table.NUMBERS) == LEGAL.keys()


@pytest.mark.parametrize("name", LEGAL)
def test_every_number_acts_as_keyword_and_as_default_of_the_model(
    make_model: Callable[..., oga.Model], sample: Sample, name: str
) -> None:
    """Among three tokens and after a prompt that repeats itself, so that every option shows."""
    prompt = [5, 6, 7, 5, 6, 7, 5, 6]
    others = {"do_sample": True, "top_k": 0, "seed": 5, "allowed_tokens": [5, 6, 7], "max_generated_tokens": 40}
    if name.startswith("dry"):
        others["dry_multiplier"] = 0.3
    if name.startswith("xtc"):
        others["xtc_probability"] = 1.0
    plain = sample(prompt, **others)
    if name == "xtc_probability":
        others["xtc_threshold"] = 0.05
    others.pop(name, None)
    by_keyword = sample(prompt, **others, **{name: LEGAL[name]})
    assert by_keyword != plain
    with oga.Engine(make_model(search={name: LEGAL[name]})) as engine, engine.create_request() as request:
        turn = request.begin_turn(prompt, oga.TurnOptions(request, **others))
        assert finish(engine)[request, turn].tokens == by_keyword


def test_names_reach_the_setters(engine: oga.Engine) -> None:
    options = oga.TurnOptions(engine.create_request())
    options.set_bool("ignore_eos", True)
    options.set_number("seed", 3)
    options.set_no_repeat_ngram_size(3)
    with pytest.raises(oga.InvalidArgumentError, match="nearest one is 'temperature'"):
        options.set_number("temprature", 1.0)
    with pytest.raises(oga.InvalidArgumentError, match="do_sample is true or false"):
        options.set_number("do_sample", 1)
    with pytest.raises(oga.InvalidArgumentError, match="top_k is a number"):
        options.set_bool("top_k", True)
    with pytest.raises(oga.InvalidArgumentError, match=r"top_k is 1\.5"):
        options.set_number("top_k", 1.5)


def test_an_unknown_keyword_names_the_nearest_one(engine: oga.Engine) -> None:
    request = engine.create_request()
    with pytest.raises(TypeError, match="'temprature'; the nearest one is 'temperature'"):
        oga.TurnOptions(request, temprature=1.0)  # type: ignore[call-arg]


# --- Lists ------------------------------------------------------------------------------------------------------------


def test_a_bias_moves_the_choice(sample: Sample) -> None:
    assert sample(logit_bias={42: 1000.0}) == [42] * 12
    assert sample(logit_bias={}) == sample()
    assert sample(logit_bias={np.int64(42): np.float32(1000.0), 43: -1}) == [42] * 12


def test_only_allowed_tokens_are_chosen(sample: Sample) -> None:
    assert set(sample(**WIDE, allowed_tokens=[20, 21, 22])) <= {20, 21, 22}
    assert set(sample(**WIDE, allowed_tokens=np.array([20], np.int32))) == {20}


def test_of_a_banned_sequence_only_the_completing_token_is_banned(sample: Sample) -> None:
    steered = {"allowed_tokens": [20, 21], "logit_bias": {20: 1000.0}}
    assert sample(**steered) == [20] * 12
    assert sample(**steered, banned_sequences=[[20, 20]]) == [20, 21] * 6
    assert sample(**steered, banned_sequences=[(20,), [21, 20]]) == [21] * 12
    assert sample(**steered, banned_sequences=[]) == [20] * 12


@pytest.mark.parametrize("ignore_eos", [False, True])
def test_a_stop_token_ends_the_turn_and_stays(engine: oga.Engine, ignore_eos: bool) -> None:
    request = engine.create_request()
    options = oga.TurnOptions(request, logit_bias={42: 1000.0}, stop_tokens=[7, 42], ignore_eos=ignore_eos)
    turn = request.begin_turn([5], options)
    result = finish(engine)[request, turn]
    assert result.tokens == [42]
    assert result.ending is oga.FinishReason.EOS


def test_no_ngram_comes_twice(sample: Sample) -> None:
    tokens = [5, 6, 7, *sample(**WIDE, seed=1, allowed_tokens=range(20, 24), no_repeat_ngram_size=2)]
    pairs = list(itertools.pairwise(tokens))
    assert len(set(pairs)) == len(pairs)


WRONG_LISTS: list[tuple[str, Any, type[Exception]]] = [
    ("logit_bias", [1, 2], TypeError),
    ("logit_bias", {1: "x"}, TypeError),
    ("logit_bias", {1: NAN}, ValueError),
    ("logit_bias", {-1: 1.0}, ValueError),
    ("logit_bias", {1.5: 1.0}, TypeError),
    ("stop_tokens", "abc", TypeError),
    ("stop_tokens", [1, -1], ValueError),
    ("stop_tokens", [2**31], ValueError),
    ("banned_sequences", [[1], []], ValueError),
    ("banned_sequences", [1, 2], TypeError),
    ("banned_sequences", "abc", TypeError),
    ("banned_sequences", 5, TypeError),
    ("banned_sequences", [[1, -1]], ValueError),
    ("allowed_tokens", [1.5], TypeError),
    ("dry_breakers", [-1], ValueError),
]


@pytest.mark.parametrize(("name", "value", "error"), WRONG_LISTS)
def test_a_wrong_list_is_refused_by_name(engine: oga.Engine, name: str, value: Any, error: type[Exception]) -> None:
    options = oga.TurnOptions(engine.create_request())
    with pytest.raises(error, match=name):
        getattr(options, f"set_{name}")(value)


@pytest.mark.parametrize(
    "options",
    [
        {"logit_bias": {512: 1.0}},
        {"stop_tokens": [512]},
        {"banned_sequences": [[1, 512]]},
        {"allowed_tokens": [512]},
        {"dry_breakers": [512]},
    ],
    ids=str,
)
def test_an_id_beyond_the_vocabulary_is_refused_at_begin_turn(engine: oga.Engine, options: dict[str, Any]) -> None:
    request = engine.create_request()
    with pytest.raises(oga.InvalidArgumentError, match="names token 512; the vocabulary has ids 0 to 511"):
        request.begin_turn([5], oga.TurnOptions(request, **options))
    assert request.begin_turn([5]) == 1


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
    {"do_sample": False, "min_p": 0.5},
    {"do_sample": False, "xtc_probability": 0.5},
    {"allowed_tokens": [20], "banned_sequences": [[20]]},
]


@pytest.mark.parametrize("options", CONTRADICTIONS, ids=str)
def test_contradictory_options_are_refused_at_begin_turn(engine: oga.Engine, options: dict[str, Any]) -> None:
    request = engine.create_request()
    with pytest.raises(oga.InvalidArgumentError):
        request.begin_turn([5], oga.TurnOptions(request, **options))
    assert request.begin_turn([5]) == 1


FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"temperature": -1.0}, "temperature"),
    ({"top_k": "5"}, "top_k"),
    ({"stop_strings": [""]}, "stop_strings"),
    ({"stop_strings": ["x"] * 17}, "stop_strings"),
    ({"logit_bias": {5: float("inf")}}, "logit_bias"),
    ({"logit_bias": {10**6: 1.0}}, "logit_bias"),
    ({"stop_tokens": [10**6]}, "stop_tokens"),
    ({"logprobs": 21}, "logprobs"),
    ({"do_sample": False, "top_p": 0.5}, "top_p"),
    ({"min_generated_tokens": 5, "max_generated_tokens": 2}, "min_generated_tokens"),
    ({"min_generated_tokens": 10**6}, "min_generated_tokens"),
    ({"guidance": ("regex", "(")}, "guidance"),
    ({"guidance": ("stop_strings", "x")}, "guidance"),
    ({"guidance": ("lark", "start: context")}, "guidance"),
    ({"guidance": ("json_schema", {"type": "array", "uniqueItems": True})}, "guidance"),
    ({"guidance": ("json_object", ""), "ignore_eos": True}, "ignore_eos"),
]


@pytest.mark.parametrize(("options", "field"), FIELDS, ids=str)
def test_a_refusal_knows_the_keyword_that_it_is_about(engine: oga.Engine, options: dict[str, Any], field: str) -> None:
    request = engine.create_request()
    with pytest.raises(oga.InvalidArgumentError) as refusal:
        request.begin_turn([5], oga.TurnOptions(request, **options))
    assert refusal.value.field == field
    assert not isinstance(refusal.value, oga.PromptTooLongError)


def test_an_input_that_does_not_fit_is_an_error_of_its_own(engine: oga.Engine) -> None:
    request = engine.create_request()
    with pytest.raises(oga.PromptTooLongError) as refusal:
        request.begin_turn([5] * engine.get_capabilities().max_request_length)
    assert refusal.value.field == "tokens"
    for tokens in ([], [10**6]):
        with pytest.raises(oga.InvalidArgumentError) as refusal:
            request.begin_turn(tokens)
        assert refusal.value.field == "tokens"
        assert not isinstance(refusal.value, oga.PromptTooLongError)


def test_guidance_of_both_kinds_is_refused_as_a_wrong_value(engine: oga.Engine) -> None:
    with engine.create_request() as request, pytest.raises(oga.InvalidArgumentError, match="both given"):
        oga.TurnOptions(request, guidance=("regex", "a"), delimited_guidance=(5, 6, 'start: "a"'))


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
