"""Blocks of a weight matrix, as the runtime's MatMulNBits operator reads them.

A row of K weights is cut into blocks. A block has a scale and, when the matrix is not symmetric, a zero point:

    weight = scale * (code - zero_point)        code in 0..255 or 0..15; zero_point is 128 or 8 when symmetric

Codes of 4 bits lie two in a byte, the first in the lower half; so do their zero points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from oga.export.precision import DEFAULT_BLOCK_SIZE

F32Array = npt.NDArray[np.float32]
U8Array = npt.NDArray[np.uint8]

SYMMETRIC_ZERO_POINT = 128
_LARGEST_CODE = 127
_ROWS_AT_ONCE = 4096  # bounds the temporaries of a vocabulary-sized matrix


@dataclass(frozen=True)
class QuantizedMatrix:
    """A matrix [rows, columns] of weights in blocks along its rows.

    Attributes:
        codes: uint8 [rows, blocks, block_size * bits / 8]; what lies beyond ``columns`` equals the zero point.
        scales: float32 [rows, blocks].
        zero_points: uint8 [rows, blocks], or with 4 bits [rows, ceil(blocks / 2)]; float32 [rows, blocks] where the
            source has them between codes; None when all are 128, or 8.
        columns: weights of a row.
        bits: of a code, 4 or 8.
    """

    codes: U8Array
    scales: F32Array
    zero_points: U8Array | F32Array | None
    columns: int
    bits: int = 8

    @property
    def block_size(self) -> int:
        """Weights that share a scale."""
        return int(self.codes.shape[2]) * 8 // self.bits

    def has_form_of(self, other: QuantizedMatrix) -> bool:
        """Whether rows of both could stand in one matrix."""
        types = [None if each.zero_points is None else each.zero_points.dtype for each in (self, other)]
        sizes = [(each.columns, each.bits, each.block_size) for each in (self, other)]
        return types[0] == types[1] and sizes[0] == sizes[1]

    def dequantized(self) -> F32Array:
        """The weights that the blocks stand for, float32 [rows, columns]."""
        codes = self.codes if self.bits == 8 else unpack_nibbles(self.codes)
        values = (codes.astype(np.float32) - self.float_zero_points()) * self.scales[..., None]
        return values.reshape(len(values), -1)[:, : self.columns]

    def offsets(self) -> F32Array:
        """What separates the weights of each block from those that the symmetric zero point would mean.

        Returns:
            float32 [rows, blocks].
        """
        middle = np.float32(1 << self.bits - 1)
        result: F32Array = self.scales * (middle - self.float_zero_points()[..., 0])
        return result

    def float_zero_points(self) -> F32Array:
        """Zero points as float32 that broadcast over the codes."""
        if self.zero_points is None:
            return np.full((1, 1, 1), 1 << self.bits - 1, np.float32)
        zero = self.zero_points.astype(np.float32)
        if self.zero_points.dtype == np.uint8 and self.bits == 4:
            packed = self.zero_points.astype(np.uint8, copy=False)
            zero = unpack_nibbles(packed)[:, : self.scales.shape[1]].astype(np.float32)
        return zero[..., None]


def stack(matrices: Sequence[QuantizedMatrix]) -> QuantizedMatrix | None:
    """The rows of several matrices below one another; None when their blocks are not of one form."""
    first = matrices[0]
    if any(not first.has_form_of(other) for other in matrices[1:]):
        return None
    zero_points: list[Any] = [matrix.zero_points for matrix in matrices if matrix.zero_points is not None]
    return QuantizedMatrix(
        codes=np.concatenate([matrix.codes for matrix in matrices]),
        scales=np.concatenate([matrix.scales for matrix in matrices]),
        zero_points=np.concatenate(zero_points) if zero_points else None,
        columns=first.columns,
        bits=first.bits,
    )


def pack_nibbles(codes: U8Array) -> U8Array:
    """Codes below 16 [..., n] to bytes [..., ceil(n / 2)], the first of a pair in the lower half."""
    packed = codes[..., 0::2].copy()
    packed[..., : codes.shape[-1] // 2] |= codes[..., 1::2] << np.uint8(4)
    return packed


def unpack_nibbles(packed: U8Array) -> U8Array:
    """Bytes [..., n] to the codes in them, [..., 2n]."""
    return np.stack([packed & 15, packed >> 4], axis=-1).reshape(*packed.shape[:-1], -1)


def quantize(weights: F32Array, block_size: int = DEFAULT_BLOCK_SIZE) -> QuantizedMatrix:
    """Rounds float weights [rows, columns] to symmetric 8-bit blocks: the largest weight of a block gets code 127."""
    rows, columns = weights.shape
    blocks = -(-columns // block_size)
    codes = np.empty((rows, blocks, block_size), np.uint8)
    scales = np.empty((rows, blocks), np.float32)
    for begin in range(0, rows, _ROWS_AT_ONCE):
        part = slice(begin, begin + _ROWS_AT_ONCE)
        padded = np.pad(weights[part], ((0, 0), (0, blocks * block_size - columns)))
        values = padded.reshape(-1, blocks, block_size)
        scales[part] = np.abs(values).max(-1) / np.float32(_LARGEST_CODE)
        divisors = np.where(scales[part] == 0, np.float32(1), scales[part])
        codes[part] = np.rint(values / divisors[..., None]).astype(np.int16) + SYMMETRIC_ZERO_POINT
    return QuantizedMatrix(codes, scales, None, columns)
