"""Writes tiny random Hugging Face folders: config, weights and a byte-level tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from safetensors.numpy import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers

CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
MERGES = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("i", "n"), ("e", "r"), ("a", "n"), ("Ġ", "a"), ("o", "n")]


def tiny_config(**changes: Any) -> dict[str, Any]:
    """A config.json of a model with two layers; ``changes`` override or add fields."""
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": 512,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "hidden_act": "silu",
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "tie_word_embeddings": True,
        "attention_bias": False,
        "mlp_bias": False,
        "bos_token_id": 1,
        "eos_token_id": 0,
        "torch_dtype": "float32",
    }
    return {**config, **changes}


def tiny_weights(config: dict[str, Any], seed: int = 0) -> dict[str, npt.NDArray[np.float32]]:
    """Random float32 weights that a config asks for, by Hugging Face name."""
    random = np.random.default_rng(seed)
    hidden, inner = config["hidden_size"], config["intermediate_size"]
    head = config.get("head_dim") or hidden // config["num_attention_heads"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    family = config["model_type"]
    inputs_biased = family == "qwen2" or config["attention_bias"]
    shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (config["vocab_size"], hidden)}
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}"
        linears = {
            "self_attn.q_proj": (queries, hidden, inputs_biased),
            "self_attn.k_proj": (keys, hidden, inputs_biased),
            "self_attn.v_proj": (keys, hidden, inputs_biased),
            "self_attn.o_proj": (hidden, queries, config["attention_bias"]),
            "mlp.gate_proj": (inner, hidden, config["mlp_bias"]),
            "mlp.up_proj": (inner, hidden, config["mlp_bias"]),
            "mlp.down_proj": (hidden, inner, config["mlp_bias"]),
        }
        for name, (rows, columns, bias) in linears.items():
            shapes[f"{prefix}.{name}.weight"] = (rows, columns)
            if bias:
                shapes[f"{prefix}.{name}.bias"] = (rows,)
        if family == "qwen3":
            shapes[f"{prefix}.self_attn.q_norm.weight"] = (head,)
            shapes[f"{prefix}.self_attn.k_norm.weight"] = (head,)
        shapes[f"{prefix}.input_layernorm.weight"] = (hidden,)
        shapes[f"{prefix}.post_attention_layernorm.weight"] = (hidden,)
    shapes["model.norm.weight"] = (hidden,)
    if not config["tie_word_embeddings"]:
        shapes["lm_head.weight"] = (config["vocab_size"], hidden)
    return {
        name: (random.standard_normal(shape) * (0.1 if len(shape) == 2 else 0.3) + ("norm" in name)).astype(np.float32)
        for name, shape in shapes.items()
    }


def tiny_tokenizer(vocab_size: int) -> Tokenizer:
    """A byte-level BPE tokenizer: special tokens, 256 bytes, a few merges. Knows at most ``vocab_size`` ids."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    texts = [*SPECIAL_TOKENS, *letters, *("".join(merge) for merge in MERGES)]
    if len(texts) > vocab_size:
        raise ValueError(f"a vocabulary of {vocab_size} cannot hold the {len(texts)} tokens of the tiny tokenizer")
    tokenizer = Tokenizer(models.BPE({text: token for token, text in enumerate(texts)}, MERGES))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(text, normalized=False, special=True) for text in SPECIAL_TOKENS])
    return tokenizer


def write_tiny_llama(folder: Path, *, seed: int = 0, tokenizer: bool = True, **changes: Any) -> Path:
    """Writes a folder that transformers and ``oga convert`` load.

    Args:
        folder: created when it is not there.
        seed: of the weights.
        tokenizer: also write tokenizer files and a chat template.
        changes: fields of config.json, see ``tiny_config``.

    Returns:
        ``folder``.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = tiny_config(**changes)
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    save_file(tiny_weights(config, seed), folder / "model.safetensors", metadata={"format": "pt"})
    if tokenizer:
        tiny_tokenizer(config["vocab_size"]).save(str(folder / "tokenizer.json"))
        texts = {"bos_token": SPECIAL_TOKENS[1], "eos_token": SPECIAL_TOKENS[0]}
        content = {**texts, "tokenizer_class": "PreTrainedTokenizerFast", "chat_template": CHAT_TEMPLATE}
        (folder / "tokenizer_config.json").write_text(json.dumps(content, indent=2))
    return folder
