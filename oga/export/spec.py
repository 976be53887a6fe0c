"""What a decoder is, whatever file format described it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Literal

from oga.export.errors import ConversionError

# The engine's attention kernel works on lanes of this many floats.
_HEAD_SIZE_MULTIPLE = 8


@dataclass(frozen=True)
class RopeSpec:
    """Rotary embedding: base frequency and how positions beyond the first training length are reached."""

    theta: float
    kind: Literal["default", "linear", "llama3"] = "default"
    factor: float = 1.0
    low_frequency_factor: float = 1.0
    high_frequency_factor: float = 4.0
    original_context_length: int = 0


@dataclass(frozen=True)
class TokenSpec:
    """Special token ids and the defaults of text generation."""

    bos: int | None
    eos: tuple[int, ...]
    pad: int | None
    search: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DecoderSpec:
    """The shape of a decoder-only transformer. Sizes count elements, lengths count tokens.

    ``qk_norm`` means an RMS norm over each query and key head. ``windows`` has one entry per layer, the tokens that its
    attention reaches back, or none at all when no layer is limited.
    """

    family: str
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_size: int
    vocab_size: int
    norm_epsilon: float
    context_length: int
    rope: RopeSpec
    tokens: TokenSpec
    tied_embeddings: bool
    qkv_bias: bool = False
    output_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    windows: tuple[int | None, ...] = ()

    @property
    def query_width(self) -> int:
        """Width of the concatenated query heads."""
        return self.num_heads * self.head_size

    @property
    def kv_width(self) -> int:
        """Width of the concatenated key heads, and of the value heads."""
        return self.num_kv_heads * self.head_size

    def window(self, layer: int) -> int | None:
        """The tokens that a layer's attention reaches back, the newest included, or None for all of them."""
        return self.windows[layer] if self.windows else None

    def check(self, where: str) -> None:
        """Checks that the engine can run such a decoder.

        Args:
            where: the file that described it, for the message.

        Raises:
            ConversionError: naming the first value that is out of range.
        """
        for name in (
            "hidden_size",
            "intermediate_size",
            "num_layers",
            "num_heads",
            "num_kv_heads",
            "head_size",
            "vocab_size",
            "context_length",
        ):
            if getattr(self, name) < 1:
                raise ConversionError(f"{where}: {name} is {getattr(self, name)}; it must be positive")
        if self.num_heads % self.num_kv_heads:
            raise ConversionError(
                f"{where}: {self.num_heads} attention heads do not divide among {self.num_kv_heads} key-value heads"
            )
        if self.head_size % _HEAD_SIZE_MULTIPLE:
            raise ConversionError(
                f"{where}: head size {self.head_size} is not a multiple of {_HEAD_SIZE_MULTIPLE}, "
                "which the engine's attention needs"
            )
        for window in self.windows:
            if window is not None and window < 1:
                raise ConversionError(f"{where}: sliding window {window} must be positive")
        if not (math.isfinite(self.norm_epsilon) and self.norm_epsilon > 0):
            raise ConversionError(f"{where}: norm epsilon {self.norm_epsilon} must be positive and finite")
        self._check_rope(where)
        self._check_tokens(where)

    def _check_rope(self, where: str) -> None:
        rope = self.rope
        for name, value in (("theta", rope.theta), ("factor", rope.factor)):
            if not (math.isfinite(value) and value > 0):
                raise ConversionError(f"{where}: rope {name} {value} must be positive and finite")
        if rope.kind == "llama3" and not rope.low_frequency_factor < rope.high_frequency_factor:
            raise ConversionError(
                f"{where}: rope low_freq_factor {rope.low_frequency_factor} must be below "
                f"high_freq_factor {rope.high_frequency_factor}"
            )

    def _check_tokens(self, where: str) -> None:
        for token in self.tokens.eos:
            if not 0 <= token < self.vocab_size:
                raise ConversionError(f"{where}: eos token id {token} is outside the vocabulary of {self.vocab_size}")
