"""A GGUF file: metadata, block-quantised tensors, tokenizer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import gguf
import numpy as np
import numpy.typing as npt

from oga.export.chat import end_of_turn_ids
from oga.export.errors import ConversionError
from oga.export.fields import Fields
from oga.export.gguf_blocks import carry_over, stored_bits
from oga.export.gguf_tokenizer import GgufTokenizer
from oga.export.mapping import release_pages
from oga.export.precision import BlockFormat
from oga.export.quantization import F32Array, QuantizedMatrix, U8Array
from oga.export.source import WeightSource
from oga.export.spec import DecoderSpec, RopeSpec, TokenSpec

_ROTARY_DIVISORS = "rope_freqs.weight"
_ROPE_KINDS = ("none", "linear")
_GLOBAL_NAMES = {
    "token_embd.weight": "model.embed_tokens.weight",
    "output_norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_LAYER_NAMES = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "attn_q_norm": "self_attn.q_norm",
    "attn_k_norm": "self_attn.k_norm",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_Rows = TypeVar("_Rows", F32Array, U8Array, F32Array | U8Array)


@dataclass(frozen=True)
class Architecture:
    """What distinguishes an architecture of the format.

    Attributes:
        interleaved: rows of query and key projections lie in the pairs that are rotated together.
        qk_norm: each query and key head passes an RMS norm.
    """

    interleaved: bool = False
    qk_norm: bool = False


ARCHITECTURES: dict[str, Architecture] = {
    "llama": Architecture(interleaved=True),
    "qwen2": Architecture(),
    "qwen3": Architecture(qk_norm=True),
}


class GgufSource(WeightSource):
    """Reads one GGUF file through a memory map."""

    def __init__(self, path: Path) -> None:
        """Reads the metadata and finds every tensor. Raises ConversionError."""
        reader, metadata = _open(path)
        tensors = {tensor.name: tensor for tensor in reader.tensors}
        self._divisors = tensors.pop(_ROTARY_DIVISORS, None)
        self._tensors = {_hugging_face_name(name): tensor for name, tensor in tensors.items()}
        self._tokenizer = GgufTokenizer(metadata)
        self._architecture = ARCHITECTURES[metadata.text("general.architecture")]
        super().__init__(path, self._spec(metadata))

    def names(self) -> Iterable[str]:
        """See the base class. A tensor that the architecture does not know keeps its GGUF name."""
        return self._tensors.keys()

    def write_text_files(self, folder: Path) -> list[str]:
        """See the base class: everything is rebuilt from the metadata."""
        return self._tokenizer.write(folder, self.spec)

    def rotary_divisors(self) -> F32Array | None:
        """See the base class."""
        if self._divisors is None:
            return None
        divisors = self._dequantize(self._divisors)
        if divisors.shape != (self.spec.head_size // 2,):
            raise ConversionError(
                f"{self.path}: tensor {_ROTARY_DIVISORS} has shape {list(divisors.shape)}, but heads of "
                f"{self.spec.head_size} want [{self.spec.head_size // 2}]; fetch the file again"
            )
        return divisors

    def _spec(self, metadata: Fields) -> DecoderSpec:
        family = metadata.text("general.architecture")
        fields = metadata.below(f"{family}.")
        heads = fields.integer("attention.head_count")
        hidden_size = fields.integer("embedding_length")
        head_size = fields.integer("attention.key_length", hidden_size // max(heads, 1))
        _refuse_what_would_be_ignored(fields, head_size)
        spec = DecoderSpec(
            family=family,
            hidden_size=hidden_size,
            intermediate_size=fields.integer("feed_forward_length"),
            num_layers=fields.integer("block_count"),
            num_heads=heads,
            num_kv_heads=fields.integer("attention.head_count_kv", heads),
            head_size=head_size,
            vocab_size=self._tokenizer.vocab_size,
            norm_epsilon=fields.number("attention.layer_norm_rms_epsilon"),
            context_length=fields.integer("context_length"),
            rope=_rope(fields),
            tokens=self._token_spec(),
            tied_embeddings="lm_head.weight" not in self._tensors,
            qkv_bias="model.layers.0.self_attn.q_proj.bias" in self._tensors,
            output_bias="model.layers.0.self_attn.o_proj.bias" in self._tensors,
            mlp_bias="model.layers.0.mlp.gate_proj.bias" in self._tensors,
            qk_norm=self._architecture.qk_norm,
        )
        spec.check(metadata.where)
        return spec

    def _token_spec(self) -> TokenSpec:
        tokenizer = self._tokenizer
        ends = end_of_turn_ids(tokenizer.chat_template, tokenizer.special_tokens)
        eos = [token for token in (tokenizer.eos, tokenizer.end_of_turn, *ends) if token is not None]
        return TokenSpec(bos=tokenizer.bos, eos=tuple(dict.fromkeys(eos)), pad=tokenizer.pad)

    def _shape(self, name: str) -> tuple[int, ...]:
        return tuple(int(size) for size in reversed(self._tensors[name].shape))

    def _nbytes(self, name: str) -> int:
        return int(self._tensors[name].n_bytes)

    def _load(self, name: str) -> F32Array:
        return self._in_order(name, self._dequantize(self._tensors[name]))

    def stored_bits(self, name: str) -> int:
        """See the base class."""
        return stored_bits(self._tensors[name].tensor_type.name) if name in self._tensors else super().stored_bits(name)

    def _load_blocks(self, name: str, wanted: BlockFormat) -> QuantizedMatrix | None:
        tensor = self._tensors[name]
        columns = int(tensor.shape[0])
        carried = carry_over(tensor.tensor_type.name, tensor.data.view(np.uint8), columns, wanted)
        if carried is None:
            return None
        zero_points = None if carried.zero_points is None else self._in_order(name, carried.zero_points)
        return replace(
            carried,
            codes=self._in_order(name, carried.codes),
            scales=self._in_order(name, carried.scales),
            zero_points=zero_points,
        )

    def _release(self, name: str) -> None:
        release_pages(self._tensors[name].data)

    def _dequantize(self, tensor: Any) -> F32Array:
        try:
            values: npt.NDArray[Any] = gguf.dequantize(tensor.data, tensor.tensor_type)
        except NotImplementedError as error:
            raise ConversionError(
                f"{self.path}: tensor {tensor.name} has type {tensor.tensor_type.name}, which cannot be decoded; "
                "take a Q8_0 or Q4_K_M file of the model"
            ) from error
        return values.astype(np.float32, copy=False)

    def _in_order(self, name: str, rows: _Rows) -> _Rows:
        """Rows of a query or key projection as the rotary embedding of the graph wants them.

        Some architectures interleave the two halves that are rotated with each other: row 2i is channel i, row 2i + 1
        is channel i + head_size / 2 of a head.
        """
        if not self._architecture.interleaved:
            return rows
        if ".q_proj." in name:
            heads = self.spec.num_heads
        elif ".k_proj." in name:
            heads = self.spec.num_kv_heads
        else:
            return rows
        paired = rows.reshape(heads, len(rows) // heads // 2, 2, *rows.shape[1:])
        return paired.swapaxes(1, 2).reshape(rows.shape)


def _open(path: Path) -> tuple[Any, Fields]:
    """The reader of a file whose tensors are all there, and its metadata."""
    try:
        reader = gguf.GGUFReader(path)
        metadata = Fields({name: field.contents() for name, field in reader.fields.items()}, str(path))
    except OSError as error:
        raise ConversionError(f"{path} could not be read ({error})") from error
    except Exception as error:  # the reader meets a damaged file with whatever its parsing stumbles over
        raise ConversionError(f"{path} is truncated or damaged ({error}); fetch it again") from error
    architecture = metadata.text("general.architecture")
    if architecture not in ARCHITECTURES:
        known = ", ".join(ARCHITECTURES)
        raise ConversionError(
            f'{path}: general.architecture "{architecture}" is no family that can be converted; known: {known}'
        )
    parts = metadata.integer("split.count", 1)
    if parts > 1:
        raise ConversionError(f"{path} is one of {parts} parts; join them with llama-gguf-split --merge first")
    return reader, metadata


def _hugging_face_name(name: str) -> str:
    if name in _GLOBAL_NAMES:
        return _GLOBAL_NAMES[name]
    match = re.fullmatch(r"blk\.(\d+)\.(\w+)\.(weight|bias)", name)
    if match is None or match[2] not in _LAYER_NAMES:
        return name
    return f"model.layers.{match[1]}.{_LAYER_NAMES[match[2]]}.{match[3]}"


def _refuse_what_would_be_ignored(fields: Fields, head_size: int) -> None:
    for name, value in (
        ("attention.value_length", head_size),
        ("rope.dimension_count", head_size),
        ("expert_count", 0),
    ):
        found = fields.integer(name, value)
        if found != value:
            raise fields.wrong(name, found, f"{value}; other values cannot be converted")


def _rope(fields: Fields) -> RopeSpec:
    theta = fields.number("rope.freq_base", 10000.0)
    kind = fields.text("rope.scaling.type", "none")
    if kind not in _ROPE_KINDS:
        known = ", ".join(_ROPE_KINDS)
        raise ConversionError(f'{fields.where}: rope.scaling.type "{kind}" cannot be converted; known: {known}')
    if kind == "none":
        return RopeSpec(theta)
    return RopeSpec(theta, "linear", fields.number("rope.scaling.factor"))
