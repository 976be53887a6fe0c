"""An exported graph computes what transformers computes: ragged, chunked, over a cache full of NaN."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from exported import arrays_of, block_shapes, block_weights
from onnx import numpy_helper
from paged_oracle import PagedRunner
from reference_hf import load_reference, reference_logits
from tiny_llama import write_tiny_llama
from transformers import LlamaConfig, LlamaForCausalLM

from oga.export import convert

TOLERANCE = 1e-4
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
QWEN = {"rope_theta": 1000000.0, "rms_norm_eps": 1e-6}
QWEN_UNTIED = "qwen2, untied, a window from the second layer on"
CASES: dict[str, dict[str, Any]] = {
    "tied": {},
    "untied, a key head per query head": {"tie_word_embeddings": False, "num_key_value_heads": 4},
    "biases": {"attention_bias": True, "mlp_bias": True},
    "wide heads, one key head": {"head_dim": 32, "num_key_value_heads": 1},
    "llama3 rope": {"rope_scaling": LLAMA3},
    "linear rope": {"rope_scaling": {"type": "linear", "factor": 4.0}},
    "rope parameters": {"rope_parameters": {**LLAMA3, "rope_theta": 500.0}},
    "widths that no block divides": {"hidden_size": 40, "num_attention_heads": 5, "num_key_value_heads": 1},
    "one layer": {"num_hidden_layers": 1},
    "mistral with a window": {"model_type": "mistral", "sliding_window": 8},
    "mistral without a window": {"model_type": "mistral", "sliding_window": None},
    "qwen2": {**QWEN, "model_type": "qwen2"},
    QWEN_UNTIED: {
        **QWEN,
        "model_type": "qwen2",
        "tie_word_embeddings": False,
        "use_sliding_window": True,
        "sliding_window": 8,
        "max_window_layers": 1,
    },
    "qwen2, windows that the config names": {
        **QWEN,
        "model_type": "qwen2",
        "use_sliding_window": True,
        "sliding_window": 8,
        "layer_types": ["sliding_attention", "full_attention"],
    },
    "qwen2, a window that is switched off": {
        **QWEN,
        "model_type": "qwen2",
        "sliding_window": 2,
        "max_window_layers": 0,
    },
    "qwen3": {**QWEN, "model_type": "qwen3", "head_dim": 32},
    "qwen3 with biases": {**QWEN, "model_type": "qwen3", "head_dim": 24, "attention_bias": True},
}
# Tokens that each row takes in each step: prefill in chunks beside decoding, rows that join late and skip steps.
SCHEDULE = ({0: 7, 2: 4}, {0: 1, 1: 3, 2: 9}, {2: 1, 0: 3, 1: 1}, {1: 1, 0: 2, 2: 7})
LENGTHS = {0: 13, 1: 5, 2: 21}


def sequences(vocab_size: int) -> dict[int, list[int]]:
    random = np.random.default_rng(1)
    return {row: random.integers(0, vocab_size, length).tolist() for row, length in LENGTHS.items()}


def largest_difference(folder: Path, reference: Any) -> float:
    """The largest difference of any logit of any token between the schedule and one pass per sequence."""
    texts = sequences(reference.config.vocab_size)
    wanted = {row: reference_logits(reference, tokens) for row, tokens in texts.items()}
    runner, done, largest = PagedRunner(folder), dict.fromkeys(texts, 0), 0.0
    for taken in SCHEDULE:
        logits = runner.step({row: texts[row][done[row] : done[row] + count] for row, count in taken.items()})
        parts = np.split(logits, np.cumsum(list(taken.values()))[:-1])
        for (row, count), part in zip(taken.items(), parts, strict=True):
            largest = max(largest, np.abs(part - wanted[row][done[row] : done[row] + count]).max())
            done[row] += count
    assert done == LENGTHS
    return float(largest)


@pytest.mark.parametrize("case", CASES)
def test_fp32_computes_the_logits_of_transformers(case: str, tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "source", **CASES[case])
    convert(source, tmp_path / "model")
    assert largest_difference(tmp_path / "model", load_reference(source)) < TOLERANCE


# How each precision may be asked for, and how far a weight may move, in parts of its block's largest magnitude.
BLOCKS: dict[str, tuple[dict[str, Any], float]] = {
    "int8": ({"precision": "int8"}, 1 / 127 / 2),
    "int8 in blocks of 16": ({"precision": "int8", "block_size": 16}, 1 / 127 / 2),
    "int4": ({"precision": "int4"}, 1 / 7),
    "int4, symmetric": ({"precision": "int4", "symmetric": True}, 1 / 7),
    "int4 in blocks of 128": ({"precision": "int4", "block_size": 128}, 1 / 6),
    "int4 with an int8 head": ({"precision": "int4", "head_precision": "int8"}, 1 / 7),
    "fp32 with an int4 head": ({"precision": "fp32", "head_precision": "int4"}, 1 / 7),
    "int4 with an fp32 head": ({"precision": "int4", "head_precision": "fp32"}, 1 / 7),
}
HEAD = {"model.embed_tokens.weight", "lm_head.weight"}


@pytest.mark.parametrize("blocks", BLOCKS)
@pytest.mark.parametrize("case", ["tied", "biases", "widths that no block divides", "qwen2", QWEN_UNTIED, "qwen3"])
def test_blocks_compute_the_logits_of_transformers_on_the_rounded_weights(
    case: str, blocks: str, tmp_path: Path
) -> None:
    options, allowed = BLOCKS[blocks]
    source = write_tiny_llama(tmp_path / "source", **CASES[case])
    convert(source, tmp_path / "model", **options, cache="fp32")
    reference = load_reference(source)
    parameters = dict(reference.named_parameters())
    weights = block_weights(tmp_path / "model")
    matrices = {name for name, values in parameters.items() if values.ndim == 2}
    if options["precision"] == "fp32":
        matrices &= HEAD
    if options.get("head_precision") == "fp32":
        matrices -= HEAD
    assert set(weights) == matrices
    with torch.no_grad():
        for name, values in weights.items():
            original = parameters[name].numpy()
            rounded = np.ascontiguousarray(values[:, : original.shape[1]])
            assert np.abs(rounded - original).max() <= np.abs(original).max() * allowed * 1.001
            parameters[name].copy_(torch.from_numpy(rounded))
    assert largest_difference(tmp_path / "model", reference) < TOLERANCE


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("case", ["tied", "biases", QWEN_UNTIED])
def test_sixteen_bits_compute_the_logits_of_transformers_on_the_rounded_weights(
    case: str, precision: Any, tmp_path: Path
) -> None:
    source = write_tiny_llama(tmp_path / "source", **CASES[case])
    convert(source, tmp_path / "model", precision=precision, cache="fp32")
    reference = load_reference(source)
    halves = {"bf16": torch.bfloat16, "fp16": torch.float16}[precision]
    with torch.no_grad():
        for values in reference.parameters():
            if values.ndim == 2:
                values.copy_(values.to(halves))
    assert largest_difference(tmp_path / "model", reference) < TOLERANCE


def test_sixteen_bits_halve_the_folder_and_keep_what_the_source_has(tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "source", tokenizer=False, vocab_size=4096)
    fp32 = convert(source, tmp_path / "fp32")
    for precision in ("bf16", "fp16"):
        report = convert(source, tmp_path / precision, precision=precision, force=True)
        assert report.precision == precision
        assert report.bytes < 0.6 * fp32.bytes
    # bfloat16 weights of a source are not rounded again.
    stored = LlamaForCausalLM.from_pretrained(source, dtype=torch.bfloat16)
    stored.save_pretrained(tmp_path / "halves")
    convert(tmp_path / "halves", tmp_path / "model", precision="bf16")
    name = "model.layers.0.mlp.up_proj.weight"
    kept = arrays_of(tmp_path / "model")[name].astype(np.float32)
    assert np.array_equal(kept, stored.get_parameter(name).float().detach().numpy())


def test_what_was_asked_for_is_what_is_stored(tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "source", tie_word_embeddings=False)
    asked: dict[str, tuple[dict[str, Any], tuple[int, int, bool], tuple[int, int, bool]]] = {
        "int8": ({"precision": "int8"}, (8, 32, False), (8, 32, False)),
        "int4": ({"precision": "int4"}, (4, 32, True), (4, 32, True)),
        "symmetric": ({"precision": "int4", "symmetric": True, "block_size": 16}, (4, 16, False), (4, 16, False)),
        "head": ({"precision": "int4", "head_precision": "int8", "block_size": 64}, (4, 64, True), (8, 64, False)),
    }
    for name, (options, matrix, head) in asked.items():
        report = convert(source, tmp_path / name, **options)
        shapes = block_shapes(tmp_path / name)
        assert shapes.pop("lm_head") == head
        assert set(shapes.values()) == {matrix}
        assert len(shapes) == 2 * len(("qkv", "o", "gate", "up", "down"))
        assert report.precision == options["precision"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_folders_that_transformers_saves_in_shards_convert(dtype: torch.dtype, tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=300,
        hidden_size=64,
        intermediate_size=96,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=128,
    )
    model = LlamaForCausalLM(config)
    model.to(dtype).save_pretrained(tmp_path / "source", max_shard_size="100KB")
    assert len(list((tmp_path / "source").glob("*.safetensors"))) > 1
    convert(tmp_path / "source", tmp_path / "model")
    assert largest_difference(tmp_path / "model", load_reference(tmp_path / "source")) < TOLERANCE


def test_only_the_wanted_logits_are_computed_in_the_order_they_were_asked_for(tmp_path: Path) -> None:
    convert(write_tiny_llama(tmp_path / "source"), tmp_path / "model")
    texts = sequences(512)
    step = {0: texts[0], 1: texts[1]}
    everything = PagedRunner(tmp_path / "model").step(step)
    some = PagedRunner(tmp_path / "model").step(step, logits_indices=[17, 3])
    np.testing.assert_allclose(some, everything[[17, 3]], rtol=0, atol=1e-6)


def test_the_rotary_tables_end_with_the_context_that_was_asked_for(tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "source")
    report = convert(source, tmp_path / "model", context_length=64)
    graph = onnx.load(tmp_path / "model" / "model.onnx").graph
    tables = {tensor.name: list(tensor.dims) for tensor in graph.initializer if tensor.name.endswith("_cache")}
    assert tables == {"cos_cache": [64, 8], "sin_cache": [64, 8]}
    manifest = json.loads((tmp_path / "model" / "genai_config.json").read_text())
    assert report.context_length == manifest["model"]["context_length"] == manifest["search"]["max_length"] == 64


def test_rotary_tables_are_those_of_the_reference_at_the_end_of_a_long_context(tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "source", max_position_embeddings=8192, rope_theta=100000.0, head_dim=64)
    convert(source, tmp_path / "model")
    graph = onnx.load(tmp_path / "model" / "model.onnx").graph
    found = next(numpy_helper.to_array(tensor) for tensor in graph.initializer if tensor.name == "cos_cache")
    wanted, _ = load_reference(source).model.rotary_emb(torch.zeros(1), torch.arange(8192)[None])
    np.testing.assert_allclose(found, wanted[0, :, :32].numpy(), rtol=0, atol=2e-7)


def test_the_graph_is_valid_onnx_and_says_every_shape(tmp_path: Path) -> None:
    convert(write_tiny_llama(tmp_path / "source"), tmp_path / "model", precision="int8")
    onnx.checker.check_model(tmp_path / "model" / "model.onnx")
    graph = onnx.load(tmp_path / "model" / "model.onnx", load_external_data=False).graph
    described = {value.name for value in [*graph.value_info, *graph.output]}
    assert described >= {name for node in graph.node for name in node.output if name}
    dims = {
        value.name: [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in [*graph.input, *graph.output]
    }
    assert dims["input_ids"] == ["num_tokens"]
    assert dims["logits_indices"] == ["num_logits"]
    assert dims["logits"] == ["num_logits", 512]
    assert dims["block_table"] == ["num_rows", "num_columns"]
    assert dims["attention_metadata"] == [3]
    cache = ["num_blocks", "block_size", 2, 16]
    assert dims["past_key_values.1.value"] == dims["present.1.value"] == cache


@pytest.mark.parametrize("precision", ["fp32", "int8", "int4"])
def test_a_tied_embedding_is_stored_once_for_the_lookup_and_the_head(precision: Any, tmp_path: Path) -> None:
    convert(write_tiny_llama(tmp_path / "tied"), tmp_path / "one", precision=precision)
    untied = write_tiny_llama(tmp_path / "untied", tie_word_embeddings=False)
    convert(untied, tmp_path / "two", precision=precision)
    lookup, head = table_readers(tmp_path / "one")
    assert lookup == head
    lookup, head = table_readers(tmp_path / "two")
    assert lookup.isdisjoint(head)
    weights = {"fp32": 512 * 64 * 4, "int8": 512 * 64, "int4": 512 * 64 // 2}[precision]
    assert weights in {length for _, length in head}


def table_readers(folder: Path) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    """Offsets and lengths in the data file of what the lookup reads, and of what the LM head reads."""
    graph = onnx.load(folder / "model.onnx", load_external_data=False).graph
    places = {}
    for tensor in graph.initializer:
        found = {entry.key: entry.value for entry in tensor.external_data}
        places[tensor.name] = (int(found.get("offset", -1)), int(found.get("length", 0)))
    head = next(node for node in graph.node if "logits" in node.output)
    lookup = next(node for node in graph.node if "input_ids" in node.input)
    return tuple({places[name] for name in node.input if name in places} for node in (lookup, head))  # type: ignore[return-value]
