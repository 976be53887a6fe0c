"""A list of token sequences."""

from __future__ import annotations

import operator
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, SupportsIndex

from oga._native import arguments
from oga._native.check import check, create
from oga._native.handle import Handle
from oga._native.loader import ffi, lib
from oga._native.tokens import Tokens, as_int32

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["Sequences"]


class Sequences(Handle):
    """Token sequences of any lengths, as the C API passes them. Not bound to an engine; one thread at a time."""

    _destroy = "OgaDestroySequences"

    def __init__(self) -> None:
        """Creates an empty list."""
        super().__init__(create("OgaSequences", lib.OgaCreateSequences))

    def append(self, tokens: Tokens) -> None:
        """Appends one sequence; ``tokens`` is any one-dimensional array or iterable of integers and is copied.

        Raises :class:`oga.InvalidArgumentError` naming the index of a value that is no 32-bit integer.
        """
        values = as_int32(tokens)
        with self._guard:
            check(lib.OgaAppendTokenSequence(values.pointer, values.length, self._pointer))

    def append_token(self, token: int, sequence_index: int) -> None:
        """Appends one token to a sequence; an index equal to ``len(self)`` starts a new one.

        Raises :class:`oga.InvalidArgumentError` for a larger index.
        """
        value = arguments.int32(token, "token")
        index = arguments.uint64(sequence_index, "sequence_index")
        with self._guard:
            check(lib.OgaAppendTokenToSequence(value, self._pointer, index))

    def __len__(self) -> int:
        with self._guard:
            return int(lib.OgaSequencesCount(self._pointer))

    def __getitem__(self, index: SupportsIndex) -> npt.NDArray[np.int32]:
        """A copy of one sequence, int32 of shape [tokens]. Raises IndexError."""
        import numpy as np

        with self._guard:
            position = item_position(index, len(self), "sequence")
            count = lib.OgaSequencesGetSequenceCount(self._pointer, position)
            if count == 0:
                return np.empty(0, dtype=np.int32)
            data = lib.OgaSequencesGetSequenceData(self._pointer, position)
            return np.frombuffer(ffi.buffer(data, count * 4), dtype=np.int32).copy()

    def __iter__(self) -> Iterator[npt.NDArray[np.int32]]:
        return (self[index] for index in range(len(self)))


def item_position(index: Any, count: int, noun: str) -> int:
    """Turns an index that may be negative into a position below ``count``, or raises as a list would."""
    try:
        position = operator.index(index)
    except TypeError:
        raise TypeError(f"{noun} indices must be integers, not {type(index).__name__}") from None
    if not -count <= position < count:
        raise IndexError(f"{noun} index {position} is out of range; there are {count}")
    return position % count
