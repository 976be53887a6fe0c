"""Rounding of float32 arrays to 16 bits, to the nearest, ties to even."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from oga.export.errors import ConversionError
from oga.export.quantization import F32Array


def to_bfloat16(array: F32Array) -> npt.NDArray[np.uint16]:
    """The bits of the nearest bfloat16 numbers, since NumPy has no such type. What is no number stays none."""
    bits = np.ascontiguousarray(array).view(np.uint32)
    rounded = bits >> 16
    rounded &= 1
    rounded += 0x7FFF
    rounded += bits
    rounded >>= 16
    halves = rounded.astype(np.uint16)
    nan = np.isnan(array)
    if nan.any():
        halves[nan] = 0x7FC0
    return halves


def to_float16(array: F32Array, name: str) -> npt.NDArray[np.float16]:
    """The nearest float16 numbers.

    Raises:
        ConversionError: naming ``name``, when a finite number is beyond what float16 can hold.
    """
    with np.errstate(over="ignore"):
        halves = array.astype(np.float16)
    if (np.isinf(halves) & np.isfinite(array)).any():
        largest = float(np.abs(array[np.isfinite(array)]).max())
        raise ConversionError(
            f"{name} has a weight of {largest:g}, and float16 ends at 65504; convert with precision bf16"
        )
    return halves
