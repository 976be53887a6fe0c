"""From the messages of a request to what a chat template takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import pydantic_core

from oga.server.errors import refused

if TYPE_CHECKING:
    from oga.aio import AsyncEngine
    from oga.chat import Message
    from oga.server.schemas import chat
    from oga.server.schemas.common import Tool

RESERVED = {"self", "messages", "tools", "add_generation_prompt", "begins_sequence", "documents"}


def messages_of(given: Sequence[chat.Message]) -> list[dict[str, Any]]:
    """Messages as templates know them: text joined, ``developer`` a system message, arguments as an object."""
    return [_message(message.model_dump(exclude_none=True)) for message in given]


def check_answerable(messages: Sequence[dict[str, Any]]) -> None:
    """Raises 400 when the last word is the assistant's."""
    if messages[-1]["role"] == "assistant":
        raise refused(
            "The last message is the assistant's, so there is nothing to answer. End with a user or tool message.",
            param=f"messages[{len(messages) - 1}]",
        )


def check_calls(messages: Sequence[dict[str, Any]]) -> None:
    """Raises 400 for a tool message that answers no call."""
    made: set[str] = set()
    for index, message in enumerate(messages):
        made |= {call["id"] for call in message.get("tool_calls", [])}
        if message["role"] == "tool" and message["tool_call_id"] not in made:
            raise refused(
                f"messages[{index}] answers the call {message['tool_call_id']!r}, which no message before it made.",
                param=f"messages[{index}].tool_call_id",
            )


def encoder(
    engine: AsyncEngine,
    tools: Sequence[Tool] | None,
    variables: dict[str, Any] | None,
    adds_generation_prompt: bool = True,
) -> Callable[[Sequence[Message]], list[int]]:
    """What turns a conversation into token ids; for the text thread."""
    if taken := RESERVED & (variables or {}).keys():
        name = sorted(taken)[0]
        raise refused(f"chat_template_kwargs cannot set {name!r}.", param=f"chat_template_kwargs.{name}")
    described = [tool.model_dump(exclude_none=True) for tool in tools] if tools else None

    def encode(messages: Sequence[Message]) -> list[int]:
        template = engine.model.chat_template
        tokens = template.encode(
            messages, tools=described, add_generation_prompt=adds_generation_prompt, **(variables or {})
        )
        return [int(token) for token in tokens]

    return encode


def _message(given: dict[str, Any]) -> dict[str, Any]:
    content = given.get("content")
    if isinstance(content, list):
        given["content"] = "".join(part["text"] for part in content)
    if given["role"] == "developer":
        given["role"] = "system"
    if given["role"] == "assistant":
        given.setdefault("content", "")
    for call in given.get("tool_calls", []):
        call["function"]["arguments"] = arguments_of(call["function"]["arguments"])
    return given


def arguments_of(text: str) -> Any:
    """The arguments of a call as an object when they are one; templates write them as JSON again."""
    try:
        value = pydantic_core.from_json(text, allow_inf_nan=False)
    except ValueError:
        return text
    return value if isinstance(value, dict) else text
