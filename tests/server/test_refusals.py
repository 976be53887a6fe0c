"""What a refusal names: the field that is wrong, as the client wrote it, whatever words the client's texts hold."""

from __future__ import annotations

from typing import Any

import httpx
import openai
import pytest
from running import ask

USER = {"role": "user", "content": "x"}


def refusal(response: httpx.Response) -> dict[str, Any]:
    assert response.status_code == 400, response.text
    error: dict[str, Any] = response.json()["error"]
    return error


def schema_format(schema: Any) -> Any:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}


def array_of_different(name: str) -> Any:
    """A schema with a keyword that cannot be enforced, at a property of this name."""
    return {"type": "object", "properties": {name: {"type": "array", "uniqueItems": True}}}


WORDS = ("context", "session limit", "longest request", "stop_strings", "min_generated_tokens", "logit_bias", "tokens")


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("is_streamed", [False, True])
def test_words_of_a_grammar_are_not_taken_for_the_reason(http: httpx.Client, word: str, is_streamed: bool) -> None:
    rule = word.replace(" ", "_")
    for given in (
        {"type": "lark", "lark": f"start: {rule}"},
        {"type": "regex", "regex": f"({word}"},
        schema_format(array_of_different(word)),
    ):
        error = refusal(ask(http, "x", response_format=given, stream=is_streamed))
        assert (error["param"], error["code"]) == ("response_format", None)
        if given["type"] == "json_schema":
            assert word in error["message"]
    tools = [{"type": "function", "function": {"name": "f", "parameters": array_of_different(word)}}]
    error = refusal(ask(http, "x", tools=tools, tool_choice="required", stream=is_streamed))
    assert (error["param"], error["code"]) == ("tools", None)
    assert word in error["message"]
    error = refusal(ask(http, "6", model="scripted", tools=tools, stream=is_streamed))
    assert (error["param"], error["code"]) == ("tools", None)
    flat = {"format": {"type": "json_schema", "name": "x", "schema": array_of_different(word)}}
    error = refusal(http.post("/v1/responses", json={"model": "random", "input": "x", "text": flat}))
    assert (error["param"], error["code"]) == ("text.format", None)


@pytest.mark.parametrize(
    ("fields", "param", "said"),
    [
        ({"temperature": 0, "top_p": 0.9}, "top_p", "temperature is 0"),
        ({"temperature": 0, "top_k": 5}, "top_k", "temperature is 0"),
        ({"temperature": 0, "min_p": 0.1, "seed": 3}, "min_p", "temperature is 0"),
        ({"temperature": 0, "xtc_probability": 0.5}, "xtc_probability", "temperature is 0"),
        ({"top_k": 1, "top_p": 0.9}, "top_p", "top_k is 1"),
        ({"top_k": 1, "temperature": 0.7}, "temperature", "top_k is 1"),
        ({"stop_token_ids": [512]}, "stop_token_ids", "names token 512"),
        ({"logit_bias": {"600": 1}}, "logit_bias", "logit_bias"),
        ({"logit_bias": {"5": 1, "05": 2}}, "logit_bias", "the key '05'"),
        ({"stop": ["é" * 1024] * 16}, "stop", "bytes"),
        ({"min_tokens": 10, "max_tokens": 5}, "min_tokens", "is 10 but max_generated_tokens is 5"),
        ({"min_tokens": 2000}, "min_tokens", "is 2000; the session limit of 1024"),
        ({"ignore_eos": True, "response_format": {"type": "json_object"}}, "ignore_eos", "guidance"),
        ({"response_format": {"type": "regex", "regex": "a" * 60_000}}, "response_format", "regular expression"),
        ({"response_format": {"type": "regex", "regex": "a\0"}}, "response_format", "NUL"),
        ({"dry_allowed_length": 0}, "dry_allowed_length", "greater than or equal to 1"),
    ],
)
def test_a_refusal_of_the_engine_names_the_field(
    http: httpx.Client, fields: dict[str, Any], param: str, said: str
) -> None:
    error = refusal(ask(http, "x", **fields))
    assert error["param"] == param
    assert said in error["message"]
    assert error["code"] in (None, "invalid_value")
    assert error["message"].startswith(param), "a message begins with the request's own name for what it is about"
    assert "do_sample" not in error["message"]


def test_what_is_off_may_stand_beside_temperature_0(http: httpx.Client) -> None:
    wanted = ask(http, "x", max_tokens=4).json()["choices"]
    off = {"top_p": 1, "top_k": 0, "min_p": 0, "typical_p": 0, "top_n_sigma": 0, "xtc_probability": 0}
    for fields in (off, {"top_k": 1}, {"seed": 3}, {"top_p": 0}):
        assert ask(http, "x", max_tokens=4, temperature=0, **fields).json()["choices"] == wanted


