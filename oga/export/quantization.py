"""Eight-bit blocks of a weight matrix, as the runtime's MatMulNBits operator reads them.

A row of K weights is cut into blocks. A block has a scale and, when the matrix is not symmetric, a zero point:

    weight = scale * (code - zero_point)        code, zero_point in 0..255; zero_point is 128 when symmetric
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

F32Array = npt.NDArray[np.float32]
U8Array = npt.NDArray[np.uint8]

DEFAULT_BLOCK_SIZE = 32
SYMMETRIC_ZERO_POINT = 128
_LARGEST_CODE = 127
_ROWS_AT_ONCE = 4096  # bounds the temporaries of a vocabulary-sized matrix


@dataclass(frozen=True)
class QuantizedMatrix:
    """A matrix [rows, columns] of weights in blocks along its rows.

    Attributes:
        codes: uint8 [rows, blocks, block_size]; what lies beyond ``columns`` equals the zero point.
        scales: float32 [rows, blocks].
        zero_points: uint8 [rows, blocks], or None when all are 128.
        columns: weights of a row.
    """

    codes: U8Array
    scales: F32Array
    zero_points: U8Array | None
    columns: int

    @property
    def block_size(self) -> int:
        """Weights that share a scale."""
        return int(self.codes.shape[2])

    def dequantized(self) -> F32Array:
        """The weights that the blocks stand for, float32 [rows, columns]."""
        zero: F32Array | np.float32 = np.float32(SYMMETRIC_ZERO_POINT)
        if self.zero_points is not None:
            zero = self.zero_points[..., None].astype(np.float32)
        values = (self.codes.astype(np.float32) - zero) * self.scales[..., None]
        return values.reshape(len(values), -1)[:, : self.columns]


def quantize(weights: F32Array) -> QuantizedMatrix:
    """Rounds float weights [rows, columns] to symmetric blocks of 32: the largest weight of a block gets code 127."""
    rows, columns = weights.shape
    blocks = -(-columns // DEFAULT_BLOCK_SIZE)
    codes = np.empty((rows, blocks, DEFAULT_BLOCK_SIZE), np.uint8)
    scales = np.empty((rows, blocks), np.float32)
    for begin in range(0, rows, _ROWS_AT_ONCE):
        part = slice(begin, begin + _ROWS_AT_ONCE)
        padded = np.pad(weights[part], ((0, 0), (0, blocks * DEFAULT_BLOCK_SIZE - columns)))
        values = padded.reshape(-1, blocks, DEFAULT_BLOCK_SIZE)
        scales[part] = np.abs(values).max(-1) / np.float32(_LARGEST_CODE)
        divisors = np.where(scales[part] == 0, np.float32(1), scales[part])
        codes[part] = np.rint(values / divisors[..., None]).astype(np.int16) + SYMMETRIC_ZERO_POINT
    return QuantizedMatrix(codes, scales, None, columns)


def spread(codes: U8Array, scales: F32Array, minimums: F32Array, largest_code: int) -> QuantizedMatrix:
    """Carries blocks with a float minimum, ``weight = scale * code + minimum``, over to blocks with a byte zero point.

    Multiplying the codes of a block by a whole number k and dividing its scale by k changes no weight, but makes the
    zero point k times finer. The k is taken for which ``-minimum / scale * k`` comes nearest to a whole number: the
    largest error of a weight is then far below the 4-bit step it was rounded to before.

    Args:
        codes: uint8 [rows, blocks, 32].
        scales: float32 [rows, blocks].
        minimums: float32 [rows, blocks].
        largest_code: the largest value in ``codes`` that the format has.
    """
    factors, offsets, zero_points = _finest_zero_points(scales, minimums, largest_code)
    result = QuantizedMatrix(
        codes * factors[..., None] + offsets[..., None],
        np.divide(scales, np.maximum(factors, 1), dtype=np.float32),
        zero_points,
        codes.shape[1] * codes.shape[2],
    )
    unfit = factors == 0
    if unfit.any():
        anew = quantize(codes[unfit].astype(np.float32) * scales[unfit, None] + minimums[unfit, None])
        result.codes[unfit] = anew.codes[:, 0]
        result.scales[unfit] = anew.scales[:, 0]
    return result


def _finest_zero_points(scales: F32Array, minimums: F32Array, largest_code: int) -> tuple[U8Array, U8Array, U8Array]:
    """For each block the factor of its codes, what is added to them then, and the zero point.

    The factor is 0 where no zero point is within reach, which only blocks of nearly equal weights have: they are
    rounded anew, symmetrically.
    """
    out_of_reach = np.full(scales.shape, 1e9)
    exact = np.divide(-minimums, scales, out=out_of_reach, where=scales != 0, dtype=np.float64)
    factors, offsets = np.zeros(scales.shape, np.uint8), np.zeros(scales.shape, np.uint8)
    zero_points = np.full(scales.shape, SYMMETRIC_ZERO_POINT, np.uint8)
    smallest_error = np.full(scales.shape, np.inf)
    for factor in range(1, 255 // largest_code + 1):
        zero = np.rint(exact * factor)
        error = np.abs(exact * factor - zero) / factor
        offset = np.maximum(-zero, 0)  # a block of positive weights has its zero below the codes
        fits = (zero + offset <= 255) & (largest_code * factor + offset <= 255) & (error < smallest_error)
        smallest_error[fits] = error[fits]
        factors[fits], offsets[fits] = factor, offset[fits]
        zero_points[fits] = (zero + offset)[fits]
    return factors, offsets, zero_points
