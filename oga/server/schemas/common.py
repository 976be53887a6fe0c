"""What the endpoints that generate share."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from oga.server.schemas.sampler import SamplerFields
from oga.server.schemas.strict import Strict

INT64_MAX = 2**63 - 1
UINT64_MAX = 2**64 - 1
MAX_STOP_STRINGS = 16
MAX_STOP_CHARACTERS = 1024
MAX_LOGIT_BIASES = 1024
MAX_TOOLS = 128
MAX_LOGPROBS = 20

TokenId = Annotated[int, Field(ge=0, le=2**31 - 1)]
StopString = Annotated[str, Field(min_length=1, max_length=MAX_STOP_CHARACTERS)]
Name = Annotated[str, Field(min_length=1, max_length=64, pattern=r"^[a-zA-Z0-9_-]+$")]
Priority = Annotated[int, Field(ge=-(2**31), le=2**31 - 1)]
Identity = Annotated[str, Field(min_length=1, max_length=80)]


class Sampling(SamplerFields):
    """How the next token is chosen. The page "Sampling options" of the documentation says what each does."""

    model: str | None = Field(None, max_length=256, description="The first model of the server when it is not given.")
    seed: int | None = Field(None, ge=-(2**63), le=INT64_MAX)
    stop: StopString | Annotated[list[StopString], Field(max_length=MAX_STOP_STRINGS, fail_fast=True)] | None = None
    logit_bias: dict[Annotated[str, Field(max_length=12)], Annotated[float, Field(ge=-100, le=100)]] | None = Field(
        None, max_length=MAX_LOGIT_BIASES, description="Biases by token id."
    )
    min_tokens: int | None = Field(None, ge=0, le=INT64_MAX)
    stop_token_ids: (
        Annotated[list[Annotated[int, Field(ge=0, le=2**31 - 1)]], Field(max_length=64, fail_fast=True)] | None
    ) = None
    priority: Priority | None = Field(None, description="Higher goes first; nobody starves.")


class StreamOptions(Strict):
    """What a stream carries besides the text."""

    include_usage: bool | None = None
    include_obfuscation: bool | None = Field(None, description="Accepted; nothing is ever added to a chunk.")


class JsonSchema(Strict):
    """A schema that the answer obeys."""

    name: Name
    description: str | None = Field(None, max_length=4096)
    schema_: dict[str, Any] | None = Field(None, alias="schema")
    strict: bool | None = Field(None, description="The schema is always enforced.")


class TextFormat(Strict):
    """Free text."""

    type: Literal["text"]


class JsonObjectFormat(Strict):
    """Any JSON object."""

    type: Literal["json_object"]


class JsonSchemaFormat(Strict):
    """JSON that obeys a schema."""

    type: Literal["json_schema"]
    json_schema: JsonSchema


class RegexFormat(Strict):
    """Text that matches a regular expression (not part of OpenAI's API)."""

    type: Literal["regex"]
    regex: str = Field(min_length=1, max_length=65536)


class LarkFormat(Strict):
    """Text that a Lark grammar derives (not part of OpenAI's API)."""

    type: Literal["lark"]
    lark: str = Field(min_length=1, max_length=65536)


ResponseFormat = Annotated[
    TextFormat | JsonObjectFormat | JsonSchemaFormat | RegexFormat | LarkFormat, Field(discriminator="type")
]


class Function(Strict):
    """A function that the model may call."""

    name: Name
    description: str | None = Field(None, max_length=16384)
    parameters: dict[str, Any] | None = None
    strict: bool | None = Field(None, description="The parameters are always enforced.")


class Tool(Strict):
    """A tool; functions are the only kind."""

    type: Literal["function"]
    function: Function


class NamedFunction(Strict):
    """The name of a function."""

    name: Name


class NamedTool(Strict):
    """The function that has to be called."""

    type: Literal["function"]
    function: NamedFunction


ToolChoice = Literal["none", "auto", "required"] | NamedTool
Tools = Annotated[list[Tool], Field(max_length=MAX_TOOLS, fail_fast=True)]
