"""Quantised blocks of GGUF tensors, carried over without rounding the weights a second time.

Formats with a scale only fit exactly: their integers lie within a byte, or half a byte, around the zero point. Formats
with a minimum get a byte zero point in 8-bit blocks (see ``spreading``), and a float one in 4-bit blocks, which have no
room for one that is fine enough. The others are decoded to floats and rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from oga.export.precision import BlockFormat
from oga.export.quantization import F32Array, QuantizedMatrix, U8Array, pack_nibbles
from oga.export.spreading import spread

_SUPER_BLOCK = 256


@dataclass(frozen=True)
class _Blocks:
    """Decoded blocks: a weight is ``scale * (code - zero)``, or ``scale * code + minimum`` where there are minimums.

    Attributes:
        codes: uint8 [rows, blocks, weights of a block].
        scales: float32 [rows, blocks].
        bits: of a code.
        zero: the zero point of the format.
        minimums: float32 [rows, blocks], or None.
    """

    codes: U8Array
    scales: F32Array
    bits: int
    zero: int = 0
    minimums: F32Array | None = None


def carry_over(kind: str, raw: U8Array, columns: int, wanted: BlockFormat) -> QuantizedMatrix | None:
    """The blocks of a tensor, or None when its format has none that are exact, or nearly so, in the wanted one.

    Args:
        kind: GGUF's name of the block format.
        raw: uint8 [rows, bytes of a row].
        columns: weights of a row.
        wanted: the blocks to make.
    """
    if kind not in _DECODERS or wanted.bits < stored_bits(kind):
        return None
    blocks = _DECODERS[kind](raw.reshape(len(raw), -1))
    if wanted.block_size not in (None, blocks.codes.shape[2]) or (wanted.symmetric and blocks.minimums is not None):
        return None
    if wanted.bits == 4:
        return _in_nibbles(blocks, columns)
    if blocks.minimums is not None:
        return spread(blocks.codes, blocks.scales, blocks.minimums, (1 << blocks.bits) - 1)
    return QuantizedMatrix(blocks.codes + np.uint8(128 - blocks.zero), blocks.scales, None, columns)


def stored_bits(kind: str) -> int:
    """Bits of a code in a block format that is known here, 32 for all others."""
    return _STORED_BITS.get(kind, 32)


def _in_nibbles(blocks: _Blocks, columns: int) -> QuantizedMatrix:
    codes, scales, minimums = blocks.codes, blocks.scales, blocks.minimums
    if minimums is None:
        return QuantizedMatrix(pack_nibbles(codes), scales, None, columns, bits=4)
    # A block of equal weights has no scale: code 1 and the weight as the scale stand for it.
    flat = scales == 0
    codes = np.where(flat[..., None], np.uint8(1), codes)
    zero_points = np.divide(-minimums, scales, out=np.zeros_like(scales), where=~flat)
    return QuantizedMatrix(pack_nibbles(codes), np.where(flat, minimums, scales), zero_points, columns, bits=4)


def _half(raw: U8Array) -> F32Array:
    """Little-endian float16 pairs of bytes [..., 2] as float32 [...]."""
    return np.ascontiguousarray(raw).view("<f2")[..., 0].astype(np.float32)


def _nibbles(raw: U8Array) -> U8Array:
    """The low halves of all bytes, then the high halves: [..., n] to [..., 2n]."""
    return np.concatenate([raw & 15, raw >> 4], axis=-1)


def _fifth_bits(raw: U8Array) -> U8Array:
    """Bits of 4 bytes, lowest first, moved to bit 4: [..., 4] to [..., 32]."""
    return np.unpackbits(raw, axis=-1, bitorder="little") << np.uint8(4)


def _q8_0(raw: U8Array) -> _Blocks:
    blocks = raw.reshape(len(raw), -1, 34)
    return _Blocks(blocks[..., 2:] ^ np.uint8(128), _half(blocks[..., :2]), 8, zero=128)


def _q4_0(raw: U8Array) -> _Blocks:
    blocks = raw.reshape(len(raw), -1, 18)
    return _Blocks(_nibbles(blocks[..., 2:]), _half(blocks[..., :2]), 4, zero=8)


def _q5_0(raw: U8Array) -> _Blocks:
    blocks = raw.reshape(len(raw), -1, 22)
    codes = _nibbles(blocks[..., 6:]) | _fifth_bits(blocks[..., 2:6])
    return _Blocks(codes, _half(blocks[..., :2]), 5, zero=16)


def _q4_1(raw: U8Array) -> _Blocks:
    blocks = raw.reshape(len(raw), -1, 20)
    return _Blocks(_nibbles(blocks[..., 4:]), _half(blocks[..., :2]), 4, minimums=_half(blocks[..., 2:4]))


def _q5_1(raw: U8Array) -> _Blocks:
    blocks = raw.reshape(len(raw), -1, 24)
    codes = _nibbles(blocks[..., 8:]) | _fifth_bits(blocks[..., 4:8])
    return _Blocks(codes, _half(blocks[..., :2]), 5, minimums=_half(blocks[..., 2:4]))


def _k_scales(raw: U8Array) -> tuple[F32Array, F32Array]:
    """Scales and minimums of the 8 blocks of a super-block whose head is [..., 16]: two float16, 8 pairs of 6 bits."""
    scale, minimum, packed = _half(raw[..., :2]), _half(raw[..., 2:4]), raw[..., 4:16]
    first, second, rest = packed[..., :4], packed[..., 4:8], packed[..., 8:]
    scales = np.concatenate([first & 63, (rest & 15) | (first >> 6) << 4], axis=-1)
    minimums = np.concatenate([second & 63, (rest >> 4) | (second >> 6) << 4], axis=-1)
    return scale[..., None] * scales, -(minimum[..., None] * minimums)


def _q4_k(raw: U8Array) -> _Blocks:
    blocks = raw.reshape(len(raw), -1, 144)
    codes = _nibbles(blocks[..., 16:].reshape(*blocks.shape[:2], 4, 32))
    return _of_super_blocks(codes, *_k_scales(blocks), 4)


def _q5_k(raw: U8Array) -> _Blocks:
    blocks = raw.reshape(len(raw), -1, 176)
    low = _nibbles(blocks[..., 48:].reshape(*blocks.shape[:2], 4, 32)).reshape(*blocks.shape[:2], 8, 32)
    bit = np.arange(8, dtype=np.uint8)[:, None]
    high = (blocks[..., None, 16:48] >> bit & np.uint8(1)) << np.uint8(4)
    return _of_super_blocks(low | high, *_k_scales(blocks), 5)


def _of_super_blocks(codes: U8Array, scales: F32Array, minimums: F32Array, bits: int) -> _Blocks:
    rows, blocks = len(codes), codes.shape[1] * (_SUPER_BLOCK // 32)
    return _Blocks(
        codes.reshape(rows, blocks, 32), scales.reshape(rows, blocks), bits, minimums=minimums.reshape(rows, blocks)
    )


def _q6_k(raw: U8Array) -> _Blocks:
    """Blocks of 16 with signed 8-bit scales; the 6-bit integers are split over two arrays of a super-block."""
    blocks = raw.reshape(len(raw), -1, 210)
    halves = blocks.shape[:2]
    low = blocks[..., :128].reshape(*halves, 2, 2, 32)
    high = blocks[..., 128:192].reshape(*halves, 2, 1, 32)
    low = np.concatenate([low & 15, low >> 4], axis=-2)
    shifts = np.array([0, 2, 4, 6], np.uint8)[:, None]
    codes = (low | (high >> shifts & np.uint8(3)) << np.uint8(4)).reshape(len(raw), -1, 16)
    scales = _half(blocks[..., 208:210])[..., None] * blocks[..., 192:208].view(np.int8)
    return _Blocks(codes, scales.reshape(len(raw), -1), 6, zero=32)


_DECODERS: dict[str, Callable[[U8Array], _Blocks]] = {
    "Q8_0": _q8_0,
    "Q4_0": _q4_0,
    "Q4_1": _q4_1,
    "Q5_0": _q5_0,
    "Q5_1": _q5_1,
    "Q4_K": _q4_k,
    "Q5_K": _q5_k,
    "Q6_K": _q6_k,
}
_STORED_BITS = {kind: int(kind[1]) for kind in _DECODERS}
