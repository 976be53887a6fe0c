"""Writes genai_config.json, the manifest of a model folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from oga.export.spec import DecoderSpec

_SEARCH_DEFAULTS: dict[str, Any] = {
    "do_sample": False,
    "min_length": 0,
    "num_beams": 1,
    "repetition_penalty": 1.0,
    "temperature": 1.0,
    "top_k": 50,
    "top_p": 1.0,
}
_INPUTS = {
    "input_ids": "input_ids",
    "cumulative_sequence_lengths": "cumulative_sequence_lengths",
    "past_sequence_lengths": "past_sequence_lengths",
    "block_table": "block_table",
    "attention_metadata": "attention_metadata",
    "logits_indices": "logits_indices",
    "past_key_names": "past_key_values.%d.key",
    "past_value_names": "past_key_values.%d.value",
}
_OUTPUTS = {
    "logits": "logits",
    "present_key_names": "present.%d.key",
    "present_value_names": "present.%d.value",
}


def write_genai_config(folder: Path, spec: DecoderSpec, graph_file: str, context_length: int) -> None:
    """Writes the manifest of a graph that ``graph.build_decoder`` built.

    Args:
        folder: the model folder.
        spec: the decoder.
        graph_file: name of the ONNX file in the folder.
        context_length: tokens that a sequence may reach.
    """
    tokens = spec.tokens
    # Configs that have no padding token may name one beyond the vocabulary, or -1.
    padding = [token for token in (tokens.pad, *tokens.eos) if token is not None and 0 <= token < spec.vocab_size]
    special = {
        "bos_token_id": tokens.bos,
        "eos_token_id": list(tokens.eos) or None,
        "pad_token_id": padding[0] if padding else None,
    }
    config = {
        "model": {
            "type": spec.family,
            "vocab_size": spec.vocab_size,
            "context_length": context_length,
            **{name: value for name, value in special.items() if value is not None},
            "decoder": {
                "filename": graph_file,
                "head_size": spec.head_size,
                "hidden_size": spec.hidden_size,
                "num_attention_heads": spec.num_heads,
                "num_key_value_heads": spec.num_kv_heads,
                "num_hidden_layers": spec.num_layers,
                "session_options": {"provider_options": []},
                "inputs": _INPUTS,
                "outputs": _OUTPUTS,
            },
        },
        "search": {**_SEARCH_DEFAULTS, **tokens.search, "max_length": context_length},
        "engine": {"dynamic_batching": {}},
    }
    (folder / "genai_config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
