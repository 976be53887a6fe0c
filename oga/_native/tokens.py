"""Token ids from any integer sequence to the ``int32_t`` array that the C API reads.

Nothing is wrapped, rounded or truncated: a value that is not an integer of 32 bits raises and names its index. Memory
that already is a contiguous int32 array is passed on without a copy.
"""

from __future__ import annotations

import operator
from array import array
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any, NamedTuple, NoReturn, Protocol, SupportsIndex, TypeAlias

from oga._native.loader import ffi
from oga.errors import ArgumentTypeError, InvalidArgumentError

__all__ = ["TokenArray", "Tokens", "as_int32"]


class SupportsArray(Protocol):
    """A NumPy array, or a tensor that can become one."""

    def __array__(self) -> Any: ...


Tokens: TypeAlias = Iterable[SupportsIndex] | SupportsArray
"""Token ids: a list, tuple, range, ``array.array``, memoryview, tensor or NumPy array of one dimension."""

INT32_MIN = -(2**31)
INT32_MAX = 2**31 - 1
INT32_FORMATS = {"i", "l", "@i", "@l", "=i", "=l", "<i", "<l"}
INTEGER_FORMATS = set("bBhHiIlLqQnN")


class TokenArray(NamedTuple):
    """Valid as long as ``owner`` is."""

    pointer: Any
    length: int
    owner: object


def as_int32(tokens: Any, name: str = "tokens") -> TokenArray:
    """Returns ``tokens`` as contiguous int32 memory.

    Raises :class:`oga.ArgumentTypeError` (a ``TypeError`` and a ``ValueError``) for text, None, scalars, mappings, sets
    and non-integers, and :class:`oga.InvalidArgumentError` (a ``ValueError``) for arrays that are not one-dimensional
    and for integers that do not fit.
    """
    if tokens is None or isinstance(tokens, str | bytes | bytearray | Mapping | Set):
        raise ArgumentTypeError(
            f"{name} must be a sequence of integer token ids, not {type(tokens).__name__}; "
            "text is turned into ids by oga.Tokenizer.",
            field=name,
        )
    if isinstance(tokens, list | tuple | range | array):
        return _from_values(tokens, name)
    if hasattr(tokens, "__array__"):
        return _from_numpy(tokens, name)
    try:
        view = memoryview(tokens)
    except TypeError:
        return _from_values(_listed(tokens, name), name)
    return _from_buffer(view, name)


def _listed(tokens: Any, name: str) -> list[Any]:
    try:
        return list(tokens)
    except TypeError:
        raise ArgumentTypeError(
            f"{name} must be a sequence of integer token ids, not {type(tokens).__name__} ({tokens!r:.80}).",
            field=name,
        ) from None


def _from_values(values: Sequence[Any], name: str) -> TokenArray:
    if isinstance(values, array):
        return _from_buffer(memoryview(values), name)
    try:
        packed = array("i", values)
    except (TypeError, OverflowError):
        _raise_for_values(values, name)
    if not isinstance(values, range) and any(isinstance(value, bool) for value in values):
        _raise_for_values(values, name)
    return _packed(packed)


def _packed(packed: array[int]) -> TokenArray:
    return TokenArray(ffi.from_buffer("int32_t[]", packed), len(packed), packed)


def _from_buffer(view: memoryview, name: str) -> TokenArray:
    _check_dimensions(view.ndim, view.shape, name)
    if len(view) == 0:
        return _packed(array("i"))
    if view.format in INT32_FORMATS and view.itemsize == 4 and view.c_contiguous:
        return TokenArray(ffi.from_buffer("int32_t[]", view), len(view), view)
    if view.format.lstrip("@") not in INTEGER_FORMATS:
        _raise_for_type(f"memory of format {view.format!r}", name)
    return _from_values(view.tolist(), name)


def _from_numpy(tokens: Any, name: str) -> TokenArray:
    import numpy as np

    try:
        values = np.asarray(tokens)
    except (TypeError, ValueError, RuntimeError) as error:
        raise ArgumentTypeError(f"{name} cannot be read as an array: {error}", field=name) from error
    _check_dimensions(values.ndim, values.shape, name)
    if values.size == 0:
        return _packed(array("i"))
    if values.dtype.kind == "O":
        return _from_values(values.tolist(), name)
    if values.dtype.kind not in "iu":
        _raise_for_type(f"{values.dtype} (first value {values[0]!s})", name)
    if values.dtype.itemsize > 4 or values.dtype == np.uint32:
        outside = np.flatnonzero((values < INT32_MIN) | (values > INT32_MAX))
        if outside.size:
            _raise_for_range(int(outside[0]), int(values[outside[0]]), name)
    packed = np.ascontiguousarray(values, dtype=np.int32)
    return TokenArray(ffi.from_buffer("int32_t[]", packed), len(packed), packed)


def _check_dimensions(ndim: int, shape: Any, name: str) -> None:
    if ndim != 1:
        found = "a scalar" if ndim == 0 else f"of shape {tuple(shape)}"
        raise InvalidArgumentError(f"{name} must have one dimension; the array given is {found}.", field=name)


def _raise_for_values(values: Sequence[Any], name: str) -> NoReturn:
    """Finds the first value that is no int32 and raises for it."""
    for index, value in enumerate(values):
        if isinstance(value, bool):
            raise ArgumentTypeError(f"{name}[{index}] is {value!r}, a bool; token ids are integers.", field=name)
        try:
            number = operator.index(value)
        except TypeError:
            raise ArgumentTypeError(
                f"{name}[{index}] is {value!r:.80} of type {type(value).__name__}; token ids are integers.",
                field=name,
            ) from None
        if not INT32_MIN <= number <= INT32_MAX:
            _raise_for_range(index, number, name)
    raise ArgumentTypeError(f"{name} could not be read as integers.", field=name)


def _raise_for_range(index: int, value: int, name: str) -> NoReturn:
    raise InvalidArgumentError(f"{name}[{index}] is {value}, which does not fit the 32 bits of a token id.", field=name)


def _raise_for_type(found: str, name: str) -> NoReturn:
    raise ArgumentTypeError(f"{name} must hold integers, not {found}.", field=name)
