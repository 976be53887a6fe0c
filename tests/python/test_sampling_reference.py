"""Each stage of the sampler against NumPy: the formulas of docs/reference/sampling.rst, written once more and plainly.

Processors are compared by the log-probabilities of the whole vocabulary, before and after; warpers by what many seeds
draw from a distribution that is known.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from driving import finish
from tiny_models import LIMITS

import oga

Row = npt.NDArray[np.float64]
"""[known]: a score of every token that the tokenizer knows; -inf for one that cannot be chosen."""

FIRST_PROMPT = [5, 6, 7, 40, 41, 200, 9, 12]
SECOND_PROMPT = [40, 41, 9, 5, 6, 7, 40, 41, 200, 5, 6, 7, 40, 41]
"""Repeats itself and the first one, so that what looks at the sequence has something to find from the first step on."""
EOS = (0, 2)
"""Those of the config and of the chat template."""
TOLERANCE = 1e-4
DRAWS, ROWS = 640, 32


def normalised(scores: Row) -> Row:
    """Log-probabilities."""
    highest = scores.max()
    logs: Row = scores - highest - np.log(np.exp(scores - highest).sum())
    return logs


# Processors


@dataclass
class Step:
    """Where a token was chosen."""

    sequence: list[int]
    """All turns so far, input and output."""
    output: list[int]
    """What this turn has generated so far."""
    logits: Row
    """The model's own."""


Options = dict[str, Any]


def repetition(scores: Row, step: Step, options: Options) -> None:
    penalty = options.get("repetition_penalty", 1.0)
    seen = np.unique(step.sequence)
    scores[seen] = np.where(scores[seen] > 0, scores[seen] / penalty, scores[seen] * penalty)


def presence_and_frequency(scores: Row, step: Step, options: Options) -> None:
    counts = np.bincount(step.output, minlength=len(scores))
    scores -= options.get("presence_penalty", 0.0) * (counts > 0) + options.get("frequency_penalty", 0.0) * counts


def no_repeat_ngram(scores: Row, step: Step, options: Options) -> None:
    size = options.get("no_repeat_ngram_size", 0)
    if size == 0:
        return
    ngrams = {tuple(step.sequence[at : at + size]) for at in range(len(step.sequence) - size + 1)}
    end = step.sequence[len(step.sequence) - size + 1 :]
    for token in range(len(scores)):
        if (*end, token) in ngrams:
            scores[token] = -np.inf


def dry(scores: Row, step: Step, options: Options) -> None:
    multiplier, base = options.get("dry_multiplier", 0.0), options.get("dry_base", 1.75)
    allowed, breakers = options.get("dry_allowed_length", 2), set(options.get("dry_breakers", []))
    window = step.sequence[-options.get("dry_range", 0) :]
    for token in set(window) - breakers:
        lengths = [
            length
            for at, other in enumerate(window)
            if other == token
            for length in range(at + 1)
            if (run := window[at - length : at]) == window[len(window) - length :] and breakers.isdisjoint(run)
        ]
        if max(lengths) >= allowed:
            scores[token] -= multiplier * base ** (max(lengths) - allowed)


def logit_bias(scores: Row, step: Step, options: Options) -> None:
    for token, bias in options.get("logit_bias", {}).items():
        scores[token] += bias


def banned_sequences(scores: Row, step: Step, options: Options) -> None:
    for *before, last in options.get("banned_sequences", []):
        if step.sequence[len(step.sequence) - len(before) :] == before:
            scores[last] = -np.inf


def allowed_tokens(scores: Row, step: Step, options: Options) -> None:
    if "allowed_tokens" in options:
        scores[np.setdiff1d(np.arange(len(scores)), options["allowed_tokens"])] = -np.inf


def min_tokens(scores: Row, step: Step, options: Options) -> None:
    if len(step.output) < options.get("min_generated_tokens", 0):
        scores[options.get("stop_tokens", [])] = -np.inf
        if not options.get("ignore_eos", True):
            scores[[*EOS]] = -np.inf


PROCESSORS = (
    repetition,
    presence_and_frequency,
    no_repeat_ngram,
    dry,
    logit_bias,
    banned_sequences,
    allowed_tokens,
    min_tokens,
)


def processed(step: Step, options: Options) -> Row:
    """Log-probabilities after every processor, in order."""
    scores = step.logits.copy()
    for processor in PROCESSORS:
        processor(scores, step, options)
    return normalised(scores)


@pytest.fixture(scope="module")
def known(model: oga.Model) -> int:
    """How many tokens the tokenizer knows; the model has more."""
    return int(model.tokenizer._core.get_vocab_size())


