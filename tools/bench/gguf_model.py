"""A Hugging Face folder as a GGUF file of halves, from which llama.cpp quantises."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np

from oga.export.safetensors_reader import SafetensorsReader

OUTER = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}
OF_LAYER = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
TOKENIZERS = {"qwen2": "qwen2", "llama": "llama-bpe"}
"""By model type: what llama.cpp calls the way its tokenizer splits text."""


def write_f16(folder: Path, path: Path) -> None:
    """Writes ``path``. Raises ``ValueError`` for a model that is neither Qwen2 nor Llama."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if config["model_type"] not in TOKENIZERS:
        raise ValueError(f"{folder} is a {config['model_type']} model; known: {', '.join(TOKENIZERS)}")
    writer = gguf.GGUFWriter(path, config["model_type"])
    add_sizes(writer, config)
    add_tokenizer(writer, config, json.loads((folder / "tokenizer.json").read_text(encoding="utf-8")))
    for file in sorted(folder.glob("*.safetensors")):
        reader = SafetensorsReader(file)
        for name in reader.entries:
            values = arranged(name, reader.read(name), config)
            writer.add_tensor(gguf_name(name), values.astype(np.float16) if values.ndim == 2 else values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def add_sizes(writer: gguf.GGUFWriter, config: dict[str, Any]) -> None:
    """What the layers are like."""
    heads = config["num_attention_heads"]
    writer.add_context_length(config["max_position_embeddings"])
    writer.add_embedding_length(config["hidden_size"])
    writer.add_block_count(config["num_hidden_layers"])
    writer.add_feed_forward_length(config["intermediate_size"])
    writer.add_head_count(heads)
    writer.add_head_count_kv(config["num_key_value_heads"])
    writer.add_rope_dimension_count(config.get("head_dim") or config["hidden_size"] // heads)
    writer.add_rope_freq_base(config.get("rope_theta") or config["rope_parameters"]["rope_theta"])
    writer.add_layer_norm_rms_eps(config["rms_norm_eps"])
    writer.add_vocab_size(config["vocab_size"])
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)


def add_tokenizer(writer: gguf.GGUFWriter, config: dict[str, Any], tokenizer: dict[str, Any]) -> None:
    """The vocabulary: the workloads send token ids, but llama.cpp loads nothing without one."""
    special = {token["id"]: token["content"] for token in tokenizer["added_tokens"]}
    pieces = {number: piece for piece, number in tokenizer["model"]["vocab"].items()} | special
    places = range(config["vocab_size"])
    kinds = [gguf.TokenType.CONTROL if place in special else gguf.TokenType.NORMAL for place in places]
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(TOKENIZERS[config["model_type"]])
    writer.add_token_list([pieces.get(place, f"[unused {place}]") for place in places])
    writer.add_token_types(kinds)
    merges = tokenizer["model"]["merges"]
    writer.add_token_merges([merge if isinstance(merge, str) else " ".join(merge) for merge in merges])
    writer.add_bos_token_id(config["bos_token_id"])
    eos = config["eos_token_id"]
    writer.add_eos_token_id(eos[0] if isinstance(eos, list) else eos)


def gguf_name(name: str) -> str:
    """``model.layers.3.mlp.up_proj.weight`` is ``blk.3.ffn_up.weight``."""
    stem, kind = name.rsplit(".", 1)
    if stem in OUTER:
        return f"{OUTER[stem]}.{kind}"
    _, _, layer, rest = stem.split(".", 3)
    return f"blk.{layer}.{OF_LAYER[rest]}.{kind}"


def arranged(name: str, values: np.ndarray[Any, Any], config: dict[str, Any]) -> np.ndarray[Any, Any]:
    """Llama's queries and keys as llama.cpp rotates them: a pair's two beside one another, not half a head apart."""
    heads = {"q_proj": config["num_attention_heads"], "k_proj": config["num_key_value_heads"]}
    count = heads.get(name.rsplit(".", 2)[-2])
    if config["model_type"] != "llama" or count is None:
        return values
    halves = values.reshape(count, 2, values.shape[0] // count // 2, *values.shape[1:])
    return halves.swapaxes(1, 2).reshape(values.shape)
