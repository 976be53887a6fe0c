"""Every sampler field acts as the engine's own option does; what is out of its range is refused and disturbs nobody."""

from __future__ import annotations

import concurrent.futures
import json
from typing import Any

import httpx
import pytest
from running import Running

from oga.server.schemas.common import Sampling
from oga.server.schemas.strict import Ignored

VOCABULARY = 512
GREEDY: dict[str, Any] = {"temperature": 0}
DRAWN: dict[str, Any] = {"temperature": 1.0, "seed": 7, "top_k": 0}
DRY = GREEDY | {"dry_multiplier": 0.3}
XTC = DRAWN | {"xtc_probability": 1.0, "xtc_threshold": 0.01}
ENDS = DRAWN | {"logit_bias": {"0": 9, "2": 9}}

# What is changed, the settings beside it, and the engine's keyword and value where they are called otherwise.
ACTING: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = [
    ({"temperature": 2.0}, DRAWN, {}),
    ({"seed": 8}, DRAWN, {}),
    ({"top_p": 0.3}, DRAWN, {}),
    ({"top_k": 5}, DRAWN, {}),
    ({"min_p": 0.5}, DRAWN, {}),
    ({"typical_p": 0.2}, DRAWN, {}),
    ({"top_n_sigma": 0.5}, DRAWN, {}),
    ({"xtc_probability": 1.0}, DRAWN | {"xtc_threshold": 0.01}, {}),
    ({"xtc_threshold": 0.002}, XTC, {}),
    ({"presence_penalty": 2.0}, GREEDY, {}),
    ({"frequency_penalty": 2.0}, GREEDY, {}),
    ({"repetition_penalty": 5.0}, GREEDY, {}),
    ({"no_repeat_ngram_size": 2}, GREEDY, {}),
    ({"dry_multiplier": 0.3}, GREEDY, {}),
    ({"dry_base": 8.0}, DRY, {}),
    ({"dry_allowed_length": 4}, DRY, {}),
    ({"dry_range": 3}, DRY, {}),
    ({"logit_bias": {"80": 30}}, GREEDY, {"logit_bias": {80: 30}}),
    ({"stop": "8\\"}, GREEDY | {"no_repeat_ngram_size": 2}, {"stop_strings": ["8\\"]}),
    ({"stop_token_ids": [26]}, GREEDY, {"stop_tokens": [26]}),
    ({"ignore_eos": True}, ENDS, {}),
    ({"min_tokens": 20}, ENDS, {"min_new_tokens": 20}),
]
OTHERWISE = {"priority", "model"}


def text_of(http: httpx.Client, **fields: Any) -> str:
    body = {"model": "random", "prompt": "the end", "max_tokens": 60} | fields
    response = http.post("/v1/completions", json=body)
    assert response.status_code == 200, response.text
    text: str = response.json()["choices"][0]["text"]
    return text


def engine_words(fields: dict[str, Any]) -> dict[str, Any]:
    words = dict(fields)
    if "logit_bias" in words:
        words["logit_bias"] = {int(token): bias for token, bias in words["logit_bias"].items()}
    return words


@pytest.mark.parametrize(("changed", "beside", "words"), ACTING, ids=lambda value: str(value)[:40])
def test_a_sampler_field_acts_as_the_option_of_the_engine(
    http: httpx.Client, server: Running, changed: dict[str, Any], beside: dict[str, Any], words: dict[str, Any]
) -> None:
    found = text_of(http, **(beside | changed))
    assert found != text_of(http, **beside)
    keywords = engine_words(beside) | (words or changed)
    generating = server.engines[0].generate("the end", max_new_tokens=60, **keywords)
    assert found == server.on_loop(generating).text
    chat = {"model": "random", "max_tokens": 60, "messages": [{"role": "user", "content": "the end"}]}
    said = [
        http.post("/v1/chat/completions", json=chat | fields).json()["choices"][0]["message"]["content"]
        for fields in (beside, beside | changed)
    ]
    assert (said[0] != said[1]) or changed.keys() & {"stop", "stop_token_ids"}


def test_every_sampler_field_is_tested() -> None:
    fields = Sampling.model_fields.keys() - Ignored.model_fields.keys() - OTHERWISE
    assert fields == {name for changed, _, _ in ACTING for name in changed}


