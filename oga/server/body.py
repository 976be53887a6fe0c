"""From the bytes of a request to a checked object: strict JSON, strict types, no unknown field."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, TypeVar

import pydantic_core
from fastapi import Request
from pydantic import BaseModel, ValidationError

from oga.server.errors import ApiError, refused

T = TypeVar("T", bound=BaseModel)
SHOWN_ERRORS = 3
MOST_FIELDS = 2048
MOST_OBJECTS = 16384
log = logging.getLogger("oga.server")


async def read(request: Request, schema: type[T]) -> T:
    """The body of a request as ``schema``.

    Raises :class:`ApiError` 400 naming the field. A lenient server drops unknown fields and says so in its log.
    """
    value = json_of(await request.body())
    check_size(value)
    return check(value, schema, request.app.state.settings.is_lenient)


def json_of(body: bytes) -> Any:
    """JSON as the standard has it: no NaN, no half of a surrogate pair, not too deep."""
    try:
        value = pydantic_core.from_json(body, allow_inf_nan=False)
    except (ValueError, RecursionError) as error:
        raise refused(f"The body is not valid JSON: {error}", code="invalid_json") from None
    if not isinstance(value, Mapping):
        raise refused("The body must be a JSON object.", code="invalid_json")
    return value


def check_size(value: Any) -> None:
    """Raises 400 for more objects, or larger ones, than any request needs: complaints about each would take long."""
    objects = 0
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, Mapping):
            objects += 1
            if len(each) > MOST_FIELDS or objects > MOST_OBJECTS:
                raise refused(
                    f"The body has an object with more than {MOST_FIELDS} fields, or more than {MOST_OBJECTS} objects.",
                    code="body_too_complex",
                )
            waiting += each.values()
        elif isinstance(each, list) and each and isinstance(each[0], Mapping | list):
            waiting += each[: MOST_OBJECTS + 1]


def check(value: Any, schema: type[T], is_lenient: bool) -> T:
    """``value`` as ``schema``."""
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        unknown = [each["loc"] for each in _errors(error) if each["type"] == "extra_forbidden"]
        if not is_lenient or not unknown:
            raise _refusal(error) from None
    for path in unknown:
        log.warning("ignored the unknown field %s", _name(path))
        _remove(value, path)
    return check(value, schema, is_lenient)


def _errors(error: ValidationError) -> list[Any]:
    return error.errors(include_url=False, include_context=False, include_input=False)


def _refusal(error: ValidationError) -> ApiError:
    found = _errors(error)
    # Of a field with several forms, the complaint that went deepest into the value is about the form that was meant.
    first = max(found[: 8 * SHOWN_ERRORS], key=lambda each: (each["type"] == "extra_forbidden", -found.index(each)))
    param = _name(first["loc"])
    if first["type"] == "extra_forbidden":
        return refused(f"Unknown or unsupported field: {param}.", param=param, code="unknown_parameter")
    texts = [f"{_name(each['loc']) or 'body'}: {each['msg']}" for each in found[:SHOWN_ERRORS]]
    more = f" (and {len(found) - SHOWN_ERRORS} more)" if len(found) > SHOWN_ERRORS else ""
    return refused("; ".join(texts) + more, param=param or None, code="invalid_value")


def _name(path: tuple[int | str, ...]) -> str:
    """``messages[0].content`` for a path; the names that pydantic gives to the forms of a field are left out."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.replace("_", "").isalnum() and not part[:1].isupper() and part not in {"str", "int", "float"}:
            text += f".{part}" if text else part
    return text[:120]


def _remove(value: Any, path: tuple[Any, ...]) -> None:
    for part in path[:-1]:
        if (isinstance(value, Mapping) and part in value) or (isinstance(value, list) and isinstance(part, int)):
            value = value[part]
    if isinstance(value, dict):
        value.pop(path[-1], None)
