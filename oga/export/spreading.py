"""Blocks with a float minimum, carried over to 8-bit blocks with a byte zero point."""

from __future__ import annotations

import numpy as np

from oga.export.quantization import SYMMETRIC_ZERO_POINT, F32Array, QuantizedMatrix, U8Array, quantize


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