@pytest.fixture(scope="module")
def log_sums(tiny_folder: Path, known: int) -> Callable[[Sequence[int]], Row]:
    """[tokens]: of the logits behind each token, what their log-probabilities lack, by transformers.

    The repetition penalty is about the sign of a logit, which log-probabilities do not tell.
    """
    from reference_hf import load_reference, reference_logits

    reference = load_reference(tiny_folder.parent / "source")

    def of(tokens: Sequence[int]) -> Row:
        logits = reference_logits(reference, tokens)[:, :known].astype(np.float64)
        highest = logits.max(-1)
        sums: Row = highest + np.log(np.exp(logits - highest[:, None]).sum(-1))
        return sums

    return of


@dataclass
class Told:
    """What a second turn on a request told."""

    before: list[int]
    """The sequence at its begin, its input included."""
    tokens: list[int]
    rows: list[Row]
    """The log-probabilities behind each token."""


def second_turn(engine: oga.Engine, known: int, options: Options, *, processed: bool) -> Told:
    """Drawn among the few most likely tokens, so that they return. A turn before it has output that is not its own."""
    drawn: Options = {"ignore_eos": True, "do_sample": True, "top_k": 2, "seed": 11}
    with engine.create_request() as request, engine.create_event_buffer(4) as buffer:
        first = request.begin_turn(FIRST_PROMPT, oga.TurnOptions(request, max_generated_tokens=10, **drawn))
        before = FIRST_PROMPT + finish(engine)[request, first].tokens + SECOND_PROMPT
        wanted = oga.TurnOptions(request, max_generated_tokens=20, **drawn | options)
        wanted.set_logprobs(0, processed=processed)
        wanted.set_logprob_tokens(range(known))
        request.begin_turn(SECOND_PROMPT, wanted)
        told = Told(before, [], [])
        while engine.has_pending_requests():
            for event in engine.run(buffer):
                if event.token is not None:
                    assert event.logprobs is not None
                    assert [entry.token for entry in event.logprobs.alternatives] == list(range(known))
                    told.tokens.append(event.token)
                    told.rows.append(np.array([entry.logprob for entry in event.logprobs.alternatives], np.float64))
    return told


FEW = [0, 5, 6, 7, 9, 12, 40, 41, 60, 200]
STAGES: dict[str, Options] = {
    "repetition": {"repetition_penalty": 1.4},
    "repetition below one": {"repetition_penalty": 0.8},
    "presence": {"presence_penalty": 0.9},
    "presence below zero": {"presence_penalty": -0.4},
    "frequency": {"frequency_penalty": 0.35},
    "presence and frequency": {"presence_penalty": 0.5, "frequency_penalty": -0.25},
    "n-gram of one": {"no_repeat_ngram_size": 1},
    "n-gram of two": {"no_repeat_ngram_size": 2},
    "n-gram of three": {"no_repeat_ngram_size": 3},
    "dry": {"dry_multiplier": 0.8},
    "dry from one token on": {"dry_multiplier": 0.6, "dry_base": 1.3, "dry_allowed_length": 1},
    "dry of the last tokens": {"dry_multiplier": 0.8, "dry_range": 11, "dry_base": 2.0},
    "dry with breakers": {"dry_multiplier": 0.8, "dry_allowed_length": 1, "dry_breakers": [40, 7]},
    "bias": {"logit_bias": {40: 2.5, 7: -3.0, 200: 0.25, 0: 1.0}},
    "banned sequences": {"banned_sequences": [[41, 200], [7, 40, 41, 9], [60], [41, 5]]},
    "allowed": {"allowed_tokens": FEW},
    "min tokens": {"min_generated_tokens": 6, "ignore_eos": False, "logit_bias": dict.fromkeys(EOS, -4.0)},
    "min tokens and stop tokens": {
        "min_generated_tokens": 5,
        "ignore_eos": False,
        "stop_tokens": [8, 9, 200],
        "logit_bias": dict.fromkeys((*EOS, 8, 9, 200), -6.0),
    },
    "stop tokens under ignore_eos": {
        "min_generated_tokens": 4,
        "stop_tokens": [8, 9],
        "logit_bias": {8: -6.0, 9: -6.0},
    },
    "all penalties": {"repetition_penalty": 1.3, "presence_penalty": 0.4, "frequency_penalty": 0.2},
    "repetition before bias": {"repetition_penalty": 2.0, "logit_bias": {40: -6.0, 41: 6.0, 5: 1.5, 6: -1.5}},
    "dry among few": {"dry_multiplier": 0.7, "allowed_tokens": FEW, "dry_base": 1.5},
    "n-grams among few": {"no_repeat_ngram_size": 3, "allowed_tokens": FEW},
    "all": {
        "repetition_penalty": 1.2,
        "presence_penalty": 0.3,
        "frequency_penalty": 0.1,
        "no_repeat_ngram_size": 4,
        "dry_multiplier": 0.5,
        "dry_range": 25,
        "dry_breakers": [200],
        "logit_bias": {40: 1.5, 0: -2.0, 9: -0.5},
        "banned_sequences": [[40, 41], [12]],
        "allowed_tokens": [*FEW, *range(20, 36)],
        "min_generated_tokens": 8,
        "ignore_eos": False,
    },
}


