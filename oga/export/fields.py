"""Typed reading of a config's fields, with errors that name the file, the field and what was found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oga.export.errors import ConversionError

_REQUIRED = object()


class Fields:
    """A mapping of a known file. An absent field and a null one are the same."""

    def __init__(self, values: Mapping[str, Any], where: str) -> None:
        """Wraps ``values``, found in ``where`` (a path, or a path and a key)."""
        self.values = values
        self.where = where

    def __contains__(self, name: str) -> bool:
        """Whether the field is there and not null."""
        return self.values.get(name) is not None

    def mentions(self, name: str) -> bool:
        """Whether the field is written at all, if only as null."""
        return name in self.values

    def integer(self, name: str, default: Any = _REQUIRED) -> Any:
        """The field as an int, or ``default`` when it is absent."""
        value = self._get(name, default)
        if value is default or (isinstance(value, int) and not isinstance(value, bool)):
            return value
        raise self.wrong(name, value, "an integer")

    def number(self, name: str, default: Any = _REQUIRED) -> Any:
        """The field as a float, or ``default`` when it is absent."""
        value = self._get(name, default)
        if value is default:
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        raise self.wrong(name, value, "a number")

    def boolean(self, name: str, default: Any = _REQUIRED) -> Any:
        """The field as a bool, or ``default`` when it is absent."""
        value = self._get(name, default)
        if value is default or isinstance(value, bool):
            return value
        raise self.wrong(name, value, "true or false")

    def text(self, name: str, default: Any = _REQUIRED) -> Any:
        """The field as a str, or ``default`` when it is absent."""
        value = self._get(name, default)
        if value is default or isinstance(value, str):
            return value
        raise self.wrong(name, value, "a string")

    def integers(self, name: str) -> list[int]:
        """The field as a list of ints: a single one counts as a list of one, an absent one as none."""
        value = self._get(name, [])
        values = value if isinstance(value, list) else [value]
        if all(isinstance(item, int) and not isinstance(item, bool) for item in values):
            return values
        raise self.wrong(name, value, "an integer or a list of integers")

    def strings(self, name: str) -> list[str]:
        """The field as a list of strings."""
        value = self._get(name, _REQUIRED)
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return value
        raise ConversionError(f"{self.where}: {name} is no list of strings; the source is damaged, fetch it again")

    def section(self, name: str) -> Fields:
        """The field as a mapping of its own: empty when it is absent."""
        value = self._get(name, {})
        if isinstance(value, Mapping):
            return Fields(value, f"{self.where}: {name}")
        raise self.wrong(name, value, "an object")

    def below(self, prefix: str) -> Fields:
        """The fields whose names start with ``prefix``, which their short names lack."""
        short = {name.removeprefix(prefix): value for name, value in self.values.items() if name.startswith(prefix)}
        return Fields(short, f"{self.where}: {prefix.rstrip('.')}")

    def wrong(self, name: str, found: Any, wanted: str) -> ConversionError:
        """An error about the value of one field."""
        return ConversionError(f"{self.where}: {name} is {json.dumps(found, default=str)}; it must be {wanted}")

    def _get(self, name: str, default: Any) -> Any:
        value = self.values.get(name)
        if value is not None:
            return value
        if default is _REQUIRED:
            raise ConversionError(f"{self.where} has no {name}; the source is incomplete, fetch it again")
        return default


def read_json(path: Path) -> Any:
    """The content of a JSON file.

    Raises:
        ConversionError: when it cannot be read or is no JSON.
    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConversionError(f"{path} could not be read ({error})") from error
    except json.JSONDecodeError as error:
        raise ConversionError(f"{path} is no JSON ({error}); fetch it again") from error


def read_fields(path: Path) -> Fields:
    """The fields of a JSON file that holds an object."""
    values = read_json(path)
    if not isinstance(values, dict):
        raise ConversionError(f"{path} holds {type(values).__name__}; it must hold a JSON object")
    return Fields(values, str(path))
