"""Transformers models in float32, the reference that exported models are compared with.

A GGUF file is read here independently of the converter: gguf's own dequantisation, and its row order undone by hand.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

# Models this small gain little from more threads, which on a busy machine mostly wait for one another.
torch.set_num_threads(1)

_PARTS = {
    "attn_norm": "input_layernorm",
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_norm": "post_attention_layernorm",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}


def load_reference(source: Path) -> Any:
    """A LlamaForCausalLM (or another causal model of a folder) in float32, in evaluation mode.

    Args:
        source: a Hugging Face folder, or a GGUF file of the llama architecture.
    """
    if source.is_dir():
        return AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32).eval()
    return _from_gguf(source).eval()


def reference_logits(model: Any, tokens: Sequence[int]) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Logits [tokens, vocabulary] of one sequence in one pass."""
    with torch.no_grad():
        logits = model(torch.tensor([list(tokens)])).logits[0]
    result: np.ndarray[Any, np.dtype[np.float32]] = logits.numpy()
    return result


def reference_greedy(model: Any, prompt: Sequence[int], max_new_tokens: int, eos: Sequence[int] = ()) -> list[int]:
    """Greedy continuation of a prompt, without the end token."""
    fed = torch.tensor([list(prompt)])
    with torch.no_grad():
        output = model.generate(
            fed,
            attention_mask=torch.ones_like(fed),
            max_new_tokens=max_new_tokens,
            do_sample=False,
            eos_token_id=list(eos) or None,
            pad_token_id=0,
        )
    answer: list[int] = output[0, len(prompt) :].tolist()
    return [token for token in answer if token not in eos]


def _from_gguf(path: Path) -> LlamaForCausalLM:
    reader = gguf.GGUFReader(path)

    def get(name: str, default: Any = None) -> Any:
        found = reader.get_field(name)
        return default if found is None else found.contents()

    tensors = {
        tensor.name: np.array(gguf.dequantize(tensor.data, tensor.tensor_type), np.float32) for tensor in reader.tensors
    }
    heads = get("llama.attention.head_count")
    kv_heads = get("llama.attention.head_count_kv", heads)
    config = LlamaConfig(
        vocab_size=len(tensors["token_embd.weight"]),
        hidden_size=get("llama.embedding_length"),
        intermediate_size=get("llama.feed_forward_length"),
        num_hidden_layers=get("llama.block_count"),
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        max_position_embeddings=get("llama.context_length"),
        rms_norm_eps=get("llama.attention.layer_norm_rms_epsilon"),
        rope_parameters={"rope_type": "default", "rope_theta": get("llama.rope.freq_base", 10000.0)},
        tie_word_embeddings="output.weight" not in tensors,
        bos_token_id=get("tokenizer.ggml.bos_token_id"),
        eos_token_id=get("tokenizer.ggml.eos_token_id"),
    )
    model = LlamaForCausalLM(config).to(torch.float32)
    state = {_name(name): torch.from_numpy(_rows(name, values, heads, kv_heads)) for name, values in tensors.items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    if unexpected or set(missing) - {"lm_head.weight"}:
        raise ValueError(f"{path} does not hold a plain llama: missing {missing}, unexpected {unexpected}")
    model.tie_weights()
    return model


def _name(name: str) -> str:
    whole = {
        "token_embd.weight": "model.embed_tokens.weight",
        "output_norm.weight": "model.norm.weight",
        "output.weight": "lm_head.weight",
    }
    if name in whole:
        return whole[name]
    _, layer, part, kind = name.split(".")
    return f"model.layers.{layer}.{_PARTS[part]}.{kind}"


def _rows(name: str, values: np.ndarray[Any, Any], heads: int, kv_heads: int) -> np.ndarray[Any, Any]:
    """Query and key rows lie in rotated pairs in the file: gathers the first halves, then the second halves."""
    count = heads if ".attn_q." in name else kv_heads if ".attn_k." in name else 0
    if not count:
        return values
    size = len(values) // count
    order = [head * size + pair * 2 + half for head in range(count) for half in (0, 1) for pair in range(size // 2)]
    return values[order]
