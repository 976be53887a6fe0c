"""The external data of an ONNX model, written tensor by tensor so that only one is ever held."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

_ALIGNMENT_BYTES = 4096  # a page: what the runtime maps instead of copying


class TensorFile:
    """An open data file beside a model. Use as a context manager."""

    def __init__(self, folder: Path, name: str) -> None:
        """Creates ``folder``/``name``."""
        self._folder = folder
        self._name = name
        self._file = (folder / name).open("wb")

    def __enter__(self) -> TensorFile:
        """Returns the file itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Closes the file."""
        self._file.close()

    def append(self, name: str, array: npt.NDArray[Any], dtype: ir.DataType | None = None) -> ir.Value:
        """Writes an array and returns the initializer that refers to it.

        Args:
            name: of the initializer.
            array: its values.
            dtype: what the array's bytes stand for, where NumPy has no such type.
        """
        self._file.write(b"\0" * (-self._file.tell() % _ALIGNMENT_BYTES))
        offset = self._file.tell()
        array = np.ascontiguousarray(array)
        self._file.write(array.data)
        return self._initializer(name, offset, array.nbytes, dtype or ir.DataType.from_numpy(array.dtype), array.shape)

    def reshaped(self, name: str, value: ir.Value, *shape: int) -> ir.Value:
        """Another initializer of another shape that refers to the same bytes as ``value``, which ``append`` returned.

        Two operators share one copy that way although they want different shapes: the runtime maps the bytes for both,
        where a Reshape of a constant would be folded into a second copy.
        """
        tensor = value.const_value
        if not isinstance(tensor, ir.ExternalTensor) or tensor.offset is None or tensor.length is None:
            raise TypeError(f"{value.name} is no initializer of this file")
        return self._initializer(name, tensor.offset, tensor.length, tensor.dtype, shape)

    def _initializer(self, name: str, offset: int, nbytes: int, dtype: ir.DataType, shape: tuple[int, ...]) -> ir.Value:
        tensor = ir.ExternalTensor(
            self._name, offset, nbytes, dtype, shape=ir.Shape(shape), name=name, base_dir=self._folder
        )
        return ir.Value(name=name, shape=tensor.shape, type=ir.TensorType(tensor.dtype), const_value=tensor)
