"""From a response format to the grammar that a turn obeys."""

from __future__ import annotations

import json
from typing import Any

from oga.server.errors import refused
from oga.server.schemas import responses
from oga.server.schemas.common import (
    JsonObjectFormat,
    JsonSchemaFormat,
    LarkFormat,
    RegexFormat,
    ResponseFormat,
    TextFormat,
)

MAX_SCHEMA_CHARACTERS = 262_144


def settings_of(given: ResponseFormat | None) -> dict[str, Any]:
    """Keywords of a turn."""
    if given is None or isinstance(given, TextFormat):
        return {}
    if isinstance(given, JsonObjectFormat):
        return {"guidance": ("json_object", "")}
    if isinstance(given, JsonSchemaFormat):
        return of_schema(given.json_schema.schema_, "response_format.json_schema.schema")
    if isinstance(given, RegexFormat):
        return {"guidance": ("regex", given.regex)}
    assert isinstance(given, LarkFormat)
    return {"guidance": ("lark", given.lark)}


def of_text(given: responses.TextOptions | None) -> dict[str, Any]:
    """The same for the responses API."""
    chosen = None if given is None else given.format
    if chosen is None or isinstance(chosen, responses.TextFormat):
        return {}
    if isinstance(chosen, responses.JsonObjectFormat):
        return {"guidance": ("json_object", "")}
    return of_schema(chosen.schema_, "text.format.schema")


def of_schema(schema: dict[str, Any] | None, param: str) -> dict[str, Any]:
    """The grammar of a JSON schema; without one, any JSON object. Raises 400 for one that is enormous."""
    if schema is None:
        return {"guidance": ("json_object", "")}
    text = json.dumps(schema)
    if len(text) > MAX_SCHEMA_CHARACTERS:
        raise refused(f"The schema has {len(text)} characters; at most {MAX_SCHEMA_CHARACTERS} are taken.", param=param)
    return {"guidance": ("json_schema", text)}
