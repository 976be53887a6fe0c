"""From C results and out-parameters to Python values and exceptions."""

from __future__ import annotations

from typing import Any

from oga._native.loader import ffi, lib
from oga.errors import OF_FILES, Classes, error_of

__all__ = ["check", "create", "take_string"]


def check(result: Any, classes: Classes | None = None) -> None:
    """Raises the exception for a failed ``OgaResult*`` and frees it; does nothing for NULL.

    ``classes`` are the exceptions that only this call raises, such as :data:`oga.errors.OF_FILES`.
    """
    if not result:
        return
    try:
        code = lib.OgaResultGetCode(result)
        message = text(lib.OgaResultGetError(result))
        field = text(lib.OgaResultGetField(result)) or None
    finally:
        lib.OgaDestroyResult(result)
    raise error_of(code, field, message, classes)


def create(handle_type: str, function: Any, *arguments: Any, classes: Classes | None = None) -> Any:
    """Calls ``function(*arguments, out)`` and returns the handle that it wrote, owned by the caller."""
    out = ffi.new(f"{handle_type} **")
    check(function(*arguments, out), classes)
    return out[0]


def text(string: Any) -> str:
    """Decodes a borrowed C string. Bytes that are not UTF-8 (from a path, say) become backslash escapes."""
    return "" if string == ffi.NULL else str(ffi.string(string).decode("utf-8", "backslashreplace"))


def take_string(function: Any, *arguments: Any) -> str:
    """Calls ``function(*arguments, out)`` and returns the owned string that it wrote."""
    out = ffi.new("const char **")
    check(function(*arguments, out), OF_FILES)
    try:
        return text(out[0])
    finally:
        lib.OgaDestroyString(out[0])
