"""GGUF files: weights of every block format, rows, metadata and tokenizer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import numpy.typing as npt
import pytest
import torch
from exported import arrays_of, block_shapes, block_weights
from gguf import GGMLQuantizationType as Kind
from paged_oracle import PagedRunner
from reference_hf import load_reference, reference_logits
from tiny_gguf import random_blocks, write_tiny_gguf
from tiny_llama import write_tiny_llama
from tokenizers import Tokenizer

from oga.export import convert
from oga.export.gguf_blocks import carry_over
from oga.export.precision import BlockFormat

EXACT = (Kind.Q8_0, Kind.Q4_0, Kind.Q5_0, Kind.Q6_K)
# Formats with a minimum, and what part of a step of their codes a weight may move at most.
AFFINE = {Kind.Q4_1: 1 / 18, Kind.Q5_1: 1 / 9, Kind.Q4_K: 1 / 18, Kind.Q5_K: 1 / 9}
SUPER_BLOCKS = {"hidden_size": 256, "intermediate_size": 512, "num_attention_heads": 4, "num_hidden_layers": 1}


def quantised(kind: Kind, rows: int, columns: int) -> npt.NDArray[np.uint8]:
    random = np.random.default_rng(3)
    if kind.name.endswith("_K"):
        return random_blocks(kind, rows, columns, random)
    return gguf.quantize((random.standard_normal((rows, columns)) * 0.1).astype(np.float32), kind)


@pytest.mark.parametrize("kind", EXACT, ids=lambda kind: kind.name)
def test_formats_with_a_scale_only_keep_every_weight(kind: Kind) -> None:
    raw = quantised(kind, 24, 768)
    matrix = carry_over(kind.name, raw, 768, BlockFormat(8))
    assert matrix is not None
    assert matrix.zero_points is None
    np.testing.assert_array_equal(matrix.dequantized(), gguf.dequantize(raw, kind))


@pytest.mark.parametrize("kind", AFFINE, ids=lambda kind: kind.name)
def test_formats_with_a_minimum_move_no_weight_by_more_than_a_small_part_of_a_step(kind: Kind) -> None:
    raw = quantised(kind, 24, 768)
    wanted = gguf.dequantize(raw, kind).reshape(24, -1, 32)
    matrix = carry_over(kind.name, raw, 768, BlockFormat(8))
    assert matrix is not None
    error = np.abs(matrix.dequantized().reshape(wanted.shape) - wanted).max(-1)
    ordered = np.sort(wanted, axis=-1)
    gaps = np.diff(ordered, axis=-1)
    step = np.where(gaps > 1e-7, gaps, np.inf).min(-1)  # neighbouring codes occur in nearly every block
    straddles = (wanted.min(-1) <= 0) & (wanted.max(-1) >= 0) & np.isfinite(step)
    assert straddles.mean() > 0.5
    assert (error[straddles] <= step[straddles] * AFFINE[kind] * 1.01).all()
    relative = np.linalg.norm(error) / np.linalg.norm(np.abs(wanted).max(-1))
    assert relative < 0.01


def test_blocks_of_one_sign_and_constant_blocks_survive() -> None:
    blocks = [(1.0, 0.01), (-1.0, 0.01), (0.5, 0.0), (-0.25, 0.0), (0.0, 0.0), (100.0, 0.001)]  # minimum, scale
    raw = np.zeros((1, len(blocks), 20), np.uint8)
    for index, (minimum, scale) in enumerate(blocks):
        raw[0, index, :4] = np.array([scale, minimum], np.float16).view(np.uint8)
        raw[0, index, 4:] = np.arange(16) * 17 % 256
    wanted = gguf.dequantize(raw.reshape(1, -1), Kind.Q4_1).reshape(len(blocks), 32)
    matrix = carry_over("Q4_1", raw.reshape(1, -1), 32 * len(blocks), BlockFormat(8))
    assert matrix is not None
    error = np.abs(matrix.dequantized().reshape(wanted.shape) - wanted).max(-1)
    assert (error <= np.abs(wanted).max(-1) / 250).all()
    assert (error[2:5] <= np.abs(wanted[2:5]).max(-1) * 1e-6).all()


@pytest.mark.parametrize(
    "kind",
    [Kind.F32, Kind.F16, Kind.BF16, Kind.Q8_0, Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1],
    ids=lambda kind: kind.name,
)
def test_fp32_holds_the_decoded_weights_in_the_order_of_the_graph(kind: Kind, tmp_path: Path) -> None:
    source = write_tiny_gguf(tmp_path / "tiny.gguf", kinds={"": kind}, intermediate_size=96)
    convert(source, tmp_path / "model")
    arrays = arrays_of(tmp_path / "model")
    for name, values in load_reference(source).named_parameters():
        np.testing.assert_array_equal(arrays[name], values.detach().numpy(), err_msg=name)


@pytest.mark.parametrize("kind", [Kind.Q4_K, Kind.Q5_K, Kind.Q6_K, Kind.Q3_K, Kind.Q2_K], ids=lambda kind: kind.name)
def test_int8_stands_for_the_decoded_weights_of_super_blocks(kind: Kind, tmp_path: Path) -> None:
    kinds = {"": kind, "token_embd": Kind.Q8_0}
    source = write_tiny_gguf(tmp_path / "tiny.gguf", kinds=kinds, **SUPER_BLOCKS)
    convert(source, tmp_path / "model", precision="int8")
    assert block_shapes(tmp_path / "model")["model.layers.0.mlp.down_proj"][1] == (16 if kind is Kind.Q6_K else 32)
    weights = block_weights(tmp_path / "model")
    for name, values in load_reference(source).named_parameters():
        if values.ndim == 2:
            wanted = values.detach().numpy()
            assert np.linalg.norm(weights[name] - wanted) <= np.linalg.norm(wanted) * 0.01, name


@pytest.mark.parametrize("precision", ["fp32", "int8", "int4"])
def test_logits_are_those_of_transformers_on_the_decoded_weights(precision: Any, tmp_path: Path) -> None:
    kinds = {"": Kind.Q4_0, "token_embd": Kind.Q8_0, "ffn_down": Kind.Q4_0 if precision == "int4" else Kind.Q5_0}
    source = write_tiny_gguf(tmp_path / "tiny.gguf", kinds=kinds)
    convert(source, tmp_path / "model", precision=precision, cache="fp32")
    tokens = np.random.default_rng(0).integers(0, 512, 20).tolist()
    wanted = reference_logits(load_reference(source), tokens)
    runner = PagedRunner(tmp_path / "model")
    found = np.concatenate([runner.step({0: tokens[:11]}), runner.step({0: tokens[11:]})])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-4)


def test_a_gguf_file_and_a_hugging_face_folder_of_one_model_export_the_same_weights(tmp_path: Path) -> None:
    changes = {"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": False, "head_dim": 24}
    convert(write_tiny_llama(tmp_path / "source", **changes), tmp_path / "folder")
    folder = arrays_of(tmp_path / "folder")
    interleaved = write_tiny_gguf(tmp_path / "plain.gguf", **changes)
    convert(interleaved, tmp_path / "file")
    file = arrays_of(tmp_path / "file")
    assert file.keys() == folder.keys()
    for name, values in folder.items():
        if "q_proj" in name or "k_proj" in name:  # the builder does not interleave rows, so they come out reordered
            pairs = file[name].reshape(-1, 2, 12, *values.shape[1:]).swapaxes(1, 2).reshape(values.shape)
            np.testing.assert_array_equal(pairs, values, err_msg=name)
        else:
            np.testing.assert_array_equal(file[name], values, err_msg=name)


@pytest.mark.parametrize("family", ["qwen2", "qwen3"])
def test_a_gguf_file_of_a_qwen_model_computes_what_its_hugging_face_folder_does(family: str, tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "source", model_type=family, head_dim=16)
    convert(write_tiny_gguf(tmp_path / "tiny.gguf", model_type=family, head_dim=16), tmp_path / "model")
    tokens = np.random.default_rng(0).integers(0, 512, 20).tolist()
    found = PagedRunner(tmp_path / "model").step({0: tokens})
    np.testing.assert_allclose(found, reference_logits(load_reference(source), tokens), rtol=0, atol=1e-4)
    assert json.loads((tmp_path / "model" / "genai_config.json").read_text())["model"]["type"] == family
    composed = Tokenizer.from_file(str(tmp_path / "model" / "tokenizer.json"))
    assert composed.encode("u\u0308").ids == composed.encode("\u00fc").ids


@pytest.mark.parametrize("kind", [Kind.Q4_0, Kind.Q4_1, Kind.Q4_K], ids=lambda kind: kind.name)
def test_four_bit_blocks_stay_what_they_are_in_int4(kind: Kind) -> None:
    raw = quantised(kind, 24, 768)
    matrix = carry_over(kind.name, raw, 768, BlockFormat(4))
    assert matrix is not None
    assert (matrix.bits, matrix.block_size) == (4, 32)
    wanted = gguf.dequantize(raw, kind)
    # Q4_0 to the last bit; a minimum becomes a float zero point, whose rounding is that of float32.
    limit = 0 if kind is Kind.Q4_0 else np.abs(wanted).max() * 1e-6
    np.testing.assert_allclose(matrix.dequantized(), wanted, rtol=0, atol=limit)


def test_blocks_of_equal_weights_stay_exact_in_int4() -> None:
    blocks = [(1.0, 0.01), (0.5, 0.0), (-0.25, 0.0), (0.0, 0.0)]  # minimum, scale
    raw = np.zeros((1, len(blocks), 20), np.uint8)
    for index, (minimum, scale) in enumerate(blocks):
        raw[0, index, :4] = np.array([scale, minimum], np.float16).view(np.uint8)
        raw[0, index, 4:] = np.arange(16) * 17 % 256
    matrix = carry_over("Q4_1", raw.reshape(1, -1), 32 * len(blocks), BlockFormat(4))
    assert matrix is not None
    np.testing.assert_allclose(matrix.dequantized(), gguf.dequantize(raw.reshape(1, -1), Kind.Q4_1), atol=2e-7)


@pytest.mark.parametrize(
    ("kind", "wanted"),
    [
        (Kind.Q8_0, BlockFormat(4)),
        (Kind.Q5_1, BlockFormat(4)),
        (Kind.Q4_1, BlockFormat(4, symmetric=True)),
        (Kind.Q4_0, BlockFormat(4, block_size=64)),
        (Kind.Q4_0, BlockFormat(8, block_size=16)),
    ],
)
def test_blocks_that_do_not_fit_what_is_wanted_are_not_carried_over(kind: Kind, wanted: BlockFormat) -> None:
    assert carry_over(kind.name, quantised(kind, 4, 256), 256, wanted) is None


def test_int4_keeps_a_head_that_the_file_stores_in_more_bits_unless_told_otherwise(tmp_path: Path) -> None:
    source = write_tiny_gguf(
        tmp_path / "tiny.gguf", kinds={"": Kind.Q4_1, "token_embd": Kind.Q8_0, "ffn_up": Kind.Q8_0}
    )
    convert(source, tmp_path / "kept", precision="int4")
    shapes = block_shapes(tmp_path / "kept")
    assert shapes["model.embed_tokens"] == (8, 32, False)
    assert shapes["model.layers.0.mlp.up_proj"] == (4, 32, True)  # rounded to what was asked for
    wanted = dict(load_reference(source).named_parameters())["model.embed_tokens.weight"].detach().numpy()
    np.testing.assert_array_equal(block_weights(tmp_path / "kept")["model.embed_tokens.weight"], wanted)
    convert(source, tmp_path / "small", precision="int4", head_precision="int4")
    assert block_shapes(tmp_path / "small")["model.embed_tokens"] == (4, 32, True)


@pytest.mark.parametrize(("kind", "columns"), [(Kind.Q4_1, 64), (Kind.Q4_1, 96), (Kind.F32, 96)])
def test_an_int4_embedding_with_any_zero_points_computes_what_its_blocks_say(
    kind: Kind, columns: int, tmp_path: Path
) -> None:
    source = write_tiny_gguf(tmp_path / "tiny.gguf", kinds={"": kind}, hidden_size=columns)
    convert(source, tmp_path / "model", precision="int4", cache="fp32")
    reference = load_reference(source)
    parameters = dict(reference.named_parameters())
    with torch.no_grad():
        for name, values in block_weights(tmp_path / "model").items():
            parameters[name].copy_(torch.from_numpy(values))
    tokens = np.random.default_rng(0).integers(0, 512, 20).tolist()
    found = PagedRunner(tmp_path / "model").step({0: tokens})
    np.testing.assert_allclose(found, reference_logits(reference, tokens), rtol=0, atol=1e-4)


def test_frequency_divisors_of_the_file_reach_the_rotary_tables(tmp_path: Path) -> None:
    divisors = np.linspace(1, 8, 8).astype(np.float32)
    plain = write_tiny_gguf(tmp_path / "plain.gguf")
    scaled = write_tiny_gguf(tmp_path / "scaled.gguf", extra={"rope_freqs.weight": divisors})
    convert(plain, tmp_path / "plain")
    convert(scaled, tmp_path / "scaled")
    angles = np.arange(256)[:, None] / 10000 ** (np.arange(0, 16, 2) / 16)
    np.testing.assert_allclose(arrays_of(tmp_path / "plain")["sin_cache"], np.sin(angles), atol=1e-4)
    np.testing.assert_allclose(arrays_of(tmp_path / "scaled")["sin_cache"], np.sin(angles / divisors), atol=1e-4)


def test_linear_scaling_divides_the_positions(tmp_path: Path) -> None:
    metadata = {"llama.rope.scaling.type": "linear", "llama.rope.scaling.factor": 4.0}
    convert(write_tiny_gguf(tmp_path / "tiny.gguf", metadata=metadata), tmp_path / "model")
    angles = np.arange(256)[:, None] / 4 / 10000 ** (np.arange(0, 16, 2) / 16)
    np.testing.assert_allclose(arrays_of(tmp_path / "model")["cos_cache"], np.cos(angles), atol=1e-4)


def test_metadata_becomes_the_manifest_and_the_text_files(tmp_path: Path) -> None:
    metadata = {"tokenizer.ggml.eot_token_id": 7, "tokenizer.ggml.padding_token_id": 9}
    source = write_tiny_gguf(tmp_path / "tiny.gguf", metadata=metadata)
    report = convert(source, tmp_path / "model")
    model = json.loads((tmp_path / "model" / "genai_config.json").read_text())["model"]
    # The file's eos, its end of turn, and the marker that closes a message of its template.
    assert (model["bos_token_id"], model["eos_token_id"], model["pad_token_id"]) == (1, [0, 7, 2], 9)
    generation = json.loads((tmp_path / "model" / "generation_config.json").read_text())
    assert generation["eos_token_id"] == [0, 7, 2]
    settings = json.loads((tmp_path / "model" / "tokenizer_config.json").read_text())
    assert settings["eos_token"] == "<|endoftext|>"
    assert "<|im_start|>" in settings["chat_template"]
    assert report.notes == ()


def test_a_rebuilt_tokenizer_encodes_as_the_one_that_was_written(tmp_path: Path) -> None:
    convert(write_tiny_gguf(tmp_path / "tiny.gguf"), tmp_path / "model")
    convert(write_tiny_llama(tmp_path / "source"), tmp_path / "folder")
    rebuilt, original = (Tokenizer.from_file(str(tmp_path / name / "tokenizer.json")) for name in ("model", "folder"))
    for text in ("then the other inner theatre", "<|im_start|>user\nthe<|im_end|>", "ünïcode 🙂", "\t\n  x"):
        assert rebuilt.encode(text).ids == original.encode(text).ids
        assert rebuilt.decode(rebuilt.encode(text).ids, skip_special_tokens=False) == text


@pytest.mark.parametrize(
    ("pre", "text", "words"),
    [
        ("gpt-2", "it's 1234 x", ["it", "'s", "Ġ1234", "Ġx"]),
        ("smollm", "it's 1234 x", ["it", "'s", "Ġ", "1", "2", "3", "4", "Ġx"]),
        ("qwen2", "IT'S 12\n\nx", ["IT", "'S", "Ġ", "1", "2", "ĊĊ", "x"]),
        ("llama-bpe", "IT'S 12345\n\nx", ["IT", "'S", "Ġ", "123", "45", "ĊĊ", "x"]),
    ],
)
def test_each_format_cuts_text_into_its_own_words(pre: str, text: str, words: list[str], tmp_path: Path) -> None:
    source = write_tiny_gguf(tmp_path / "tiny.gguf", metadata={"tokenizer.ggml.pre": pre})
    convert(source, tmp_path / "model")
    tokenizer = Tokenizer.from_file(str(tmp_path / "model" / "tokenizer.json"))
    assert [word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)] == words


def test_a_tokenizer_that_starts_with_bos_does(tmp_path: Path) -> None:
    source = write_tiny_gguf(tmp_path / "tiny.gguf", metadata={"tokenizer.ggml.add_bos_token": True})
    convert(source, tmp_path / "model")
    tokenizer = Tokenizer.from_file(str(tmp_path / "model" / "tokenizer.json"))
    assert tokenizer.encode("the").ids[0] == 1
    assert tokenizer.encode("the", add_special_tokens=False).ids[0] != 1
