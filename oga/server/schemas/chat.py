"""``POST /v1/chat/completions``."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from oga.server.schemas.common import (
    INT64_MAX,
    MAX_LOGPROBS,
    Identity,
    Name,
    ResponseFormat,
    Sampling,
    StreamOptions,
    ToolChoice,
    Tools,
)
from oga.server.schemas.strict import Strict

MAX_MESSAGES = 4096


class TextPart(Strict):
    """A piece of a message; text is the only kind."""

    type: Literal["text"]
    text: str


Content = str | Annotated[list[TextPart], Field(min_length=1, max_length=1024, fail_fast=True)]


class SystemMessage(Strict):
    """What the model is told to be. ``developer`` is another word for it."""

    role: Literal["system", "developer"]
    content: Content
    name: str | None = Field(None, max_length=64)


class UserMessage(Strict):
    """What a person says."""

    role: Literal["user"]
    content: Content
    name: str | None = Field(None, max_length=64)


class CalledFunction(Strict):
    """A function and the JSON of its arguments."""

    name: Name
    arguments: str


class Call(Strict):
    """A call that the model made."""

    id: Identity
    type: Literal["function"]
    function: CalledFunction


class AssistantMessage(Strict):
    """What the model said."""

    role: Literal["assistant"]
    content: Content | None = None
    name: str | None = Field(None, max_length=64)
    refusal: None = None
    tool_calls: list[Call] | None = Field(None, min_length=1, max_length=128)


class ToolMessage(Strict):
    """What a call came to."""

    role: Literal["tool"]
    content: Content
    tool_call_id: Identity
    name: str | None = Field(None, max_length=64)


Message = Annotated[SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]


class ChatRequest(Sampling):
    """A conversation, and how to answer it."""

    messages: Annotated[list[Message], Field(min_length=1, max_length=MAX_MESSAGES, fail_fast=True)]
    n: int | None = Field(None, ge=1, le=128)
    max_tokens: int | None = Field(None, ge=1, le=INT64_MAX)
    max_completion_tokens: int | None = Field(None, ge=1, le=INT64_MAX)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, le=MAX_LOGPROBS)
    response_format: ResponseFormat | None = None
    tools: Tools | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    modalities: list[Literal["text"]] | None = Field(None, min_length=1, max_length=1)
    store: Literal[False] | None = None
    chat_template_kwargs: dict[str, Any] | None = Field(
        None, max_length=32, description="Variables of the model's chat template."
    )
    session_id: Identity | None = Field(
        None, description="Continue this session; `messages` are what is new. See /v1/sessions."
    )