@pytest.mark.parametrize("stage", STAGES)
def test_processors_change_the_log_probabilities_as_numpy_does(
    engine: oga.Engine, known: int, log_sums: Callable[[Sequence[int]], Row], stage: str
) -> None:
    options = STAGES[stage]
    own = second_turn(engine, known, options, processed=False)
    told = second_turn(engine, known, options, processed=True)
    assert (told.before, told.tokens) == (own.before, own.tokens)
    assert len(told.tokens) >= 9
    sums = log_sums(told.before + told.tokens)[len(told.before) - 1 :]
    changed, rows = 0, zip(own.rows, told.rows, strict=True)
    for count, (raw, row) in enumerate(rows):
        output = told.tokens[:count]
        step = Step(told.before + output, output, raw + sums[count])
        np.testing.assert_allclose(row, processed(step, options), atol=TOLERANCE, rtol=0)
        changed += not np.allclose(row, raw, atol=10 * TOLERANCE, rtol=0)
    assert changed >= 4


def test_without_processors_the_log_probabilities_are_the_models_own(engine: oga.Engine, known: int) -> None:
    own = second_turn(engine, known, {}, processed=False)
    told = second_turn(engine, known, {}, processed=True)
    np.testing.assert_array_equal(told.rows, own.rows)
    for row in own.rows:
        assert np.exp(row).sum() == pytest.approx(1.0, abs=1e-5)


# Warpers


def keep(scores: Row, kept: npt.ArrayLike) -> Row:
    """``scores`` with everything but ``kept``, indices or a mask, excluded."""
    left = np.full_like(scores, -np.inf)
    left[kept] = scores[kept]  # type: ignore[index]
    return left


def smallest_set(order: npt.NDArray[np.intp], probabilities: Row, mass: float) -> npt.NDArray[np.intp]:
    """The first of ``order`` whose probabilities reach ``mass``."""
    return order[: int(np.searchsorted(np.cumsum(probabilities[order]), mass)) + 1]


def top_k(scores: Row, k: int) -> Row:
    return keep(scores, np.argsort(-scores, kind="stable")[:k])


def typical_p(scores: Row, mass: float) -> Row:
    logs = normalised(scores)
    probabilities = np.exp(logs)
    possible = np.isfinite(scores)
    entropy = -(probabilities[possible] * logs[possible]).sum()
    order = np.argsort(np.where(possible, np.abs(-logs - entropy), np.inf), kind="stable")
    return keep(scores, np.append(smallest_set(order, probabilities, mass), scores.argmax()))


def top_p(scores: Row, mass: float) -> Row:
    return keep(scores, smallest_set(np.argsort(-scores, kind="stable"), np.exp(normalised(scores)), mass))


def min_p(scores: Row, share: float) -> Row:
    logs = normalised(scores)
    return keep(scores, logs >= logs.max() + math.log(share))


def exclude_top_choices(scores: Row, threshold: float) -> Row:
    probabilities = np.exp(normalised(scores))
    top = np.flatnonzero(probabilities >= threshold)
    if len(top) < 2:
        return scores
    spared = top[np.argmin(probabilities[top])]
    return keep(scores, (probabilities < threshold) | (np.arange(len(scores)) == spared))


def warped(row: Row, options: Options) -> Row:
    """[known]: how likely each token is drawn; ``row`` holds the logits up to a constant."""
    scores = row / options.get("temperature", 1.0)
    for name, warper in (("top_k", top_k), ("typical_p", typical_p), ("top_p", top_p), ("min_p", min_p)):
        if name in options:
            scores = warper(scores, options[name])
    if "top_n_sigma" in options:
        finite = row[np.isfinite(row)]
        scores = np.where(row >= finite.max() - options["top_n_sigma"] * finite.std(), scores, -np.inf)
    share = options.get("xtc_probability", 0.0)
    excluded = exclude_top_choices(scores, options.get("xtc_threshold", 0.1))
    mixed: Row = (1 - share) * np.exp(normalised(scores)) + share * np.exp(normalised(excluded))
    return mixed


@pytest.fixture(scope="module")
def wide(tiny_folder: Path) -> Iterator[oga.Engine]:
    """An engine with room for many draws in one step."""
    limits = LIMITS | {"max_batch_size": ROWS, "num_blocks": 8 * ROWS, "max_scheduled_tokens": 16 * ROWS}
    with oga.Config(tiny_folder) as config:
        config.overlay({"engine": {"dynamic_batching": limits}})
        with oga.Model(config) as loaded, oga.Engine(loaded) as created:
            yield created


