"""Logits wider than the tokenizer, and narrower: what only one of them has is never said, nor called likely."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from tiny_models import VOCABULARY

import oga

PROMPT = [5, 6, 7]
FORMS: dict[str, dict[str, Any]] = {
    "greedy": {},
    "hot": {"temperature": 50.0, "top_k": 0, "seed": 1},
    "top_k": {"temperature": 50.0, "top_k": VOCABULARY - 1, "seed": 2},
    "min_p": {"temperature": 50.0, "min_p": 1e-6, "top_k": 0, "seed": 3},
    "guided": {"temperature": 50.0, "guidance": ("regex", "(?s:.{40})"), "seed": 4},
}


@pytest.fixture(scope="module")
def padding(model: oga.Model) -> dict[int, float]:
    """A wish for every id that only the logits have."""
    known = range(VOCABULARY)
    found = {token: 100.0 for token in known if not model.tokenizer.token_bytes(token)}
    assert len(found) > 200
    return found


@pytest.mark.parametrize("form", FORMS)
def test_padding_is_never_sampled_however_much_it_is_wanted(
    engine: oga.Engine, padding: dict[int, float], form: str
) -> None:
    asked: dict[str, Any] = FORMS[form] | {"max_new_tokens": 40, "logprobs": 20}
    alone = engine.stream(PROMPT, logit_bias=padding, **asked)
    tokens = list(alone)
    assert tokens
    assert not padding.keys() & set(tokens)
    for entry in alone.logprobs:
        assert not padding.keys() & {other.token for other in entry.alternatives}
        assert sum(math.exp(other.logprob) for other in entry.alternatives) <= 1 + 1e-5
    together = [engine.stream(PROMPT, logit_bias=padding, **FORMS[form] | {"max_new_tokens": 40}) for _ in range(4)]
    assert [list(stream) for stream in together] == [tokens] * 4


def test_a_turn_that_may_say_nothing_but_padding_is_refused(engine: oga.Engine, padding: dict[int, float]) -> None:
    with pytest.raises(oga.InvalidArgumentError, match="no token is left to choose"):
        engine.stream(PROMPT, max_new_tokens=8, allowed_tokens=list(padding))


@pytest.fixture
def narrow_folder(tiny_folder: Path, tmp_path: Path) -> Path:
    """The tiny model with a tokenizer that knows more tokens than the model has logits."""
    folder = shutil.copytree(tiny_folder, tmp_path / "narrow")
    content = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    vocabulary = content["model"]["vocab"]
    letters = "abcdefghijklmnopqrstuvwxyz"
    names = (f"{first}{second}" for first in letters for second in letters)
    while len(vocabulary) < VOCABULARY + 64:
        name = next(names)
        if name not in vocabulary:
            vocabulary[name] = len(vocabulary)
            content["model"]["merges"].append([name[0], name[1]])
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    return folder


def test_a_tokenizer_larger_than_the_model_is_of_use_as_far_as_the_model_goes(narrow_folder: Path) -> None:
    with oga.Model(narrow_folder) as model, oga.Engine(model) as engine:
        tokenizer = model.tokenizer
        beyond = [token for token in range(VOCABULARY, VOCABULARY + 64) if tokenizer.token_bytes(token)]
        assert beyond
        with pytest.raises(oga.InvalidArgumentError, match=str(beyond[0])):
            engine.stream(tokenizer.decode(beyond[:1]), max_new_tokens=2)
        for form in FORMS.values():
            stream = engine.stream("A B C", max_new_tokens=30, **form)
            assert "".join(stream) == tokenizer.decode(stream.token_ids)
            assert max(stream.token_ids) < VOCABULARY
        word = tokenizer.decode(beyond[:1])
        assert "".join(engine.stream("A B C", guidance=("regex", word))) == word
