"""Plain completions: text as it is, echoed and scored when asked."""

from __future__ import annotations

import codecs
import json
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
from running import BOS, ENGINE, started

from oga.server import ModelSource, ServerSettings

SPECIAL = (BOS, "<|im_start|>", "<|im_end|>")


@pytest.fixture(scope="module")
def with_bos(sources: list[ModelSource], bos_folder: Path) -> Iterator[httpx.Client]:
    """A client of a server that has a model with BOS too."""
    models = [*sources, ModelSource("bos", bos_folder, ENGINE)]
    with started(ServerSettings(models=models)) as running, httpx.Client(base_url=running.url, timeout=30) as created:
        yield created
        running.assert_idle()


def unescaped(token: str) -> bytes:
    """The bytes of a token that is reported as text, where bytes that are none are escaped."""
    return re.sub(rb"\\x([0-9a-f]{2})", lambda found: bytes.fromhex(found[1].decode()), token.encode())


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


@pytest.mark.parametrize("options", [None, {}, {"include_usage": False}, {"include_usage": True}])
@pytest.mark.parametrize(
    "extra", [{}, {"n": 2}, {"prompt": ["the end", "again"]}, {"max_tokens": 1}, {"max_tokens": 0, "echo": True}]
)
def test_the_usage_chunk_comes_when_asked_for(http: httpx.Client, options: Any, extra: dict[str, Any]) -> None:
    response = complete(http, stream=True, stream_options=options, **extra)
    *chunks, done = [line[6:] for line in response.text.splitlines() if line.startswith("data: ")]
    assert done == "[DONE]"
    parsed = [json.loads(chunk) for chunk in chunks]
    assert len({chunk["id"] for chunk in parsed}) == 1
    if options == {"include_usage": True}:
        *parsed, last = parsed
        assert last["choices"] == []
        whole = complete(http, **extra).json()["usage"]
        assert {name: last["usage"][name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")} == {
            name: whole[name] for name in ("prompt_tokens", "completion_tokens", "total_tokens")
        }
        assert all(chunk["usage"] is None for chunk in parsed)
    else:
        assert all("usage" not in chunk for chunk in parsed)
    assert all(len(chunk["choices"]) == 1 and "finish_reason" in chunk["choices"][0] for chunk in parsed)
    ended = [chunk["choices"][0]["index"] for chunk in parsed if chunk["choices"][0]["finish_reason"] == "length"]
    assert sorted(ended) == list(range(extra.get("n", 1) * (len(extra["prompt"]) if "prompt" in extra else 1)))


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


TEXTS = ["the end", "a 🙂 b", "模型 z", "🙂🙂", "é e\u0301", "<|im_end|>x", "x\nx"]


@pytest.mark.parametrize("prompt", TEXTS)
@pytest.mark.parametrize("model", ["random", "bos", "scripted"])
@pytest.mark.parametrize("stop", [None, ["E T"]])
def test_offsets_are_places_in_the_text(
    with_bos: httpx.Client, model: str, prompt: str, stop: list[str] | None
) -> None:
    fields = {"model": model, "prompt": prompt + " 1", "max_tokens": 12, "echo": True, "logprobs": 0, "stop": stop}
    answer = complete(with_bos, **fields, temperature=1, seed=2).json()
    choice, prompt_tokens = answer["choices"][0], answer["usage"]["prompt_tokens"]
    found, text = choice["logprobs"], choice["text"]
    assert text.startswith(prompt + " 1")
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    said = ""
    for index, (token, offset) in enumerate(zip(found["tokens"], found["text_offset"], strict=True)):
        assert offset == len(said), (index, token)
        is_hidden = token in SPECIAL and (index >= prompt_tokens or (index == 0 and model == "bos"))
        said += "" if is_hidden else decoder.decode(unescaped(token))
    said += decoder.decode(b"", final=True)
    assert said.startswith(text)
    assert said == text or choice["finish_reason"] == "stop"
    streamed = with_bos.post("/v1/completions", json=fields | {"temperature": 1, "seed": 2, "stream": True}).text
    offsets: list[int] = []
    for line in streamed.splitlines():
        if line.startswith("data: {"):
            offsets += json.loads(line[6:])["choices"][0]["logprobs"]["text_offset"]
    assert offsets == found["text_offset"]


def test_a_token_that_is_not_in_the_text_has_no_length(with_bos: httpx.Client) -> None:
    fields = {"model": "bos", "prompt": "hi", "max_tokens": 0, "echo": True, "logprobs": 0}
    choice = complete(with_bos, **fields).json()["choices"][0]
    assert choice["text"] == "hi"
    assert choice["logprobs"]["tokens"] == [BOS, "h", "i"]
    assert choice["logprobs"]["text_offset"] == [0, 0, 1]
    choice = complete(with_bos, model="scripted", prompt="5", max_tokens=9, logprobs=0).json()["choices"][0]
    assert choice["text"] == "hidden shown"
    assert choice["logprobs"]["text_offset"] == [0, 0, 6, 6]
    emoji = complete(with_bos, model="scripted", prompt="3", max_tokens=9, logprobs=0).json()["choices"][0]
    assert emoji["text"] == "smile 🙂~"
    assert emoji["logprobs"]["text_offset"] == [0, 6, 6, 6, 6, 7]


def test_a_completion_has_bos_once_and_a_chat_too(with_bos: httpx.Client) -> None:
    def tokens(**fields: Any) -> list[int]:
        found: list[int] = with_bos.post("/tokenize", json={"model": "bos"} | fields).json()["tokens"]
        return found

    bos, *text = tokens(prompt="hi")
    assert with_bos.post("/detokenize", json={"model": "bos", "tokens": [bos]}).json()["text"] == BOS
    assert tokens(prompt=BOS + "hi") == [bos, *text]
    assert tokens(prompt=BOS) == [bos]
    assert tokens(prompt="hi", add_special_tokens=False) == text
    assert tokens(prompt=BOS + "hi", add_special_tokens=False) == [bos, *text]
    assert tokens(prompt="x" + BOS + "hi").count(bos) == 2
    answers = []
    for prompt in ("hi", BOS + "hi", [bos, *text]):
        answer = complete(with_bos, model="bos", prompt=prompt, max_tokens=4).json()
        assert answer["usage"]["prompt_tokens"] == len(text) + 1
        answers.append(answer["choices"][0]["text"])
    assert len(set(answers)) == 1
    assert complete(with_bos, model="bos", prompt=[BOS + "hi", "hi"]).json()["usage"]["prompt_tokens"] == 2 * (
        len(text) + 1
    )
    chat = tokens(messages=[{"role": "user", "content": "hi"}])
    assert chat.count(bos) == 1
    assert chat[0] == bos
    spoken = tokens(messages=[{"role": "user", "content": BOS + "hi"}])
    assert spoken.count(bos) == 1


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
