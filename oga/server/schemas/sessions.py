"""``/v1/sessions``, ``/tokenize`` and ``/detokenize``."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from oga.server.schemas.chat import Message, SystemMessage
from oga.server.schemas.common import INT64_MAX, Priority, Tools
from oga.server.schemas.strict import Strict


class SessionRequest(Strict):
    """A conversation to be kept."""

    model: str | None = Field(None, max_length=256)
    messages: list[SystemMessage] | None = Field(
        None, max_length=16, description="System messages that stand before the first turn."
    )
    priority: Priority | None = Field(None, description="Of all turns of the session. Higher goes first.")


class RewindRequest(Strict):
    """Where to go back to."""

    turn: int = Field(ge=1, le=INT64_MAX, description="This turn and all later ones are taken back.")


class TokenizeRequest(Strict):
    """Text, or messages, to be counted and encoded."""

    model: str | None = Field(None, max_length=256)
    prompt: str | None = None
    messages: Annotated[list[Message], Field(min_length=1, max_length=4096, fail_fast=True)] | None = None
    tools: Tools | None = None
    add_generation_prompt: bool | None = None
    add_special_tokens: bool | None = None
    chat_template_kwargs: dict[str, Any] | None = Field(None, max_length=32)


class DetokenizeRequest(Strict):
    """Tokens to be written as text."""

    model: str | None = Field(None, max_length=256)
    tokens: Annotated[list[Annotated[int, Field(ge=0, le=2**31 - 1)]], Field(max_length=2**20, fail_fast=True)]
    skip_special_tokens: bool | None = None
