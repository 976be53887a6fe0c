"""Tool calls and answers that obey a grammar."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from typing import Any

import httpx
import jsonschema
import openai
import pytest
from running import started

from oga.server import ModelSource, ServerSettings

CITY = {
    "type": "object",
    "properties": {"city": {"enum": ["Paris", "Rome"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}
PLACE = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 12}}, "required": ["city"]}


def tool(name: str, parameters: Any = None) -> Any:
    return {"type": "function", "function": {"name": name, "description": "x", "parameters": parameters}}


WEATHER, CLOCK = tool("get_weather", CITY), tool("get_time", CITY)
RANDOM: dict[str, Any] = {"model": "random", "max_tokens": 120, "messages": [{"role": "user", "content": "x"}]}
SCRIPTED: dict[str, Any] = {
    "model": "scripted",
    "messages": [{"role": "user", "content": "6"}],
    "tools": [tool("get_weather", PLACE), tool("get_time", PLACE)],
}
Told = tuple[str, list[tuple[str, str]], str | None]


def whole(client: openai.OpenAI, **fields: Any) -> Told:
    choice = client.chat.completions.create(**fields).choices[0]
    calls = [(call.function.name, call.function.arguments) for call in choice.message.tool_calls or []]  # type: ignore[union-attr]
    return choice.message.content or "", calls, choice.finish_reason


def streamed(client: openai.OpenAI, **fields: Any) -> Told:
    text, reason = "", None
    calls: dict[int, list[str]] = {}
    for chunk in client.chat.completions.create(stream=True, **fields):
        choice = chunk.choices[0]
        text += choice.delta.content or ""
        reason = choice.finish_reason or reason
        for each in choice.delta.tool_calls or []:
            assert each.function
            if each.id is not None:
                calls[each.index] = [each.function.name or "", ""]
            calls[each.index][1] += each.function.arguments or ""
    return text, [(name, arguments) for name, arguments in (calls[index] for index in sorted(calls))], reason


def both(client: openai.OpenAI, **fields: Any) -> Told:
    """What an answer says, which is the same streamed and whole."""
    told = whole(client, **fields)
    assert streamed(client, **fields) == told
    return told


def test_a_model_that_may_call_calls_between_its_marks(client: openai.OpenAI) -> None:
    for choice in ({}, {"tool_choice": "auto"}):
        text, calls, reason = both(client, **SCRIPTED, **choice)
        assert calls == [("get_weather", '{"city": "Paris"}')]
        assert (text, reason) == ("Let me see.  Done.", "tool_calls")
    text, calls, reason = both(client, **SCRIPTED, parallel_tool_calls=False)
    assert (text, len(calls), reason) == ("Let me see. ", 1, "tool_calls")


@pytest.mark.parametrize("limit", range(1, 12))
def test_a_call_that_is_cut_off_says_length(client: openai.OpenAI, limit: int) -> None:
    text, calls, reason = both(client, **SCRIPTED, max_tokens=limit)
    assert text == ("Let me see.  Done." if limit >= 10 else "Let me see. ")
    arguments = '{"city": "Paris"}'
    assert calls == ([] if limit < 4 else [("get_weather", calls[0][1])])
    assert all(arguments.startswith(written) for _, written in calls)
    assert reason == ("tool_calls" if limit > 10 else "length")


def test_a_model_that_may_not_call_writes_text(client: openai.OpenAI) -> None:
    text, calls, reason = both(client, **SCRIPTED, tool_choice="none")
    assert calls == []
    assert text.startswith("Let me see. ")
    assert reason == "stop"


@pytest.mark.parametrize("model", ["random", "scripted"])
def test_a_model_that_has_to_call_calls(client: openai.OpenAI, model: str) -> None:
    for seed in range(3):
        fields = RANDOM | {"model": model, "tools": [WEATHER, CLOCK], "seed": seed, "temperature": 1.0}
        fields["max_tokens"] = 600
        text, calls, reason = both(client, **fields, tool_choice="required", parallel_tool_calls=False)
        assert (text, reason) == ("", "tool_calls")
        ((name, arguments),) = calls
        assert name in {"get_weather", "get_time"}
        jsonschema.validate(json.loads(arguments), CITY)
        named = {"type": "function", "function": {"name": "get_time"}}
        text, calls, reason = both(client, **fields, tool_choice=named)
        assert [name for name, _ in calls] == ["get_time"]
        assert reason == "tool_calls"


NAMED = {"type": "function", "function": {"name": "get_weather"}}
PARIS = {"type": "object", "properties": {"city": {"const": "Paris"}}, "required": ["city"]} | {
    "additionalProperties": False
}
# What stands in the call is {"name": "get_weather", "arguments": {"city": "Paris"}}.
STOPS_IN_A_CALL: list[tuple[list[str], str | None, str | None]] = [
    (["Par"], '{"city": "', "stop"),
    (["nothing", "ris"], '{"city": "Pa', "stop"),
    (['{"city'], "", "stop"),
    (['is"'], '{"city": "Par', "stop"),
    (["weather"], None, "stop"),
    (['"arguments"'], None, "stop"),
]


@pytest.fixture(scope="module")
def plain_marks(sources: list[ModelSource], tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    """A client of the scripted model whose marks around calls are ordinary added tokens, so that they are text."""
    _, scripted = sources
    folder = tmp_path_factory.mktemp("marks") / "model"
    shutil.copytree(scripted.folder, folder)
    path = folder / "tokenizer.json"
    described = json.loads(path.read_text())
    for token in described["added_tokens"]:
        if "tool_call" in token["content"]:
            token["special"] = False
    path.write_text(json.dumps(described))
    with (
        started(ServerSettings(models=[sources[0], ModelSource("scripted", folder, scripted.config)])) as running,
        openai.OpenAI(base_url=f"{running.url}/v1", api_key="none", max_retries=0) as created,
    ):
        yield created
        running.assert_idle()


@pytest.mark.parametrize(("stop", "arguments", "reason"), STOPS_IN_A_CALL)
@pytest.mark.parametrize("choice", ["auto", "required", NAMED])
@pytest.mark.parametrize("marks", ["client", "plain_marks"])
def test_a_stop_string_acts_inside_a_call(
    request: pytest.FixtureRequest, marks: str, choice: Any, stop: list[str], arguments: str, reason: str
) -> None:
    client: openai.OpenAI = request.getfixturevalue(marks)
    fields = SCRIPTED | {"tools": [tool("get_weather", PARIS)], "stop": stop, "max_tokens": 200, "temperature": 0}
    fields["parallel_tool_calls"] = choice == "auto"
    text, calls, told = both(client, **fields, tool_choice=choice)
    assert calls == ([] if arguments is None else [("get_weather", arguments)])
    assert told == reason
    if choice != "auto":
        assert text == ""
    elif reason == "stop":
        assert text == "Let me see. "


@pytest.mark.parametrize("marks", ["client", "plain_marks"])
def test_stop_strings_around_a_call_keep_what_they_hold_back_in_its_place(
    request: pytest.FixtureRequest, marks: str
) -> None:
    client: openai.OpenAI = request.getfixturevalue(marks)
    call = [("get_weather", '{"city": "Paris"}')]
    # The end of the text before the call may become the first one, the end of the call the second one.
    for stop in (["see. <tool_call>\n["], [". [", "}} Bye"], ["Done!"]):
        assert both(client, **SCRIPTED, stop=stop) == ("Let me see.  Done.", call, "tool_calls")
    for stop, arguments in (('s"}', '{"city": "Pari'), ("}}", '{"city": "Paris"'), (' "Paris"', '{"city":')):
        assert both(client, **SCRIPTED, stop=[stop]) == ("Let me see. ", [("get_weather", arguments)], "stop")
    assert both(client, **SCRIPTED, stop=["me see"]) == ("Let ", [], "stop")
    assert both(client, **SCRIPTED, stop=[" Done"]) == ("Let me see. ", call, "tool_calls")


OBJECTS: list[Any] = [
    None,
    {},
    {"type": "object"},
    {"type": ["object"]},
    {"properties": {"city": {"enum": ["Rome"]}}, "required": ["city"], "additionalProperties": False},
    {"$ref": "#/$defs/place", "$defs": {"place": {"type": "object", "additionalProperties": False}}},
    {"anyOf": [{"type": "object", "additionalProperties": False}, {"type": "string"}]},
    {"enum": [{"a": 1}, "b"]},
]


@pytest.mark.parametrize("parameters", OBJECTS)
@pytest.mark.parametrize("model", ["random", "scripted"])
def test_the_arguments_of_a_function_are_an_object(client: openai.OpenAI, model: str, parameters: Any) -> None:
    named = {"type": "function", "function": {"name": "f"}}
    for seed, choice in ((1, "required"), (2, named)):
        fields = RANDOM | {"model": model, "tools": [tool("f", parameters)], "temperature": 1.0, "max_tokens": 700}
        fields |= {"tool_choice": choice, "parallel_tool_calls": False, "seed": seed}
        text, calls, reason = both(client, **fields)
        ((_, arguments),) = calls
        assert text == ""
        assert arguments.startswith("{")
        if reason == "tool_calls":
            found = json.loads(arguments)
            assert isinstance(found, dict)
            jsonschema.validate(found, parameters or {})


NOT_OBJECTS: list[Any] = [
    {"type": "integer", "minimum": 0},
    {"type": "number"},
    {"type": "string", "maxLength": 3},
    {"type": "null"},
    {"type": "boolean"},
    {"type": "array"},
    {"type": ["object", "null"]},
    {"type": []},
    {"type": None},
    {"type": {"x": 1}},
]


@pytest.mark.parametrize("parameters", NOT_OBJECTS)
@pytest.mark.parametrize("choice", ["auto", "required", "none", {"type": "function", "function": {"name": "g"}}])
def test_a_function_whose_arguments_are_no_object_is_refused(http: httpx.Client, choice: Any, parameters: Any) -> None:
    tools = [tool("g", CITY), tool("f", parameters)]
    for model in ("random", "scripted"):
        body = RANDOM | {"model": model, "tools": tools, "tool_choice": choice}
        response = http.post("/v1/chat/completions", json=body)
        assert response.status_code == 400, response.text
        error = response.json()["error"]
        assert error["param"] == "tools[1].function.parameters"
        assert '"object"' in error["message"]
    flat = {"type": "function", "name": "f", "parameters": parameters}
    response = http.post("/v1/responses", json={"model": "scripted", "input": "x", "tools": [flat]})
    assert (response.status_code, response.json()["error"]["param"]) == (400, "tools[0].parameters")


def test_a_function_whose_arguments_nothing_can_be_is_refused(http: httpx.Client) -> None:
    body = RANDOM | {"tools": [tool("f", {"enum": ["a", 3]})], "tool_choice": "required"}
    response = http.post("/v1/chat/completions", json=body)
    assert (response.status_code, response.json()["error"]["param"]) == (400, "tools")


def test_a_forced_call_that_is_cut_off_says_length(client: openai.OpenAI) -> None:
    fields = RANDOM | {"tools": [WEATHER], "tool_choice": "required", "parallel_tool_calls": False}
    _, complete, _ = whole(client, **fields)
    for limit in (1, 5, 20, 40, 50, 60):
        _, calls, reason = both(client, **(fields | {"max_tokens": limit}))
        assert reason in {"length", "tool_calls"}
        assert (reason == "tool_calls") == (calls == complete)


@pytest.mark.parametrize("choice", ["required", NAMED])
@pytest.mark.parametrize("model", ["random", "scripted"])
def test_a_forced_call_says_length_at_every_limit_that_cuts_it(client: openai.OpenAI, model: str, choice: Any) -> None:
    fields = RANDOM | {"model": model, "tools": [tool("get_weather", PARIS)], "tool_choice": choice}
    fields |= {"parallel_tool_calls": False, "temperature": 0, "max_tokens": 400}
    _, ((name, arguments),), reason = both(client, **fields)
    assert reason == "tool_calls"
    needed = client.chat.completions.create(**fields).usage
    assert needed is not None
    for limit in range(1, needed.completion_tokens + 2):
        text, calls, reason = both(client, **(fields | {"max_tokens": limit}))
        assert text == ""
        assert all(each == name and arguments.startswith(written) for each, written in calls)
        if limit < needed.completion_tokens:
            assert reason == "length"
        else:
            assert (calls, reason) == ([(name, arguments)], "tool_calls")


def test_several_calls_in_one_answer(client: openai.OpenAI) -> None:
    counts = set()
    for seed in range(6):
        fields = RANDOM | {"tools": [WEATHER], "tool_choice": "required", "seed": seed, "temperature": 1.5}
        _, calls, reason = both(client, **(fields | {"max_tokens": 400}))
        counts.add(len(calls))
        for _, arguments in calls[:-1] if reason == "length" else calls:
            jsonschema.validate(json.loads(arguments), CITY)
    assert max(counts) > 1


def test_the_result_of_a_call_goes_back_to_the_model(client: openai.OpenAI) -> None:
    first = client.chat.completions.create(**SCRIPTED).choices[0].message
    assert first.tool_calls
    result = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "1"}
    messages = [*SCRIPTED["messages"], first.model_dump(exclude_none=True), result]
    text, calls, reason = both(client, **(SCRIPTED | {"messages": messages}))
    assert (text, calls, reason) == ("UNO DUE TRE", [], "stop")


def test_calls_in_responses(client: openai.OpenAI) -> None:
    tools: Any = [{"type": "function", "name": "get_weather", "parameters": PLACE, "strict": True}]
    answer = client.responses.create(model="scripted", input="6", tools=tools)
    assert [item.type for item in answer.output] == ["message", "function_call"]
    call: Any = answer.output[1]
    assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "Paris"})
    back: Any = [{"type": "function_call_output", "call_id": call.call_id, "output": "1"}]
    after = client.responses.create(model="scripted", input=back, previous_response_id=answer.id, tools=tools)
    assert after.output_text == "UNO DUE TRE"
    events = list(client.responses.create(model="scripted", input="6", tools=tools, stream=True))
    arguments = "".join(each.delta for each in events if each.type == "response.function_call_arguments.delta")
    assert arguments == call.arguments
    done = [each.item.type for each in events if each.type == "response.output_item.done"]
    assert done[:2] == ["message", "function_call"]


SCHEMAS = [
    CITY,
    {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"], "additionalProperties": False},
    {"type": "array", "items": {"enum": [1, 2]}, "minItems": 1, "maxItems": 3},
    {"enum": ["yes", "no"]},
]


@pytest.mark.parametrize("schema", SCHEMAS)
def test_json_schema_is_obeyed(client: openai.OpenAI, schema: Any) -> None:
    for seed in range(3):
        told = both(
            client,
            **(RANDOM | {"max_tokens": 700}),
            seed=seed,
            temperature=1.0,
            response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": schema, "strict": True}},
        )
        assert told[2] == "stop"
        jsonschema.validate(json.loads(told[0]), schema)
    text: Any = {"format": {"type": "json_schema", "name": "x", "schema": schema}}
    answer = client.responses.create(model="random", input="x", text=text, max_output_tokens=700, temperature=1)
    jsonschema.validate(json.loads(answer.output_text), schema)


def test_further_formats(client: openai.OpenAI, http: httpx.Client) -> None:
    def text(**response_format: Any) -> str:
        body = RANDOM | {"response_format": response_format}
        response = http.post("/v1/chat/completions", json=body)
        assert response.status_code == 200, response.text
        content: str = response.json()["choices"][0]["message"]["content"]
        return content

    assert re.fullmatch("(ab|cd){3}", text(type="regex", regex="(ab|cd){3}"))
    assert text(type="lark", lark='start: "one" | "two"') in {"one", "two"}
    assert text(type="json_object").startswith("{")
    assert client.models.list().data


def schema_format(schema: Any) -> Any:
    return {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}


def nested(levels: int) -> Any:
    schema: Any = {"type": "null"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


HOSTILE: dict[str, Any] = {
    "an open group": {"type": "regex", "regex": "("},
    "a wrong range": {"type": "regex", "regex": "[z-a]"},
    "a repetition": {"type": "regex", "regex": "a{1000000}"},
    "60,000 groups": {"type": "regex", "regex": "(" * 60_000},
    "a look-ahead": {"type": "regex", "regex": "(?=a)b"},
    "an undefined rule": {"type": "lark", "lark": "start: nothing"},
    "no start": {"type": "lark", "lark": 'a: "x"'},
    "no grammar": {"type": "lark", "lark": "%%%"},
    "a remote reference": schema_format({"$ref": "http://x.invalid/y"}),
    "a wrong type": schema_format({"type": "wizard"}),
    "an unenforceable keyword": schema_format({"type": "array", "contains": {"type": "integer"}}),
    "150 levels": schema_format(nested(150)),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_grammar_is_refused_and_says_why(http: httpx.Client, name: str) -> None:
    response = http.post("/v1/chat/completions", json=RANDOM | {"response_format": HOSTILE[name]})
    assert response.status_code == 400, response.text
    assert len(response.content) < 4096
    assert response.json()["error"]["message"]
    assert http.post("/v1/chat/completions", json=RANDOM | {"max_tokens": 1}).status_code == 200


def test_a_schema_of_10000_levels_is_refused(http: httpx.Client) -> None:
    schema = '{"type": "array", "items": ' * 10_000 + "{}" + "}" * 10_000
    body = json.dumps(RANDOM | {"response_format": schema_format("HERE")}).replace('"HERE"', schema)
    response = http.post("/v1/chat/completions", content=body)
    assert response.status_code == 400
    assert len(response.content) < 4096


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 2 * 10**8},
        {"enum": [f"value {number}" for number in range(10_000)]},
        {"type": "object", "properties": {f"p{number}": {"type": "null"} for number in range(200)}},
        {"$ref": "#/$defs/a", "$defs": {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}, "maxItems": 1}}},
    ],
)
def test_a_large_or_cyclic_schema_works_or_is_refused_in_time(http: httpx.Client, schema: Any) -> None:
    fields = RANDOM | {"max_tokens": 20, "response_format": schema_format(schema)}
    start = time.monotonic()
    response = http.post("/v1/chat/completions", json=fields)
    assert time.monotonic() - start < 10
    assert response.status_code in {200, 400}


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"tool_choice": "required"}, "tools"),
        ({"tools": [WEATHER, WEATHER]}, "same name"),
        ({"tools": [WEATHER]}, "no tokens that mark"),
        ({"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "other"}}}, "other"),
        (
            {"tools": [WEATHER], "tool_choice": "required", "response_format": {"type": "json_object"}},
            "response_format",
        ),
        ({"tools": [{"type": "code_interpreter"}]}, "tools"),
        ({"tools": [tool("bad name")]}, "name"),
    ],
)
def test_what_tools_cannot_be_is_refused(http: httpx.Client, fields: dict[str, Any], named: str) -> None:
    response = http.post("/v1/chat/completions", json=RANDOM | fields)
    assert response.status_code == 400
    assert named in response.text


def test_calls_are_read_the_same_in_pieces_of_any_size() -> None:
    from oga.server.tools import CallArguments, CallReader, CallStart

    text = '{"name": "f", "arguments": {"a": "}\\"{", "b": [1, {"c": null}]}}\n{"name":"g","arguments":{}}'
    for size in range(1, len(text)):
        reader = CallReader()
        parts = [part for at in range(0, len(text), size) for part in reader.feed(text[at : at + size])]
        names = [part.name for part in parts if isinstance(part, CallStart)]
        arguments = ["", ""]
        for part in parts:
            if isinstance(part, CallArguments):
                arguments[part.index] += part.text
        assert names == ["f", "g"]
        assert arguments == ['{"a": "}\\"{", "b": [1, {"c": null}]}', "{}"]
        assert reader.has_called