@pytest.fixture(scope="module")
def next_row(wide: oga.Engine, known: int) -> Row:
    """The log-probabilities behind the first prompt."""
    stream = wide.stream(FIRST_PROMPT, max_new_tokens=1, ignore_eos=True, logprobs=0, logprob_tokens=range(known))
    list(stream)
    return np.array([entry.logprob for entry in stream.logprobs[0].alternatives], np.float64)


def draws(engine: oga.Engine, options: Options) -> Counter[int]:
    """How often each token comes first, over many seeds."""
    drawn: Counter[int] = Counter()
    settings: Options = {"max_generated_tokens": 1, "ignore_eos": True, "do_sample": True, "top_k": 0} | options
    for begin in range(0, DRAWS, ROWS):
        requests = [engine.create_request() for _ in range(ROWS)]
        for seed, request in enumerate(requests, begin):
            request.begin_turn(FIRST_PROMPT, oga.TurnOptions(request, seed=seed, **settings))
        for turn in finish(engine, capacity=ROWS).values():
            drawn.update(turn.tokens)
        for request in requests:
            request.close()
    return drawn


def assert_follows(drawn: Counter[int], probabilities: Row) -> None:
    """Pearson's chi-square, rare tokens taken together; a right sampler misses it for one choice of seeds in a million.

    The quantile is Wilson's and Hilferty's.
    """
    assert drawn.total() == DRAWS
    assert {token for token in drawn if probabilities[token] == 0} == set()
    cells = [(0, 0.0)]
    for token in np.argsort(probabilities):
        if cells[-1][1] >= 6:
            cells.append((0, 0.0))
        cells[-1] = (cells[-1][0] + drawn[int(token)], cells[-1][1] + probabilities[token] * DRAWS)
    assert len(cells) >= 3
    statistic = sum((count - mean) ** 2 / mean for count, mean in cells)
    spread = 2 / (9 * (len(cells) - 1))
    assert statistic < (len(cells) - 1) * (1 - spread + 4.753424 * math.sqrt(spread)) ** 3


WARPERS: dict[str, Options] = {
    "none": {},
    "low temperature": {"temperature": 0.4},
    "high temperature": {"temperature": 2.5},
    "top-k": {"top_k": 12},
    "typical": {"typical_p": 0.15},
    "top-p": {"top_p": 0.25},
    "min-p": {"min_p": 0.4},
    "top-n-sigma": {"top_n_sigma": 1.0},
    "xtc": {"xtc_probability": 1.0, "xtc_threshold": 0.005},
    "xtc now and then": {"xtc_probability": 0.4, "xtc_threshold": 0.005},
    "top-p of what the temperature left": {"temperature": 0.5, "top_p": 0.6},
    "min-p of what the temperature left": {"temperature": 0.5, "min_p": 0.15},
    "top-n-sigma before the temperature": {"temperature": 3.0, "top_n_sigma": 1.2},
    "typical of the most likely": {"top_k": 30, "typical_p": 0.4},
    "top-p of the typical": {"typical_p": 0.5, "top_p": 0.3},
    "xtc of what top-p left": {"top_p": 0.3, "xtc_probability": 0.7, "xtc_threshold": 0.04},
    "all": {
        "temperature": 0.7,
        "top_k": 60,
        "typical_p": 0.9,
        "top_p": 0.85,
        "min_p": 0.06,
        "top_n_sigma": 1.8,
        "xtc_probability": 0.5,
        "xtc_threshold": 0.06,
    },
}


@pytest.mark.parametrize("warpers", WARPERS)
def test_draws_follow_the_distribution_that_numpy_gives(wide: oga.Engine, next_row: Row, warpers: str) -> None:
    assert_follows(draws(wide, WARPERS[warpers]), warped(next_row, WARPERS[warpers]))


@pytest.mark.parametrize("name", [name for name, options in WARPERS.items() if options])
def test_each_case_of_the_warpers_tells_itself_from_none(next_row: Row, name: str) -> None:
    assert np.abs(warped(next_row, WARPERS[name]) - np.exp(next_row)).sum() > 0.3


def test_warpers_shape_what_the_processors_left(wide: oga.Engine, next_row: Row) -> None:
    allowed = np.argsort(-next_row)[10:40]
    options: Options = {"temperature": 0.6, "top_p": 0.7, "top_n_sigma": 1.5}
    lists: Options = {"allowed_tokens": allowed, "logit_bias": {int(allowed[-1]): 0.5}}
    row = keep(next_row, allowed)
    row[allowed[-1]] += 0.5
    assert_follows(draws(wide, options | lists), warped(row, options))
