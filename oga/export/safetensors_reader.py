"""Reads tensors of a safetensors file as views of the mapped file.

Own reader of a small format, because bfloat16 has to be read without torch and a damaged file has to be refused by name
before anything is converted.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from oga.export.errors import ConversionError
from oga.export.mapping import release_pages

_LENGTH_BYTES = 8
_STORAGE: dict[str, np.dtype[Any]] = {
    "F32": np.dtype("<f4"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype("<u2"),  # NumPy has no such type: the upper half of a float32
}


@dataclass(frozen=True)
class TensorEntry:
    """Where a tensor lies in its file."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    nbytes: int


class SafetensorsReader:
    """The tensors of one file. Owns the mapping; arrays from ``read`` may outlive it."""

    def __init__(self, path: Path) -> None:
        """Maps ``path`` and checks its header.

        Raises:
            ConversionError: when the file cannot be read, is truncated, or has a broken header.
        """
        self.path = path
        try:
            self._bytes: npt.NDArray[np.uint8] = np.memmap(path, dtype=np.uint8, mode="r")
        except (OSError, ValueError) as error:
            raise ConversionError(f"{path} could not be read ({error})") from error
        self.entries = self._entries()

    def read(self, name: str) -> npt.NDArray[np.float32]:
        """A tensor as float32: a view of the file for float32, widened without loss otherwise.

        Raises:
            ConversionError: when its type cannot be widened.
        """
        entry = self.entries[name]
        storage = _STORAGE.get(entry.dtype)
        if storage is None:
            known = ", ".join(_STORAGE)
            raise ConversionError(
                f"{self.path}: tensor {name} has type {entry.dtype}; known: {known}; convert the original float folder"
            )
        values = self._raw(entry).view(storage).reshape(entry.shape)
        if entry.dtype == "BF16":
            wide = values.astype(np.uint32)
            wide <<= 16
            return wide.view(np.float32)
        return values.astype(np.float32, copy=False)

    def release(self, name: str) -> None:
        """Lets go of the memory in which a tensor was read."""
        release_pages(self._raw(self.entries[name]))

    def _raw(self, entry: TensorEntry) -> npt.NDArray[np.uint8]:
        return self._bytes[entry.begin : entry.begin + entry.nbytes]

    def _entries(self) -> dict[str, TensorEntry]:
        size = self._bytes.size
        header_bytes = int.from_bytes(self._bytes[:_LENGTH_BYTES].tobytes(), "little")
        data_begin = _LENGTH_BYTES + header_bytes
        if size < _LENGTH_BYTES or data_begin > size:
            raise ConversionError(
                f"{self.path} is truncated: its header should end at byte {data_begin}, the file at {size}; "
                "fetch it again"
            )
        try:
            header = json.loads(self._bytes[_LENGTH_BYTES:data_begin].tobytes())
            entries = {
                name: self._entry(name, value, data_begin) for name, value in header.items() if name != "__metadata__"
            }
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, ConversionError):
                raise
            raise ConversionError(f"{self.path} has a broken header ({error}); fetch it again") from error
        return entries

    def _entry(self, name: str, value: dict[str, Any], data_begin: int) -> TensorEntry:
        begin, end = (data_begin + int(offset) for offset in value["data_offsets"])
        entry = TensorEntry(value["dtype"], tuple(int(size) for size in value["shape"]), begin, end - begin)
        if end > self._bytes.size:
            raise ConversionError(
                f"{self.path} is truncated: tensor {name} should end at byte {end}, the file at {self._bytes.size}; "
                "fetch it again"
            )
        storage = _STORAGE.get(entry.dtype)
        wanted = math.prod(entry.shape) * storage.itemsize if storage is not None else entry.nbytes
        if begin < data_begin or min(entry.shape, default=0) < 0 or entry.nbytes != wanted:
            raise ConversionError(
                f"{self.path}: tensor {name} of type {entry.dtype} and shape {list(entry.shape)} takes {wanted} bytes, "
                f"but has {entry.nbytes}; fetch the file again"
            )
        return entry
