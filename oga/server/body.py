"""From the bytes of a request to a checked object: strict JSON, strict types, no unknown field."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, TypeAlias, TypeVar

import pydantic_core
from fastapi import Request
from pydantic import BaseModel, ValidationError

from oga.server.errors import ApiError, refused

T = TypeVar("T", bound=BaseModel)
Path: TypeAlias = tuple[int | str, ...]
SHOWN_ERRORS = 3
MOST_COMPLAINTS = 64
LONGEST_NAME = 120
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
        found = _errors(error)
    unknown = list(dict.fromkeys(_keys_of(each, value) for each in found if each["type"] == "extra_forbidden"))
    if not unknown:
        raise _refusal(found, value)
    if not is_lenient:
        name = _name(unknown[0])
        raise refused(f"Unknown or unsupported field: {name}.", param=name, code="unknown_parameter")
    for path in unknown:
        log.warning("ignored the unknown field %s", _name(path))
        _remove(value, path)
    return check(value, schema, is_lenient)


def _errors(error: ValidationError) -> list[Any]:
    return error.errors(include_url=False, include_context=False, include_input=False)


def _refusal(found: list[Any], value: Any) -> ApiError:
    complaints: dict[Path, list[str]] = {}
    for path, each in _meant([(_keys_of(each, value), each) for each in found[:MOST_COMPLAINTS]]):
        texts = complaints.setdefault(path, [])
        text = each["msg"].removeprefix("Input should be ") if texts else each["msg"]
        if text not in texts:
            texts.append(text)
    said = [f"{_name(path) or 'body'}: {' or '.join(texts)}" for path, texts in complaints.items()]
    more = f" (and {len(said) - SHOWN_ERRORS} more)" if len(said) > SHOWN_ERRORS else ""
    param = _name(next(iter(complaints)))
    return refused("; ".join(said[:SHOWN_ERRORS]) + more, param=param or None, code="invalid_value")


def _meant(found: list[tuple[Path, Any]]) -> list[tuple[Path, Any]]:
    """The complaints without those about forms of a field that were not meant: another form got further with it."""

    def is_mismatch(each: Any) -> bool:
        kind: str = each["type"]
        return kind.endswith("_type") or kind == "literal_error"

    def is_further(path: Path, other: Path, error: Any) -> bool:
        return other[: len(path)] == path and (len(other) > len(path) or not is_mismatch(error))

    return [
        (path, each)
        for path, each in found
        if not is_mismatch(each) or not any(is_further(path, other, error) for other, error in found)
    ]


def _keys_of(error: Any, value: Any) -> Path:
    """Where in ``value`` an error is. Pydantic's path also names the forms that a field may have."""
    return _keys(tuple(error["loc"]), value, error["type"] == "missing")


def _keys(path: Path, value: Any, is_missing: bool) -> Path:
    if not path:
        return ()
    part, rest = path[0], path[1:]
    if isinstance(part, int):
        item = value[part] if isinstance(value, list) and part < len(value) else None
        return (part, *_keys(rest, item, is_missing))
    if isinstance(value, Mapping):
        may_be_form = part in (value.get("type"), value.get("role"))  # a form may have the name of a field
        if may_be_form and not (is_missing and part in value):
            found = _keys(rest, value, is_missing)
            if found and found[-1] == path[-1]:
                return found
        if part in value:
            return (part, *_keys(rest, value[part], is_missing))
        if is_missing and not rest:
            return (part,)
    return _keys(rest, value, is_missing)


def _name(path: Path) -> str:
    """``messages[0].content`` for a path."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")[:LONGEST_NAME]


def _remove(value: Any, path: Path) -> None:
    for part in path[:-1]:
        value = value[part]
    if path:
        del value[path[-1]]