def test_a_prompt_that_is_too_long_names_itself(http: httpx.Client) -> None:
    for said in ("x " * 600, "x" * 50_000):
        error = refusal(ask(http, said))
        assert (error["param"], error["code"]) == ("messages", "context_length_exceeded")
        error = refusal(http.post("/v1/completions", json={"model": "random", "prompt": said}))
        assert (error["param"], error["code"]) == ("prompt", "context_length_exceeded")
        error = refusal(http.post("/v1/responses", json={"model": "random", "input": said}))
        assert (error["param"], error["code"]) == ("input", "context_length_exceeded")


@pytest.mark.parametrize("is_streamed", [False, True])
def test_a_format_beside_tools_is_refused(http: httpx.Client, is_streamed: bool) -> None:
    tool = {"type": "function", "function": {"name": "f"}}
    named = {"type": "function", "function": {"name": "f"}}
    for format_ in ({"type": "json_object"}, {"type": "regex", "regex": "a"}, {"type": "lark", "lark": 'start: "a"'}):
        for choice in (None, "auto", "required", named):
            fields = {"model": "scripted", "tools": [tool], "tool_choice": choice, "response_format": format_}
            error = refusal(ask(http, "6", stream=is_streamed, **fields))
            assert error["param"] == "response_format"
            assert "set_" not in error["message"]
            assert "guidance" not in error["message"]
        assert ask(http, "6", **(fields | {"tool_choice": "none", "max_tokens": 2})).status_code == 200
    body = {"model": "scripted", "input": "6", "tools": [{"type": "function", "name": "f"}]}
    for choice in ("auto", "required"):
        body |= {"tool_choice": choice, "text": {"format": {"type": "json_object"}}, "stream": is_streamed}
        assert refusal(http.post("/v1/responses", json=body))["param"] == "text.format"


PATHS: list[tuple[dict[str, Any], str]] = [
    ({"messages": [USER | {"content": None}]}, "messages[0].content"),
    ({"messages": [USER | {"content": [{"type": "image_url"}]}]}, "messages[0].content[0].type"),
    ({"messages": [USER, {"role": "assistant", "content": [{"type": "text", "text": 4}]}]},
     "messages[1].content[0].text"),
    ({"messages": [USER | {"extra": 1}]}, "messages[0].extra"),
    ({"messages": [USER | {"user": "x"}]}, "messages[0].user"),
    ({"messages": [{"role": "user"}]}, "messages[0].content"),
    ({"messages": [{"role": "wizard"}]}, "messages[0]"),
    ({"messages": [USER, {"role": "tool", "content": "x"}]}, "messages[1].tool_call_id"),
    ({"stop": 5}, "stop"),
    ({"stop": ["a", ""]}, "stop[1]"),
    ({"tool_choice": {"type": "function", "function": {}}}, "tool_choice.function.name"),
    ({"tool_choice": "some"}, "tool_choice"),
    ({"tools": [{"type": "function", "function": {"name": "bad name"}}]}, "tools[0].function.name"),
    ({"tools": [{"type": "function", "function": {"name": "f", "foo": 1}}]}, "tools[0].function.foo"),
    ({"tools": [{"type": "function"}]}, "tools[0].function"),
    ({"response_format": {"type": "regex", "regex": 5}}, "response_format.regex"),
    ({"response_format": {"type": "regex"}}, "response_format.regex"),
    ({"response_format": {"type": "lark", "lark": "x", "foo": 1}}, "response_format.foo"),
    ({"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}}, "response_format.json_schema.name"),
    ({"response_format": {"type": "json_schema", "json_schema": {"name": "x", "y": 1}}},
     "response_format.json_schema.y"),
    ({"stream_options": {"include_usage": 1}}, "stream_options.include_usage"),
    ({"logit_bias": {"5": "x"}}, "logit_bias.5"),
]  # fmt: skip


@pytest.mark.parametrize(("fields", "param"), PATHS)
def test_the_path_of_a_field_is_that_of_the_request(http: httpx.Client, fields: dict[str, Any], param: str) -> None:
    assert refusal(ask(http, "x", **fields))["param"] == param


@pytest.mark.parametrize(
    ("item", "param"),
    [
        ({"role": "user", "content": "x", "foo": 1}, "input[0].foo"),
        ({"role": "user", "content": [{"type": "input_text"}]}, "input[0].content[0].text"),
        ({"type": "message", "role": "user"}, "input[0].content"),
        ({"type": "function_call", "name": "f", "arguments": "{}"}, "input[0].call_id"),
        ({"type": "function_call_output", "call_id": "x", "output": 5}, "input[0].output"),
        ({"type": "reasoning"}, "input[0]"),
        (5, "input[0]"),
    ],
)
def test_the_path_of_an_item_is_that_of_the_request(http: httpx.Client, item: Any, param: str) -> None:
    body = {"model": "random", "input": [item]}
    assert refusal(http.post("/v1/responses", json=body))["param"] == param


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("", "prompt: String should have at least 1 character"),
        ([], "prompt: List should have at least 1 item after validation, not 0"),
        ([""], "prompt[0]: String should have at least 1 character"),
        ([[]], "prompt[0]: List should have at least 1 item after validation, not 0"),
        ([-1], "prompt[0]: Input should be greater than or equal to 0"),
        (5, "prompt: Input should be a valid string or a valid list"),
        ({}, "prompt: Input should be a valid string or a valid list"),
    ],
)
def test_a_prompt_that_is_none_is_one_sentence(http: httpx.Client, prompt: Any, message: str) -> None:
    error = refusal(http.post("/v1/completions", json={"model": "random", "prompt": prompt}))
    assert error["message"] == message
    assert message.startswith(error["param"] + ":")


