"""Writes tiny random GGUF files of the llama and Qwen architectures, with any mix of block formats."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
from gguf import GGMLQuantizationType as Kind
from tiny_llama import CHAT_TEMPLATE, MERGES, SPECIAL_TOKENS, tiny_config, tiny_tokenizer, tiny_weights

_FLOAT_KINDS = {Kind.F32: np.dtype(np.float32), Kind.F16: np.dtype(np.float16)}
# Byte positions of the float16 scale and minimum of a block, for formats that gguf cannot quantise to.
_HALVES = {Kind.Q4_K: (0, 2), Kind.Q5_K: (0, 2), Kind.Q6_K: (208,), Kind.Q2_K: (80, 82), Kind.Q3_K: (108,)}
_NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def random_blocks(kind: Kind, rows: int, columns: int, random: np.random.Generator) -> npt.NDArray[np.uint8]:
    """Random blocks of a format, uint8 [rows, bytes of a row], whose weights are about 0.1."""
    weights, size = gguf.GGML_QUANT_SIZES[kind]
    blocks = random.integers(0, 256, (rows, columns // weights, size)).astype(np.uint8)
    for position in _HALVES[kind]:
        scales = (random.random((rows, columns // weights, 1)) * 1e-3).astype(np.float16)
        blocks[..., position : position + 2] = scales.view(np.uint8)
    return blocks.reshape(rows, -1)


def gguf_name(name: str) -> str:
    """GGUF's name of a tensor with a Hugging Face name."""
    stem, kind = name.rsplit(".", 1)
    if not stem.startswith("model.layers."):
        return f"{_NAMES[stem]}.{kind}"
    layer, part = stem.removeprefix("model.layers.").split(".", 1)
    return f"blk.{layer}.{_NAMES[part]}.{kind}"


def write_tiny_gguf(
    path: Path,
    *,
    kinds: Mapping[str, Kind] | None = None,
    seed: int = 0,
    metadata: Mapping[str, Any] | None = None,
    without: tuple[str, ...] = (),
    extra: Mapping[str, npt.NDArray[np.float32]] | None = None,
    raw: Mapping[str, Kind] = MappingProxyType({}),
    **changes: Any,
) -> Path:
    """Writes a file that ``oga convert`` loads.

    Args:
        path: of the file.
        kinds: block formats by the end of a GGUF name without ".weight"; "" is all others, float32 when absent.
        seed: of the weights.
        metadata: string, int, float, bool or list values that override or add keys.
        without: keys, and tensors by GGUF name, to leave out.
        extra: float32 tensors to add, by GGUF name.
        raw: formats of tensors, by GGUF name, that are filled with zero bytes.
        changes: fields of the config, see ``tiny_config``.

    Returns:
        ``path``.
    """
    config = tiny_config(**changes)
    writer = gguf.GGUFWriter(path, config["model_type"])
    for key, value in {**_metadata(config), **(metadata or {})}.items():
        if key not in without:
            _add(writer, key, value)
    random = np.random.default_rng(seed)
    for name, values in tiny_weights(config, seed).items():
        short = gguf_name(name)
        if short in without:
            continue
        if short in raw:
            weights, size = gguf.GGML_QUANT_SIZES[raw[short]]
            blocks = np.zeros((len(values), values.shape[1] // weights * size), np.uint8)
            writer.add_tensor(short, blocks, raw_dtype=raw[short])
            continue
        matches = [end for end in kinds or {} if short.removesuffix(".weight").endswith(end)]
        kind = (kinds or {})[max(matches, key=len)] if matches and values.ndim == 2 else Kind.F32
        if kind in _FLOAT_KINDS:
            writer.add_tensor(short, values.astype(_FLOAT_KINDS[kind]))
        elif kind in _HALVES:
            writer.add_tensor(short, random_blocks(kind, *values.shape, random), raw_dtype=kind)
        else:
            writer.add_tensor(short, gguf.quantize(values, kind), raw_dtype=kind)
    for name, values in (extra or {}).items():
        writer.add_tensor(name, values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def _metadata(config: dict[str, Any]) -> dict[str, Any]:
    tokenizer = tiny_tokenizer(config["vocab_size"])
    known = tokenizer.get_vocab_size()
    tokens = [tokenizer.id_to_token(token) for token in range(known)]
    tokens += [f"<unused{token}>" for token in range(known, config["vocab_size"])]
    merges = [" ".join(pair) for pair in MERGES]
    head_size = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    family = config["model_type"]
    return {
        f"{family}.context_length": config["max_position_embeddings"],
        f"{family}.embedding_length": config["hidden_size"],
        f"{family}.block_count": config["num_hidden_layers"],
        f"{family}.feed_forward_length": config["intermediate_size"],
        f"{family}.attention.head_count": config["num_attention_heads"],
        f"{family}.attention.head_count_kv": config["num_key_value_heads"],
        f"{family}.attention.key_length": head_size,
        f"{family}.attention.value_length": head_size,
        f"{family}.attention.layer_norm_rms_epsilon": config["rms_norm_eps"],
        f"{family}.rope.freq_base": config["rope_theta"],
        f"{family}.rope.dimension_count": head_size,
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2" if family.startswith("qwen") else "smollm",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3 if text in SPECIAL_TOKENS else 1 for text in tokens],
        "tokenizer.ggml.merges": merges,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 0,
        "tokenizer.ggml.add_bos_token": False,
        "tokenizer.chat_template": CHAT_TEMPLATE,
    }


def _add(writer: gguf.GGUFWriter, key: str, value: Any) -> None:
    if isinstance(value, bool):
        writer.add_bool(key, value)
    elif isinstance(value, int):
        writer.add_uint32(key, value)
    elif isinstance(value, float):
        writer.add_float32(key, value)
    elif isinstance(value, str):
        writer.add_string(key, value)
    else:
        writer.add_array(key, value)
