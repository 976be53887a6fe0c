"""The responses API: stored answers that can be continued, each from where it stands."""

from __future__ import annotations

from typing import Any

import openai
import pytest

LIMIT: dict[str, Any] = {"model": "random", "max_output_tokens": 12}


def test_streamed_events_add_up_to_the_response(client: openai.OpenAI) -> None:
    whole = client.responses.create(input="the end", **LIMIT)
    assert whole.status == "incomplete"
    assert whole.incomplete_details is not None
    assert whole.incomplete_details.reason == "max_output_tokens"
    events = list(client.responses.create(input="the end", stream=True, **LIMIT))
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert [event.type for event in events[:4]] == [
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
    ]
    assert [event.type for event in events[-4:]] == [
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.incomplete",
    ]
    text = "".join(event.delta for event in events if event.type == "response.output_text.delta")
    last: Any = events[-1]
    assert text == whole.output_text == last.response.output_text
    assert last.response.usage.output_tokens == whole.usage.output_tokens if whole.usage else False


def test_a_response_is_continued_from_where_it_stands(client: openai.OpenAI) -> None:
    first = client.responses.create(input="the end", **LIMIT)
    second = client.responses.create(input="again", previous_response_id=first.id, **LIMIT)
    messages: list[Any] = [
        {"role": "user", "content": "the end"},
        {"role": "assistant", "content": first.output_text},
        {"role": "user", "content": "again"},
    ]
    whole = client.chat.completions.create(model="random", messages=messages, max_tokens=12)
    assert second.output_text == whole.choices[0].message.content
    # Both continue the first one; neither knows of the other.
    other = client.responses.create(input="otherwise", previous_response_id=first.id, **LIMIT)
    again = client.responses.create(input="again", previous_response_id=first.id, **LIMIT)
    assert again.output_text == second.output_text
    assert other.output_text != second.output_text
    third = client.responses.create(input="more", previous_response_id=second.id, stream=True, **LIMIT)
    assert list(third)[-1].type == "response.incomplete"


def test_instructions_are_for_one_response(client: openai.OpenAI) -> None:
    first = client.responses.create(input="the end", instructions="be brief", **LIMIT)
    messages: list[Any] = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "the end"}]
    chat = client.chat.completions.create(model="random", messages=messages, max_tokens=12)
    assert first.output_text == chat.choices[0].message.content
    second = client.responses.create(input="again", previous_response_id=first.id, **LIMIT)
    messages = [messages[1], {"role": "assistant", "content": first.output_text}, {"role": "user", "content": "again"}]
    chat = client.chat.completions.create(model="random", messages=messages, max_tokens=12)
    assert second.output_text == chat.choices[0].message.content


def test_a_stored_response_can_be_read_and_forgotten(client: openai.OpenAI) -> None:
    made = client.responses.create(input="1", model="scripted", metadata={"a": "b"})
    assert made.status == "completed"
    read = client.responses.retrieve(made.id)
    assert read.output_text == made.output_text == "UNO DUE TRE"
    assert read.metadata == {"a": "b"}
    client.responses.delete(made.id)
    for call in (client.responses.retrieve, client.responses.delete):
        with pytest.raises(openai.NotFoundError):
            call(made.id)


def test_a_response_that_is_not_stored_leaves_nothing(client: openai.OpenAI) -> None:
    made = client.responses.create(input="1", model="scripted", store=False)
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made.id)
    first = client.responses.create(input="1", model="scripted")
    for _ in range(2):
        client.responses.create(input="2", previous_response_id=first.id, model="scripted", store=False)
    again = client.responses.create(input="1", previous_response_id=first.id, model="scripted")
    assert again.output_text == "UNO DUE TRE"


def test_the_oldest_responses_make_room(client: openai.OpenAI) -> None:
    made = [client.responses.create(input="2", model="scripted").id for _ in range(25)]
    with pytest.raises(openai.NotFoundError):
        client.responses.retrieve(made[0])
    assert client.responses.retrieve(made[-1]).output_text == " Alice!"


@pytest.mark.parametrize(
    "fields",
    [
        {"input": ""},
        {"input": []},
        {"input": "x", "previous_response_id": "nobody"},
        {"input": "x", "background": True},
        {"input": "x", "conversation": "c"},
        {"input": "x", "tools": [{"type": "web_search"}]},
        {"input": "x", "max_output_tokens": 0},
        {"input": [{"type": "function_call_output", "call_id": "nobody", "output": "x"}]},
        {"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]},
        {"input": "x", "reasoning": {"effort": "high"}},
    ],
)
def test_what_is_not_right_is_refused(client: openai.OpenAI, fields: dict[str, Any]) -> None:
    with pytest.raises((openai.BadRequestError, openai.NotFoundError)):
        client.post("/responses", body={"model": "random"} | fields, cast_to=object)