UNSUPPORTED = {
    "/v1/chat/completions": (
        {"messages": [USER]},
        ("functions", "function_call", "audio", "reasoning_effort", "verbosity", "prediction", "web_search_options"),
    ),
    "/v1/completions": ({"prompt": "x"}, ("functions", "top_logprobs", "modalities")),
    "/v1/responses": (
        {"input": "x"},
        ("reasoning", "conversation", "prompt", "max_tool_calls", "top_logprobs", "context_management"),
    ),
    "/v1/sessions": ({}, ("metadata",)),
    "/tokenize": ({"prompt": "x"}, ("images",)),
}


@pytest.mark.parametrize("path", UNSUPPORTED)
def test_null_is_accepted_where_a_value_is_refused(http: httpx.Client, path: str) -> None:
    body, names = UNSUPPORTED[path]
    for name in names:
        response = http.post(path, json=body | {"model": "random", name: None})
        assert response.status_code in (200, 201), (name, response.text)
        for value in ({}, [], "low", 1, False):
            error = refusal(http.post(path, json=body | {"model": "random", name: value}))
            assert (error["param"], error["code"]) == (name, "unknown_parameter")


def test_null_is_accepted_inside_of_messages_and_tools(http: httpx.Client) -> None:
    function = {"name": "f", "parameters": {}, "returns": None}
    said = USER | {"name": None, "audio": None, "refusal": None, "tool_calls": None}
    part = {"type": "text", "text": "x", "annotations": None, "cache_control": None}
    for fields in (
        {"messages": [said]},
        {"messages": [USER | {"content": [part]}]},
        {"tools": [{"type": "function", "function": function, "custom": None}], "tool_choice": "none"},
        {"response_format": {"type": "text", "json_schema": None}},
        {"stream_options": {"continuous": None}},
    ):
        response = ask(http, "x", **({"max_tokens": 2} | fields))
        assert response.status_code == 200, response.text
    assert refusal(ask(http, "x", messages=[said | {"audio": {"id": "x"}}]))["param"] == "messages[0].audio"


def test_the_message_of_the_client_goes_back_as_it_is(client: openai.OpenAI) -> None:
    tool: Any = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}
    for said in ("1", "6"):
        fields: dict[str, Any] = {"model": "scripted", "tools": [tool]}
        messages: list[Any] = [{"role": "user", "content": said}]
        message = client.chat.completions.create(**fields, messages=messages).choices[0].message
        assert (message.tool_calls is not None) == (said == "6")
        for answer in (message, message.model_dump()):
            results = [{"role": "tool", "tool_call_id": call.id, "content": "1"} for call in message.tool_calls or []]
            again = [*messages, answer, *results, {"role": "user", "content": "1"}]
            told = client.chat.completions.create(**fields, messages=again).choices[0].message
            assert told.content == "UNO DUE TRE"


def test_the_output_of_a_response_goes_back_as_it_is(client: openai.OpenAI) -> None:
    tools: Any = [{"type": "function", "name": "get_weather", "parameters": {"type": "object"}}]
    answer = client.responses.create(model="scripted", input="6", tools=tools)
    said: list[Any] = [{"role": "user", "content": "6"}, *(item.model_dump() for item in answer.output)]
    call = next(item for item in answer.output if item.type == "function_call")
    said.append({"type": "function_call_output", "call_id": call.call_id, "output": "1"})
    assert client.responses.create(model="scripted", input=said, tools=tools).output_text == "UNO DUE TRE"
