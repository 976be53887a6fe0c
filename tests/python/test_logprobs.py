"""Log-probabilities: those of transformers for the same weights, in any company, and only when asked for."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from driving import generate

import oga

PROMPT = [5, 6, 7, 40, 41, 200, 9, 12]


def log_softmax(logits: Any) -> Any:
    wide = np.asarray(logits, np.float64)
    return (
        wide - np.log(np.exp(wide - wide.max(-1, keepdims=True)).sum(-1, keepdims=True)) - wide.max(-1, keepdims=True)
    )


@pytest.fixture(scope="module")
def distributions(tiny_folder: Path, model: oga.Model) -> Any:
    """[prompt + 6, known]: what transformers gives after each token, among the tokens that the tokenizer knows."""
    from reference_hf import load_reference, reference_logits
    from tiny_llama import tiny_tokenizer

    with oga.Engine(model) as engine:
        tokens = PROMPT + generate(engine, PROMPT, 6)
    logits = reference_logits(load_reference(tiny_folder.parent / "source"), tokens)
    return log_softmax(logits[:, : tiny_tokenizer(512).get_vocab_size()])


def test_they_are_those_of_transformers(engine: oga.Engine, distributions: Any) -> None:
    stream = engine.stream(PROMPT, max_new_tokens=6, ignore_eos=True, logprobs=3, prompt_logprobs=2)
    tokens = list(stream)
    assert [entry.token for entry in stream.logprobs] == tokens
    for place, entry in enumerate(stream.logprobs, len(PROMPT) - 1):
        row = distributions[place]
        assert entry.logprob == pytest.approx(row[entry.token], abs=1e-3)
        assert [best.token for best in entry.alternatives] == np.argsort(-row, kind="stable")[:3].tolist()
        assert [best.logprob for best in entry.alternatives] == pytest.approx(np.sort(row)[::-1][:3].tolist(), abs=1e-3)
    assert stream.prompt_logprobs is not None
    assert stream.prompt_logprobs[0] is None
    for place, scored in enumerate(stream.prompt_logprobs[1:]):
        assert scored is not None
        assert scored.token == PROMPT[place + 1]
        assert scored.logprob == pytest.approx(distributions[place][scored.token], abs=1e-3)
        assert scored.rank == 1 + int((distributions[place] > distributions[place][scored.token]).sum())


def test_they_do_not_depend_on_the_batch(engine: oga.Engine) -> None:
    asked: dict[str, Any] = {"max_new_tokens": 5, "ignore_eos": True, "logprobs": 4, "prompt_logprobs": 1}
    alone = engine.stream(PROMPT, **asked)
    list(alone)
    streams = [engine.stream(PROMPT[count:], **asked) for count in (0, 3, 0, 5)]
    for stream in streams:
        list(stream)
    for stream in (streams[0], streams[2]):
        assert stream.logprobs == alone.logprobs
        assert stream.prompt_logprobs == alone.prompt_logprobs


def test_given_tokens_follow_the_most_likely_ones(engine: oga.Engine) -> None:
    stream = engine.stream(PROMPT, max_new_tokens=1, ignore_eos=True, logprobs=2, logprob_tokens=[17, 18])
    list(stream)
    assert [entry.token for entry in stream.logprobs[0].alternatives[2:]] == [17, 18]
    only = engine.stream(PROMPT, max_new_tokens=1, ignore_eos=True, logprob_tokens=[17, 18])
    list(only)
    assert only.logprobs[0].alternatives == stream.logprobs[0].alternatives[2:]


def test_excluded_tokens_have_none_when_processed(engine: oga.Engine) -> None:
    with engine.create_request() as request, engine.create_event_buffer(4) as buffer:
        options = oga.TurnOptions(request, max_generated_tokens=2, allowed_tokens=[8, 9])
        options.set_logprobs(20, processed=True)
        options.set_logprob_tokens([10])
        request.begin_turn(PROMPT, options)
        while engine.has_pending_requests():
            for event in engine.run(buffer):
                assert event.logprobs is not None
                *likely, excluded = event.logprobs.alternatives
                assert {entry.token for entry in likely} == {8, 9}
                assert sum(math.exp(entry.logprob) for entry in likely) == pytest.approx(1.0, abs=1e-5)
                assert excluded.logprob == -math.inf


def test_they_cost_nothing_when_not_asked(engine: oga.Engine) -> None:
    stream = engine.stream(PROMPT, max_new_tokens=3)
    list(stream)
    assert (stream.logprobs, stream.prompt_logprobs) == ([], None)


@pytest.mark.parametrize("name", ["logprobs", "prompt_logprobs"])
@pytest.mark.parametrize("value", [-1, 21, 2**40])
def test_bad_counts_are_refused(engine: oga.Engine, name: str, value: int) -> None:
    with pytest.raises((oga.InvalidArgumentError, OverflowError)):
        engine.stream(PROMPT, **{name: value})  # type: ignore[call-overload]
    with pytest.raises(oga.ArgumentTypeError):
        engine.stream(PROMPT, **{name: "many"})  # type: ignore[call-overload]


def test_an_event_view_that_is_stale_raises(engine: oga.Engine) -> None:
    with engine.create_request() as request, engine.create_event_buffer(4) as buffer:
        options = oga.TurnOptions(request, max_generated_tokens=2, logprobs=1, prompt_logprobs=1, emit_text=True)
        request.begin_turn(PROMPT, options)
        event = engine.run(buffer)[0]
        engine.run(buffer)
        for name in ("text", "logprobs", "prompt_logprobs"):
            with pytest.raises(oga.InvalidStateError):
                getattr(event, name)


SHAPES: dict[str, dict[str, Any]] = {
    "a grammar": {"guidance": ("regex", "[ab]{6}")},
    "a half character": {"guidance": ("regex", "🙂🙃")},
    "one choice": {"top_k": 1},
    "no temperature": {"temperature": 0.0},
    "a bias against": {"logit_bias": dict.fromkeys(range(3, 60), -100.0)},
    "few allowed": {"allowed_tokens": [8, 9], "ignore_eos": True},
    "the end": {"logit_bias": {0: 200.0}},
}


@pytest.mark.parametrize("processed", [False, True])
@pytest.mark.parametrize("shape", SHAPES)
def test_they_can_be_written_as_json(engine: oga.Engine, shape: str, processed: bool) -> None:
    from oga.cli.logprobs import TokenTable

    table = TokenTable(engine.model.tokenizer)
    with engine.create_request() as request, engine.create_event_buffer(4) as buffer:
        options = oga.TurnOptions(request, max_generated_tokens=8, emit_text=True, **SHAPES[shape])
        options.set_logprobs(20, processed=processed)
        options.set_logprob_tokens([3, 300])
        request.begin_turn(PROMPT, options)
        text, tokens, scored = "", [], []
        while engine.has_pending_requests():
            for event in engine.run(buffer):
                text += event.text
                tokens += [] if event.token is None else [event.token]
                scored += [] if event.logprobs is None else [event.logprobs]
    entries = json.loads(json.dumps(table.entries(scored), allow_nan=False))
    assert [entry["token"] for entry in entries] == tokens
    assert b"".join(bytes(entry["bytes"]) for entry in entries).decode("utf-8", "replace") == text
    for entry, given in zip(entries, scored, strict=True):
        assert entry["logprob"] is not None
        assert entry["rank"] >= 1
        top = entry["top"][:-2]
        assert sum(math.exp(other["logprob"]) for other in top if other["logprob"] is not None) <= 1 + 1e-5
        if given.rank <= 20:
            assert entry["token"] in [other["token"] for other in top]
        assert [other["token"] for other in entry["top"][-2:]] == [3, 300]
        assert entry["top"][-1]["logprob"] is None  # the tokenizer does not know it
