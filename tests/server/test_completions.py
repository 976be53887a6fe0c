"""Plain completions: text as it is, echoed and scored when asked."""

from __future__ import annotations

import json
import math
from typing import Any

import httpx
import openai
import pytest


def complete(http: httpx.Client, **fields: Any) -> httpx.Response:
    return http.post("/v1/completions", json={"model": "random", "prompt": "the end"} | fields)


def test_the_streamed_text_is_the_whole_text(client: openai.OpenAI) -> None:
    fields: dict[str, Any] = {"model": "random", "prompt": ["the end", "again"], "n": 2, "seed": 3, "temperature": 1}
    fields["max_tokens"] = 12
    whole = client.completions.create(**fields)
    assert [choice.index for choice in whole.choices] == [0, 1, 2, 3]
    texts = [""] * 4
    for chunk in client.completions.create(stream=True, **fields):
        texts[chunk.choices[0].index] += chunk.choices[0].text
    assert texts == [choice.text for choice in whole.choices]
    assert len(set(texts)) == 4


def test_tokens_and_text_are_the_same_prompt(http: httpx.Client) -> None:
    tokens = http.post("/tokenize", json={"model": "random", "prompt": "the end"}).json()["tokens"]
    wanted = complete(http).json()["choices"][0]["text"]
    for prompt in (tokens, [tokens], ["the end"]):
        assert complete(http, prompt=prompt).json()["choices"][0]["text"] == wanted
    assert len(complete(http).json()["choices"]) == 1
    assert complete(http).json()["usage"]["completion_tokens"] == 16


def test_echo_shows_the_prompt_once(client: openai.OpenAI) -> None:
    fields: dict[str, Any] = {"model": "scripted", "prompt": "count 1", "echo": True}
    assert client.completions.create(**fields).choices[0].text == "count 1UNO DUE TRE"
    chunks = [chunk.choices[0].text for chunk in client.completions.create(stream=True, **fields)]
    assert "".join(chunks) == "count 1UNO DUE TRE"


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_prompt_can_be_scored_without_generating(http: httpx.Client, is_streamed: bool) -> None:
    body = {"max_tokens": 0, "echo": True, "logprobs": 2, "stream": is_streamed}
    response = complete(http, **body)
    assert response.status_code == 200, response.text
    if is_streamed:
        lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
        assert lines[-1] == "[DONE]"
        choice = json.loads(lines[0])["choices"][0]
    else:
        choice = response.json()["choices"][0]
        assert response.json()["usage"]["completion_tokens"] == 0
    assert (choice["text"], choice["finish_reason"]) == ("the end", "length")
    found = choice["logprobs"]
    assert "".join(found["tokens"]) == "the end"
    assert found["token_logprobs"][0] is None
    assert all(math.isfinite(value) and value <= 0 for value in found["token_logprobs"][1:])
    assert found["text_offset"] == [sum(map(len, found["tokens"][:at])) for at in range(len(found["tokens"]))]
    assert all(2 <= len(top) <= 3 for top in found["top_logprobs"][1:])


def test_scores_do_not_depend_on_how_the_text_came_about(http: httpx.Client) -> None:
    written = complete(http, max_tokens=6, logprobs=0, echo=True).json()["choices"][0]
    scored = complete(http, prompt=written["text"], max_tokens=0, logprobs=0, echo=True).json()["choices"][0]
    if scored["logprobs"]["tokens"] == written["logprobs"]["tokens"]:
        pairs = zip(written["logprobs"]["token_logprobs"][1:], scored["logprobs"]["token_logprobs"][1:], strict=True)
        assert all(abs(one - other) < 1e-3 for one, other in pairs)


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"max_tokens": "5"}, "max_tokens"),
        ({"max_tokens": 1e18}, "max_tokens"),
        ({"prompt": ""}, "prompt"),
        ({"prompt": [""]}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [[]]}, "prompt"),
        ({"prompt": None}, "prompt"),
        ({"prompt": [600]}, "600"),
        ({"prompt": [-1]}, "prompt"),
        ({"prompt": [2**40]}, "prompt"),
        ({"prompt": ["x"] * 17}, "prompt"),
        ({"prompt": ["x"] * 100_000}, "prompt"),
        ({"best_of": 4}, "best_of"),
        ({"suffix": "x"}, "suffix"),
        ({"logprobs": 21}, "logprobs"),
        ({"prompt": "x" * 5000}, "limit of 1024"),
        ({"unknown": 1}, "unknown"),
    ],
)
def test_what_is_not_right_is_refused_by_name(http: httpx.Client, fields: dict[str, Any], named: str) -> None:
    response = complete(http, **fields)
    assert response.status_code == 400, response.text
    error = response.json()["error"]
    assert named in (error["param"] or "") + error["message"]
    assert len(response.content) < 4096
    assert complete(http, max_tokens=1).status_code == 200


def test_the_longest_prompt_leaves_room_for_one_token(http: httpx.Client) -> None:
    assert complete(http, prompt=[5] * 1023).json()["usage"]["completion_tokens"] == 1
    response = complete(http, prompt=[5] * 1024)
    assert response.status_code == 400
    assert response.json()["error"]["code"] == "context_length_exceeded"


def test_special_tokens_in_a_completion_prompt_are_special_and_hidden_in_what_comes_out(http: httpx.Client) -> None:
    tokens = http.post("/tokenize", json={"model": "scripted", "prompt": "<|im_end|>"}).json()["tokens"]
    assert tokens == [2]
    answer = complete(http, model="scripted", prompt="5").json()["choices"][0]["text"]
    assert answer == "hidden shown"
    body = {"model": "random", "tokens": [2, 5], "skip_special_tokens": True}
    assert "<|im_end|>" not in http.post("/detokenize", json=body).json()["text"]
