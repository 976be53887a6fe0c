"""What the endpoints that generate share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

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


class Strict(BaseModel):
    """A part of a request."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        hide_input_in_errors=True,
        json_schema_extra={"additionalProperties": {"type": "null"}},
    )

    @model_validator(mode="before")
    @classmethod
    def _without_unknown_nulls(cls, given: Any) -> Any:
        """A field that is not known here but null asks for nothing: clients write all fields that they know."""
        if not isinstance(given, Mapping):
            return given
        known = {field.alias or name for name, field in cls.model_fields.items()}
        return {name: value for name, value in given.items() if value is not None or name in known}


class Ignored(Strict):
    """Fields of OpenAI's API that say nothing to this server; they are accepted and have no effect."""

    user: str | None = Field(None, max_length=512)
    safety_identifier: str | None = Field(None, max_length=512)
    prompt_cache_key: str | None = Field(None, max_length=512)
    metadata: dict[str, str] | None = Field(None, max_length=64)
    service_tier: Literal["auto", "default"] | None = None


class Sampling(Ignored):
    """How the next token is chosen. The page "Sampling options" of the documentation says what each does."""

    model: str | None = Field(None, max_length=256, description="The first model of the server when it is not given.")
    temperature: float | None = Field(None, ge=0, le=100)
    top_p: float | None = Field(None, ge=0, le=1)
    seed: int | None = Field(None, ge=-(2**63), le=INT64_MAX)
    stop: StopString | Annotated[list[StopString], Field(max_length=MAX_STOP_STRINGS, fail_fast=True)] | None = None
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    logit_bias: dict[Annotated[str, Field(max_length=12)], Annotated[float, Field(ge=-100, le=100)]] | None = Field(
        None, max_length=MAX_LOGIT_BIASES, description="Biases by token id."
    )
    top_k: int | None = Field(None, ge=0, le=2**31 - 1)
    min_p: float | None = Field(None, ge=0, le=1)
    typical_p: float | None = Field(None, ge=0, le=1)
    top_n_sigma: float | None = Field(None, ge=0, le=1000)
    xtc_probability: float | None = Field(None, ge=0, le=1)
    xtc_threshold: float | None = Field(None, ge=0, le=1)
    repetition_penalty: float | None = Field(None, gt=0, le=100)
    no_repeat_ngram_size: int | None = Field(None, ge=0, le=2**16)
    dry_multiplier: float | None = Field(None, ge=0, le=100)
    dry_base: float | None = Field(None, ge=1, le=100)
    dry_allowed_length: int | None = Field(None, ge=1, le=2**16)
    dry_range: int | None = Field(None, ge=0, le=2**31 - 1)
    min_tokens: int | None = Field(None, ge=0, le=INT64_MAX)
    ignore_eos: bool | None = None
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
