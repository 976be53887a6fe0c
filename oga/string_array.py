"""A list of strings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import SupportsIndex

from oga._native.arguments import c_text
from oga._native.check import check, create, text
from oga._native.handle import Handle
from oga._native.loader import ffi, lib
from oga.errors import ArgumentTypeError, about
from oga.sequences import item_position

__all__ = ["StringArray"]


class StringArray(Handle):
    """Strings as the C API passes them. Not bound to an engine; one thread at a time."""

    _destroy = "OgaDestroyStringArray"

    def __init__(self, strings: Iterable[str | bytes] = ()) -> None:
        """Copies ``strings``; bytes must be UTF-8.

        Raises :class:`oga.ArgumentTypeError` for a bare string or an entry that is not text, and
        :class:`oga.InvalidArgumentError` for an entry with a NUL character.
        """
        if isinstance(strings, str | bytes):
            raise ArgumentTypeError("strings must be an iterable of strings, not one string.", field="strings")
        with about("strings"):
            cells = [ffi.new("char[]", c_text(string, f"strings[{i}]")) for i, string in enumerate(strings)]
        if cells:
            pointers = ffi.new("const char *[]", cells)
            pointer = create("OgaStringArray", lib.OgaCreateStringArrayFromStrings, pointers, len(cells))
        else:
            pointer = create("OgaStringArray", lib.OgaCreateStringArray)
        super().__init__(pointer)

    def append(self, string: str | bytes) -> None:
        """Appends a copy of ``string``."""
        self._call(lib.OgaStringArrayAddString, c_text(string, "string"))

    def __len__(self) -> int:
        out = ffi.new("size_t *")
        self._call(lib.OgaStringArrayGetCount, out)
        return int(out[0])

    def __getitem__(self, index: SupportsIndex) -> str:
        """One string. Raises IndexError."""
        out = ffi.new("const char **")
        with self._guard:
            position = item_position(index, len(self), "string")
            check(lib.OgaStringArrayGetString(self._pointer, position, out))
            return text(out[0])

    def __iter__(self) -> Iterator[str]:
        return (self[index] for index in range(len(self)))
