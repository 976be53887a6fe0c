"""Checks Python values before they become C ones, so that nothing is rounded, wrapped or cut silently."""

from __future__ import annotations

import operator
import os
from typing import Any, TypeVar

from oga.errors import ArgumentTypeError, InvalidArgumentError

__all__ = ["boolean", "c_text", "int32", "integer", "kind", "number", "path_bytes", "uint64"]

T = TypeVar("T")

UINT64_MAX = 2**64 - 1


def kind(value: object, wanted: type[T], name: str) -> T:
    """Returns ``value`` when it is a ``wanted``."""
    if not isinstance(value, wanted):
        raise ArgumentTypeError(f"{name} must be an oga.{wanted.__name__}, not {type(value).__name__}.", field=name)
    return value


def integer(value: Any, name: str, low: int, high: int) -> int:
    """Returns ``value`` as an int in [low, high]; anything with ``__index__`` but a bool is an integer."""
    if isinstance(value, bool):
        raise ArgumentTypeError(f"{name} must be an integer, not a bool.", field=name)
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentTypeError(
            f"{name} must be an integer, not {type(value).__name__} ({value!r:.80}).", field=name
        ) from None
    if not low <= number <= high:
        raise ArgumentTypeError(f"{name} is {number}; it must be in [{low}, {high}].", field=name)
    return number


def uint64(value: Any, name: str) -> int:
    """Returns ``value`` as an int that fits 64 bits without a sign."""
    return integer(value, name, 0, UINT64_MAX)


def int32(value: Any, name: str) -> int:
    """Returns ``value`` as an int that fits 32 bits with a sign."""
    return integer(value, name, -(2**31), 2**31 - 1)


def number(value: Any, name: str) -> float:
    """Returns ``value`` as a float; it may be any real number type, but not text or a bool."""
    if isinstance(value, bool | str | bytes) or not (hasattr(value, "__float__") or hasattr(value, "__index__")):
        raise ArgumentTypeError(f"{name} must be a number, not {type(value).__name__} ({value!r:.80}).", field=name)
    return float(value)


def boolean(value: Any, name: str) -> bool:
    """Returns ``value`` when it is a bool, NumPy's included."""
    if isinstance(value, bool) or type(value).__name__ in ("bool_", "bool"):
        return bool(value)
    raise ArgumentTypeError(f"{name} must be True or False, not {type(value).__name__} ({value!r:.80}).", field=name)


def path_bytes(path: str | bytes | os.PathLike[str] | os.PathLike[bytes], name: str) -> bytes:
    """Returns a path as the operating system's bytes."""
    try:
        encoded = os.fsencode(path)
    except TypeError:
        raise ArgumentTypeError(
            f"{name} must be a str, bytes or os.PathLike, not {type(path).__name__}.", field=name
        ) from None
    except UnicodeEncodeError as error:
        raise InvalidArgumentError(
            f"{name} {path!r} cannot be written as a path of this system ({error}).", field=name
        ) from None
    if b"\0" in encoded:
        raise InvalidArgumentError(f"{name} {path!r} contains a NUL character.", field=name)
    return encoded


def c_text(value: Any, name: str) -> bytes:
    """Returns a str (or bytes already in UTF-8) for a NUL-terminated C string."""
    if isinstance(value, str):
        try:
            encoded = value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InvalidArgumentError(f"{name} is not valid Unicode text ({error}).", field=name) from None
    elif isinstance(value, bytes):
        encoded = value
    else:
        raise ArgumentTypeError(f"{name} must be a str, not {type(value).__name__}.", field=name)
    if b"\0" in encoded:
        raise InvalidArgumentError(f"{name} contains a NUL character at byte {encoded.index(0)}.", field=name)
    return encoded
