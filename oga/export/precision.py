"""How a converted model stores its weights, and the keys and values that it computes: what may be asked for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from oga.export.errors import ConversionError

Precision = Literal["fp32", "bf16", "fp16", "int8", "int4"]
FloatPrecision = Literal["fp32", "bf16", "fp16"]
CachePrecision = Literal["auto", "fp32", "bf16", "fp16"]
# The models that are at hand are small, and 8-bit activations cost them noticeably more than they save.
DEFAULT_PRECISION: Precision = "fp32"
PRECISIONS: tuple[Precision, ...] = ("fp32", "bf16", "fp16", "int8", "int4")
DEFAULT_CACHE: CachePrecision = "auto"
CACHES: tuple[CachePrecision, ...] = ("auto", "fp32", "bf16", "fp16")
BLOCK_SIZES = (16, 32, 64, 128, 256)
DEFAULT_BLOCK_SIZE = 32
# The embedding and the head: what --head-precision speaks of.
EMBEDDING, HEAD = "model.embed_tokens", "lm_head"

_BITS: dict[Precision, int] = {"int8": 8, "int4": 4}


@dataclass(frozen=True)
class FloatFormat:
    """Floating point numbers of a matrix, one by one.

    Attributes:
        precision: of each.
    """

    precision: FloatPrecision


@dataclass(frozen=True)
class BlockFormat:
    """Blocks of a matrix.

    Attributes:
        bits: of a code: 4 or 8.
        block_size: weights that share a scale; None takes the blocks of the source where it has some, 32 otherwise.
        symmetric: no block has a zero point of its own. Eight-bit blocks of float weights never have one.
    """

    bits: int
    block_size: int | None = None
    symmetric: bool = False


@dataclass(frozen=True)
class WeightFormats:
    """What was asked for, checked.

    Attributes:
        precision: of the matrices.
        head_precision: of the embedding and the LM head; None decides by the source.
        block_size: see ``BlockFormat``.
        symmetric: see ``BlockFormat``.
    """

    precision: Precision
    head_precision: Precision | None = None
    block_size: int | None = None
    symmetric: bool = False

    def __post_init__(self) -> None:
        """Raises ConversionError for what does not exist or does not go together."""
        for what, found in (("precision", self.precision), ("head precision", self.head_precision)):
            if found is not None and found not in PRECISIONS:
                raise ConversionError(f'{what} "{found}" is unknown; known: {", ".join(PRECISIONS)}')
        asked = f"precision {self.precision}" + (f", head {self.head_precision}" if self.head_precision else "")
        used = {self.precision, self.head_precision}
        if self.block_size is not None and self.block_size not in BLOCK_SIZES:
            known = ", ".join(map(str, BLOCK_SIZES))
            raise ConversionError(f"block size {self.block_size} cannot be stored; known: {known}")
        if self.block_size is not None and not used & {"int8", "int4"}:
            raise ConversionError(f"block size {self.block_size} is for int8 and int4, not for {asked}; leave it out")
        if self.symmetric and "int4" not in used:
            raise ConversionError(f"symmetric is a choice of int4, not of {asked}; leave it out")

    def of(self, name: str, stored_bits: int) -> BlockFormat | FloatFormat:
        """How a matrix is stored.

        Args:
            name: of the matrix, without ".weight".
            stored_bits: bits that a weight of it takes in the source, 4 to 32.
        """
        precision = self.precision
        if name in (EMBEDDING, HEAD):
            precision = self.head_precision or self._head_precision(stored_bits)
        if precision == "fp32" or precision == "bf16" or precision == "fp16":
            return FloatFormat(precision)
        return BlockFormat(_BITS[precision], self.block_size, self.symmetric)

    def _head_precision(self, stored_bits: int) -> Precision:
        """Whoever stored only the head in wider blocks meant it: a second, coarser rounding would undo that."""
        return "int8" if self.precision == "int4" and 4 < stored_bits <= 8 else self.precision


def cache_precision(cache: CachePrecision, precision: Precision) -> FloatPrecision:
    """How keys and values are stored.

    Args:
        cache: what was asked for.
        precision: of the matrices, by which "auto" decides.

    Raises:
        ConversionError: when there is no such cache.
    """
    if cache not in CACHES:
        raise ConversionError(f'cache "{cache}" is unknown; known: {", ".join(CACHES)}')
    if cache != "auto":
        return cache
    # Narrow weights, and activations rounded for them, move the logits further than rounded keys and values do, and
    # half a cache is read in half the time; but whoever asks for full precision means all of it.
    return "fp32" if precision == "fp32" else "bf16"
