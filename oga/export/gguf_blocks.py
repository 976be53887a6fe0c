"""Quantised blocks of GGUF tensors, carried over to 8-bit blocks without rounding the weights a second time.

Formats with a scale only fit exactly: their integers lie within a byte around the zero point 128. Formats with a
minimum get a byte zero point (see quantization.spread). The others are decoded to floats and rounded.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from oga.export.quantization import F32Array, QuantizedMatrix, U8Array, spread

_SUPER_BLOCK = 256


def carry_over(kind: str, raw: U8Array, columns: int) -> QuantizedMatrix | None:
    """The 8-bit blocks of a tensor, or None when its format has none that are exact or nearly so.

    Args:
        kind: GGUF's name of the block format.
        raw: uint8 [rows, bytes of a row].
        columns: weights of a row.
    """
    decode = _DECODERS.get(kind)
    return decode(raw.reshape(len(raw), -1), columns) if decode else None


def _half(raw: U8Array) -> F32Array:
    """Little-endian float16 pairs of bytes [..., 2] as float32 [...]."""
    return np.ascontiguousarray(raw).view("<f2")[..., 0].astype(np.float32)


def _nibbles(raw: U8Array) -> U8Array:
    """The low halves of all bytes, then the high halves: [..., n] to [..., 2n]."""
    return np.concatenate([raw & 15, raw >> 4], axis=-1)


def _fifth_bits(raw: U8Array) -> U8Array:
    """Bits of 4 bytes, lowest first, moved to bit 4: [..., 4] to [..., 32]."""
    return np.unpackbits(raw, axis=-1, bitorder="little") << np.uint8(4)


def _q8_0(raw: U8Array, columns: int) -> QuantizedMatrix:
    blocks = raw.reshape(len(raw), -1, 34)
    return QuantizedMatrix(blocks[..., 2:] ^ np.uint8(128), _half(blocks[..., :2]), None, columns)


def _q4_0(raw: U8Array, columns: int) -> QuantizedMatrix:
    blocks = raw.reshape(len(raw), -1, 18)
    return QuantizedMatrix(_nibbles(blocks[..., 2:]) + np.uint8(128 - 8), _half(blocks[..., :2]), None, columns)


def _q5_0(raw: U8Array, columns: int) -> QuantizedMatrix:
    blocks = raw.reshape(len(raw), -1, 22)
    codes = _nibbles(blocks[..., 6:]) | _fifth_bits(blocks[..., 2:6])
    return QuantizedMatrix(codes + np.uint8(128 - 16), _half(blocks[..., :2]), None, columns)


def _q4_1(raw: U8Array, columns: int) -> QuantizedMatrix:
    blocks = raw.reshape(len(raw), -1, 20)
    return spread(_nibbles(blocks[..., 4:]), _half(blocks[..., :2]), _half(blocks[..., 2:4]), 15)


def _q5_1(raw: U8Array, columns: int) -> QuantizedMatrix:
    blocks = raw.reshape(len(raw), -1, 24)
    codes = _nibbles(blocks[..., 8:]) | _fifth_bits(blocks[..., 4:8])
    return spread(codes, _half(blocks[..., :2]), _half(blocks[..., 2:4]), 31)


def _k_scales(raw: U8Array) -> tuple[F32Array, F32Array]:
    """Scales and minimums of the 8 blocks of a super-block whose head is [..., 16]: two float16, 8 pairs of 6 bits."""
    scale, minimum, packed = _half(raw[..., :2]), _half(raw[..., 2:4]), raw[..., 4:16]
    first, second, rest = packed[..., :4], packed[..., 4:8], packed[..., 8:]
    scales = np.concatenate([first & 63, (rest & 15) | (first >> 6) << 4], axis=-1)
    minimums = np.concatenate([second & 63, (rest >> 4) | (second >> 6) << 4], axis=-1)
    return scale[..., None] * scales, -(minimum[..., None] * minimums)


def _q4_k(raw: U8Array, columns: int) -> QuantizedMatrix:
    blocks = raw.reshape(len(raw), columns // _SUPER_BLOCK, 144)
    scales, minimums = _k_scales(blocks)
    codes = _nibbles(blocks[..., 16:].reshape(*blocks.shape[:2], 4, 32))
    return _spread_super_blocks(codes, scales, minimums, columns, 15)


def _q5_k(raw: U8Array, columns: int) -> QuantizedMatrix:
    blocks = raw.reshape(len(raw), columns // _SUPER_BLOCK, 176)
    scales, minimums = _k_scales(blocks)
    low = _nibbles(blocks[..., 48:].reshape(*blocks.shape[:2], 4, 32)).reshape(*blocks.shape[:2], 8, 32)
    bit = np.arange(8, dtype=np.uint8)[:, None]
    high = (blocks[..., None, 16:48] >> bit & np.uint8(1)) << np.uint8(4)
    return _spread_super_blocks(low | high, scales, minimums, columns, 31)


def _spread_super_blocks(
    codes: U8Array, scales: F32Array, minimums: F32Array, columns: int, largest_code: int
) -> QuantizedMatrix:
    rows, blocks = len(codes), columns // 32
    return spread(
        codes.reshape(rows, blocks, 32), scales.reshape(rows, blocks), minimums.reshape(rows, blocks), largest_code
    )


def _q6_k(raw: U8Array, columns: int) -> QuantizedMatrix:
    """Blocks of 16 with signed 8-bit scales; the 6-bit integers are split over two arrays of a super-block."""
    blocks = raw.reshape(len(raw), columns // _SUPER_BLOCK, 210)
    halves = blocks.shape[:2]
    low = blocks[..., :128].reshape(*halves, 2, 2, 32)
    high = blocks[..., 128:192].reshape(*halves, 2, 1, 32)
    low = np.concatenate([low & 15, low >> 4], axis=-2)
    shifts = np.array([0, 2, 4, 6], np.uint8)[:, None]
    codes = (low | (high >> shifts & np.uint8(3)) << np.uint8(4)).reshape(len(raw), columns // 16, 16)
    scales = _half(blocks[..., 208:210])[..., None] * blocks[..., 192:208].view(np.int8)
    return QuantizedMatrix(codes + np.uint8(128 - 32), scales.reshape(len(raw), -1), None, columns)


_DECODERS: dict[str, Callable[[U8Array, int], QuantizedMatrix]] = {
    "Q8_0": _q8_0,
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
}