@pytest.mark.parametrize(
    "fields",
    [
        {"temperature": 1e-7},
        {"temperature": 1e-4},
        {"temperature": 5e-324},
        {"temperature": 1e-7, "top_p": 0.9, "top_k": 5},
        {"temperature": 0, "seed": 3},
        {"top_k": 1},
        {"top_k": 1, "seed": 2**63 - 1},
        {"temperature": 5.0, "top_p": 1e-7, "seed": 1},
        {"temperature": 5.0, "min_p": 1.0, "seed": 1},
    ],
)
def test_what_leaves_one_token_is_the_most_likely_one(http: httpx.Client, fields: dict[str, Any]) -> None:
    wanted = text_of(http)
    assert wanted
    assert text_of(http, **fields) == wanted


@pytest.mark.parametrize(
    "fields",
    [
        {"top_k": VOCABULARY},
        {"top_k": VOCABULARY + 1},
        {"top_k": 2**31 - 1},
        {"top_p": 1},
        {"top_p": 0},
        {"top_p": -0.0},
        {"min_p": 0},
        {"typical_p": 1},
        {"top_n_sigma": 0},
    ],
)
def test_what_is_off_changes_nothing(http: httpx.Client, fields: dict[str, Any]) -> None:
    assert text_of(http, **(DRAWN | fields)) == text_of(http, **DRAWN)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1),
        ("temperature", -1e-300),
        ("temperature", 100.001),
        ("temperature", 1e6),
        ("top_k", -1),
        ("top_k", 2**31),
        ("top_k", 1.5),
        ("top_p", 1.0001),
        ("top_p", -0.1),
        ("min_p", 1.1),
        ("min_p", -0.1),
        ("typical_p", 1.1),
        ("top_n_sigma", -1),
        ("xtc_probability", 1.1),
        ("xtc_threshold", -0.1),
        ("repetition_penalty", 0),
        ("repetition_penalty", -1),
        ("presence_penalty", 2.1),
        ("frequency_penalty", -2.1),
        ("no_repeat_ngram_size", -1),
        ("dry_multiplier", -1),
        ("dry_base", 0.5),
        ("dry_allowed_length", 0),
        ("dry_range", -1),
        ("min_tokens", -1),
        ("stop_token_ids", [-1]),
        ("stop_token_ids", [VOCABULARY]),
        ("seed", -(2**63) - 1),
    ],
)
def test_what_is_out_of_range_is_refused_by_name(http: httpx.Client, field: str, value: Any) -> None:
    for is_streamed in (False, True):
        for path, said in (
            ("/v1/completions", {"prompt": "x"}),
            ("/v1/chat/completions", {"messages": [{"role": "user", "content": "x"}]}),
        ):
            response = http.post(path, json={"model": "random", field: value, "stream": is_streamed} | said)
            assert response.status_code == 400, response.text
            error = response.json()["error"]
            assert error["param"].split("[")[0] == field
            assert error["code"] in {"invalid_value", None}


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e999"])
@pytest.mark.parametrize("field", ["temperature", "top_p", "min_p"])
def test_what_is_no_number_is_refused(http: httpx.Client, field: str, text: str) -> None:
    body = json.dumps({"model": "random", "prompt": "x", field: 12345}).replace("12345", text)
    response = http.post("/v1/completions", content=body)
    assert response.status_code == 400
    assert response.json()["error"]["type"] == "invalid_request_error"


def test_extreme_rows_in_one_batch_do_not_disturb_one_another(http: httpx.Client) -> None:
    rows: list[dict[str, Any]] = [
        GREEDY,
        DRAWN,
        {"temperature": 1e-7},
        {"temperature": 100, "seed": 1},
        {"top_k": 2**31 - 1, "seed": 2, "temperature": 1},
        {"temperature": 1, "top_p": 1e-7},
        DRY,
        XTC,
    ]
    alone = [text_of(http, **fields) for fields in rows]
    with concurrent.futures.ThreadPoolExecutor(len(rows)) as pool:
        for _ in range(3):
            assert list(pool.map(lambda fields: text_of(http, **fields), rows)) == alone
