"""200 requests on SmolLM2 say what they said when their digest was recorded: no token and no bit is another one.

``digest_record.py`` says how a digest is recorded. Where none is recorded for what this machine computes with, a
warning says so; then the greedy tokens that any arithmetic should choose are compared.
"""

from __future__ import annotations

import functools
import inspect
import warnings
from collections import Counter
from typing import Any

import pytest
from digest_engine import UNUSUAL, Answer, Said, answers_of, logprob_hash, token_hash
from digest_key import key_of
from digest_record import GROUPS, PRECISIONS, circumstances, differences, digest_of, each_of, plans_of, read
from digest_requests import COUNT, Plan, Turn, hash_of

import oga
from oga import export
from oga.export.precision import Precision
from oga.logprobs import TokenLogprob, TokenLogprobs
from oga.turn_options import TurnSettings

LEAST_USES = 15
SHOWN = 5


@functools.cache
def usual_answers(precision: Precision) -> dict[int, Answer]:
    return answers_of(export.pull("smollm2", precision=precision))


@pytest.fixture(scope="module")
def plans() -> list[Plan]:
    return plans_of("int4")


@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.filterwarnings("default:No digest is recorded")
def test_tokens_and_log_probabilities_are_those_recorded(precision: Precision, group: str, plans: list[Plan]) -> None:
    recorded, key = read(precision), key_of(precision)
    assert hash_of(plans) == recorded["requests"], "The requests are not those of the digest: record it anew."
    answers = usual_answers(precision)
    if key in recorded["keys"]:
        before = recorded["digests"][recorded["keys"][key]]
        found = differences(digest_of(each_of(answers), plans), before, group, plans)
        texts = [f"{len(found)} requests differ, {key}; {circumstances(precision, recorded)}", *found[:SHOWN]]
        assert not found, "\n".join(texts)
    else:
        known = ", ".join(recorded["keys"])
        warnings.warn(f"No digest is recorded for {precision}, {key}; only for {known}.", stacklevel=1)
        members = {str(plan.index) for plan in plans if plan.group == group}
        clear = {index: tokens for index, tokens in recorded["clear"].items() if index in members}
        assert {index: answers[int(index)][0].tokens[: len(clear[index])] for index in clear} == clear


@pytest.mark.parametrize("precision", PRECISIONS)
def test_each_request_says_the_same_in_other_company_and_other_steps(precision: Precision) -> None:
    some = range(0, COUNT, 9)
    found = answers_of(export.pull("smollm2", precision=precision), some, threads=1, **UNUSUAL)
    usual = usual_answers(precision)
    assert each_of(found) == each_of({index: usual[index] for index in some})


def test_every_option_is_among_the_requests_many_times(plans: list[Plan]) -> None:
    turns = [turn for plan in plans for turn in plan.turns]
    uses = Counter(name for turn in turns for name in turn.settings)
    names = TurnSettings.__required_keys__ | TurnSettings.__optional_keys__
    names |= inspect.signature(oga.RequestOptions).parameters.keys()
    uses.update(name for plan in plans for name in plan.options)
    assert {name: uses[name] for name in sorted(names) if uses[name] < LEAST_USES} == {}


def test_the_requests_go_every_way_and_end_in_every_way(plans: list[Plan]) -> None:
    assert {plan.shape for plan in plans} == {"single", "continued", "rewound", "forked", "cancelled"}
    assert {plan.group for plan in plans} == set(GROUPS)
    endings = {said.ending for answer in usual_answers("int4").values() for said in answer}
    assert endings == set(oga.FinishReason) - {oga.FinishReason.NONE}


def said(tokens: list[int], logprob: float) -> Answer:
    """The answer of a greedy turn whose first token has this log-probability."""
    turn = Turn((1,), {"logprobs": 2}, processed_logprobs=True, special_text=False)
    best, second = TokenLogprob(tokens[0], logprob, 1), TokenLogprob(9, -2.0, 2)
    return [Said(turn, tokens, logprobs=[TokenLogprobs(*best, (best, second))])]


def test_one_bit_of_a_log_probability_makes_another_hash() -> None:
    one, other = said([5], -0.5), said([5], -0.5 - 2**-24)
    assert token_hash(one) == token_hash(other)
    assert logprob_hash(one) != logprob_hash(other)
    assert token_hash(one) != token_hash(said([6], -0.5))


def test_a_difference_is_told_with_the_options_of_its_request() -> None:
    options: tuple[dict[str, Any], ...] = ({"stop_tokens": [5]}, {"top_k": 7})
    plans = [
        Plan(index, "single", {}, (Turn((1,), {"guidance": ("regex", "a"), **rules}, False, False),))
        for index, rules in enumerate(options)
    ]
    before = digest_of(each_of({0: said([5], -0.5), 1: said([5], -0.5)}), plans)
    now = digest_of(each_of({0: said([5], -0.5), 1: said([5], -0.25)}), plans)
    assert differences(now, before, "forced_rules", plans) == []
    (told,) = differences(now, before, "rest", plans)
    assert told.startswith("other log-probabilities of request 1: single")
    assert '"top_k": 7' in told


def test_only_tokens_well_ahead_of_the_second_are_clear() -> None:
    assert said([5, 6], -0.5)[0].clear_tokens(1.0) == [5]
    assert said([5, 6], -1.5)[0].clear_tokens(1.0) == []
