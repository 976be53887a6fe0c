"""``POST /v1/responses``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from oga.server.schemas.common import INT64_MAX, MAX_TOOLS, Identity, Name
from oga.server.schemas.strict import Ignored, Strict


class InputText(Strict):
    """A piece of what is said."""

    type: Literal["input_text", "output_text", "text"]
    text: str
    annotations: list[Any] | None = Field(None, max_length=0)
    logprobs: list[Any] | None = Field(None, max_length=0)


class InputMessage(Strict):
    """What somebody said."""

    type: Literal["message"] | None = None
    role: Literal["user", "assistant", "system", "developer"]
    content: str | Annotated[list[InputText], Field(min_length=1, max_length=1024, fail_fast=True)]
    id: Identity | None = None
    status: Literal["completed", "in_progress", "incomplete"] | None = None


class FunctionCall(Strict):
    """A call that the model made."""

    type: Literal["function_call"]
    call_id: Identity
    name: Name
    arguments: str
    id: Identity | None = None
    status: Literal["completed", "in_progress", "incomplete"] | None = None


class FunctionCallOutput(Strict):
    """What a call came to."""

    type: Literal["function_call_output"]
    call_id: Identity
    output: str
    id: Identity | None = None
    status: Literal["completed", "in_progress", "incomplete"] | None = None


def _kind_of(item: Any) -> Any:
    """What an input item says it is; a message may leave it out."""
    kind = item.get("type") if isinstance(item, Mapping) else getattr(item, "type", None)
    return "message" if kind is None else kind


InputItem = Annotated[
    Annotated[FunctionCall, Tag("function_call")]
    | Annotated[FunctionCallOutput, Tag("function_call_output")]
    | Annotated[InputMessage, Tag("message")],
    Discriminator(_kind_of),
]


class ResponseTool(Strict):
    """A function that the model may call."""

    type: Literal["function"]
    name: Name
    description: str | None = Field(None, max_length=16384)
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class NamedResponseTool(Strict):
    """The function that has to be called."""

    type: Literal["function"]
    name: Name


class TextFormat(Strict):
    """Free text."""

    type: Literal["text"]


class JsonObjectFormat(Strict):
    """Any JSON object."""

    type: Literal["json_object"]


class JsonSchemaFormat(Strict):
    """JSON that obeys a schema."""

    type: Literal["json_schema"]
    name: Name
    schema_: dict[str, Any] = Field(alias="schema")
    description: str | None = Field(None, max_length=4096)
    strict: bool | None = None


class TextOptions(Strict):
    """The form of the answer's text."""

    format: Annotated[TextFormat | JsonObjectFormat | JsonSchemaFormat, Field(discriminator="type")] | None = None
    verbosity: Literal["medium"] | None = None


class ResponseRequest(Ignored):
    """Something to answer; ``previous_response_id`` continues a stored response."""

    model: str | None = Field(None, max_length=256)
    input: (
        Annotated[str, Field(min_length=1)]
        | Annotated[list[InputItem], Field(min_length=1, max_length=4096, fail_fast=True)]
    )
    instructions: str | None = None
    previous_response_id: Identity | None = None
    max_output_tokens: int | None = Field(None, ge=1, le=INT64_MAX)
    temperature: float | None = Field(None, ge=0, le=2)  # bounds of OpenAI's API, within those of the sampling table
    top_p: float | None = Field(None, ge=0, le=1)
    stream: bool | None = None
    store: bool | None = None
    text: TextOptions | None = None
    tools: list[ResponseTool] | None = Field(None, max_length=MAX_TOOLS)
    tool_choice: Literal["none", "auto", "required"] | NamedResponseTool | None = None
    parallel_tool_calls: bool | None = None
    truncation: Literal["disabled"] | None = None
    background: Literal[False] | None = None
    include: list[Any] | None = Field(None, max_length=0)
