"""What every request's schema begins with: strict types, and the fields that have no effect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator


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
