"""What cannot be converted is refused by name, and nothing is left behind."""

from __future__ import annotations

import json
import resource
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType as Kind
from safetensors.numpy import load_file, save_file
from tiny_gguf import write_tiny_gguf
from tiny_llama import tiny_config, write_tiny_llama

from oga.export import ConversionError, MissingExtraError, convert


def change_config(folder: Path, **changes: Any) -> Path:
    content = {**json.loads((folder / "config.json").read_text()), **changes}
    (folder / "config.json").write_text(json.dumps({name: value for name, value in content.items() if value != "-"}))
    return folder


def change_weights(folder: Path, change: Callable[[dict[str, Any]], object]) -> Path:
    weights = dict(load_file(folder / "model.safetensors"))
    change(weights)
    save_file(weights, folder / "model.safetensors")
    return folder


def cut(path: Path, keep: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep)])


def rewrite_header(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    content = path.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + length :])


Damage = Callable[[Path], object]
FOLDERS: dict[str, tuple[Damage, tuple[str, ...]]] = {
    "no config": (lambda f: (f / "config.json").unlink(), ("has no config.json", "GGUF file")),
    "a config that is no JSON": (lambda f: (f / "config.json").write_text("{,"), ("config.json", "no JSON")),
    "a config that is a list": (lambda f: (f / "config.json").write_text("[]"), ("config.json", "object")),
    "an unknown family": (lambda f: change_config(f, model_type="mamba"), ("mamba", "llama, mistral, qwen2, qwen3")),
    "no family": (lambda f: change_config(f, model_type="-"), ("config.json has no model_type",)),
    "a missing size": (lambda f: change_config(f, hidden_size="-"), ("config.json has no hidden_size",)),
    "a size that is text": (lambda f: change_config(f, vocab_size="many"), ("vocab_size", '"many"', "integer")),
    "a negative size": (lambda f: change_config(f, num_hidden_layers=-1), ("num_layers is -1",)),
    "heads that do not divide": (lambda f: change_config(f, num_key_value_heads=3), ("4 attention heads", "3 key")),
    "a head size beyond the kernel": (lambda f: change_config(f, head_dim=12), ("head size 12", "multiple of 8")),
    "another activation": (lambda f: change_config(f, hidden_act="gelu"), ("hidden_act", '"gelu"', '"silu"')),
    "an unknown rope type": (
        lambda f: change_config(f, rope_scaling={"rope_type": "yarn", "factor": 2.0}),
        ("rope_scaling", '"yarn"', "default, linear, llama3"),
    ),
    "a rope without its factor": (
        lambda f: change_config(f, rope_scaling={"rope_type": "linear"}),
        ("rope_scaling has no factor",),
    ),
    "a rope factor of zero": (
        lambda f: change_config(f, rope_scaling={"rope_type": "linear", "factor": 0}),
        ("rope factor 0.0", "positive"),
    ),
    "partial rotary": (lambda f: change_config(f, partial_rotary_factor=0.5), ("partial_rotary_factor", "0.5")),
    "weights that are quantised already": (
        lambda f: change_config(f, quantization_config={"quant_method": "gptq"}),
        ("quantised (gptq)", "original"),
    ),
    "layers that the config does not name": (
        lambda f: change_config(f, model_type="qwen2", use_sliding_window=True, layer_types=["full_attention"]),
        ("layer_types", "2 entries", "sliding_attention"),
    ),
    "a window of nothing": (
        lambda f: change_config(f, model_type="mistral", sliding_window=0),
        ("sliding window 0 must be positive",),
    ),
    "an end token beyond the vocabulary": (
        lambda f: change_config(f, eos_token_id=9999),
        ("eos token id 9999", "vocabulary of 512"),
    ),
    "no weights": (lambda f: (f / "model.safetensors").unlink(), ("no *.safetensors", "safe_serialization")),
    "an index without its file": (
        lambda f: (f / "model.safetensors.index.json").write_text('{"weight_map": {"x": "model-2.safetensors"}}'),
        ("lacks model-2.safetensors", "fetch it again"),
    ),
    "a missing tensor": (
        lambda f: change_weights(f, lambda w: w.pop("model.layers.1.mlp.up_proj.weight")),
        ("no tensor model.layers.1.mlp.up_proj.weight",),
    ),
    "a shape of another model": (
        lambda f: change_config(f, intermediate_size=128),
        ("model.layers.0.mlp.gate_proj.weight", "[96, 64]", "[128, 64]"),
    ),
    "a tensor of another architecture": (
        lambda f: change_weights(f, lambda w: w.update({"model.layers.0.q_norm.weight": np.ones(4, np.float32)})),
        ("model.layers.0.q_norm.weight", "another architecture"),
    ),
    "biases that the config does not mention": (
        lambda f: change_weights(f, lambda w: w.update({"model.layers.0.mlp.up_proj.bias": np.ones(96, np.float32)})),
        ("model.layers.0.mlp.up_proj.bias", "another architecture"),
    ),
    "a truncated weight file": (lambda f: cut(f / "model.safetensors", 0.6), ("model.safetensors", "truncated")),
    "a weight file cut in its header": (lambda f: cut(f / "model.safetensors", 0.001), ("truncated", "header")),
    "an empty weight file": (lambda f: (f / "model.safetensors").write_bytes(b""), ("model.safetensors",)),
    "a weight file that is something else": (
        lambda f: (f / "model.safetensors").write_bytes(struct.pack("<Q", 4) + b"oops" * 9),
        ("model.safetensors", "broken header"),
    ),
    "a type that cannot be widened": (
        lambda f: rewrite_header(
            f / "model.safetensors", lambda h: h["model.norm.weight"].update({"dtype": "F8_E4M3"})
        ),
        ("model.norm.weight", "F8_E4M3", "F32, F16, BF16"),
    ),
    "offsets that do not fit a shape": (
        lambda f: rewrite_header(f / "model.safetensors", lambda h: h["model.norm.weight"].update({"shape": [63]})),
        ("model.norm.weight", "[63]", "252"),
    ),
}


@pytest.mark.parametrize("case", FOLDERS)
def test_a_folder_that_cannot_be_converted_is_refused_by_name(case: str, tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "source")
    damage, words = FOLDERS[case]
    damage(source)
    with pytest.raises(ConversionError) as caught:
        convert(source, tmp_path / "model")
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert str(source) in str(caught.value)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["source"]


FILES: dict[str, tuple[dict[str, Any], tuple[str, ...]]] = {
    "another architecture": (
        {"metadata": {"general.architecture": "gemma"}},
        ('"gemma"', "known: llama, qwen2, qwen3"),
    ),
    "experts": ({"metadata": {"llama.expert_count": 8}}, ("expert_count is 8", "must be 0")),
    "partial rotary": ({"metadata": {"llama.rope.dimension_count": 8}}, ("rope.dimension_count is 8", "16")),
    "an unknown rope": ({"metadata": {"llama.rope.scaling.type": "yarn"}}, ('"yarn"', "none, linear")),
    "a part of a split file": ({"metadata": {"split.count": 3}}, ("one of 3 parts", "merge")),
    "another tokenizer": ({"metadata": {"tokenizer.ggml.model": "llama"}}, ('"llama"', '"gpt2"', "Hugging Face")),
    "unknown words": ({"metadata": {"tokenizer.ggml.pre": "viking"}}, ('"viking"', "smollm", "Hugging Face")),
    "merges of nothing": ({"metadata": {"tokenizer.ggml.merges": ["no merge"]}}, ("merges do not fit",)),
    "tokens that repeat": ({"metadata": {"tokenizer.ggml.tokens": ["a"] * 512}}, ("tokens repeat",)),
    "types of other tokens": ({"metadata": {"tokenizer.ggml.token_type": [1]}}, ("token_type", "512 tokens")),
    "a token beyond the vocabulary": (
        {"metadata": {"tokenizer.ggml.eos_token_id": 512}},
        ("eos_token_id is 512", "512"),
    ),
    "no layers": ({"without": ("llama.block_count",)}, ("llama has no block_count",)),
    "no tokenizer": ({"without": ("tokenizer.ggml.tokens",)}, ("tokenizer.ggml has no tokens",)),
    "a missing tensor": ({"without": ("blk.1.ffn_up.weight",)}, ("no tensor model.layers.1.mlp.up_proj.weight",)),
    "an extra tensor": (
        {"extra": {"blk.0.attn_q_norm.weight": np.ones(16, np.float32)}},
        ("model.layers.0.self_attn.q_norm.weight", "another architecture"),
    ),
    "divisors of other heads": ({"extra": {"rope_freqs.weight": np.ones(5, np.float32)}}, ("rope_freqs", "[5]", "[8]")),
}


@pytest.mark.parametrize("case", FILES)
def test_a_gguf_file_that_cannot_be_converted_is_refused_by_name(case: str, tmp_path: Path) -> None:
    options, words = FILES[case]
    source = write_tiny_gguf(tmp_path / "tiny.gguf", **options)
    with pytest.raises(ConversionError) as caught:
        convert(source, tmp_path / "model")
    assert all(word in str(caught.value) for word in words), str(caught.value)
    assert str(source) in str(caught.value)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["tiny.gguf"]


@pytest.mark.parametrize("keep", [0.0, 0.0005, 0.1, 0.5, 0.98])
def test_a_truncated_gguf_file_is_refused(keep: float, tmp_path: Path) -> None:
    source = write_tiny_gguf(tmp_path / "tiny.gguf", kinds={"": Kind.Q8_0})
    cut(source, keep)
    with pytest.raises(ConversionError, match=r"tiny\.gguf (is truncated or damaged|is no GGUF file)"):
        convert(source, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_a_block_format_that_nobody_decodes_is_named(tmp_path: Path) -> None:
    source = write_tiny_gguf(tmp_path / "tiny.gguf", raw={"blk.0.ffn_up.weight": Kind.Q8_1}, hidden_size=64)
    with pytest.raises(ConversionError, match=r"blk\.0\.ffn_up\.weight has type Q8_1.*Q8_0"):
        convert(source, tmp_path / "model")


def test_a_source_that_is_not_there_or_is_something_else_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match=r"absent does not exist"):
        convert(tmp_path / "absent", tmp_path / "model")
    (tmp_path / "note.txt").write_text("hello")
    with pytest.raises(ConversionError, match=r"note\.txt is no GGUF file"):
        convert(tmp_path / "note.txt", tmp_path / "model")


@pytest.mark.parametrize("length", [0, -5, 257])
def test_a_context_beyond_the_models_own_is_refused(length: int, tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "source")
    with pytest.raises(ConversionError, match=rf"context length {length} .*1 to 256"):
        convert(source, tmp_path / "model", context_length=length)


def test_an_unknown_precision_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match=r'"int3" is unknown; known: fp32, bf16, fp16, int8, int4'):
        convert(write_tiny_llama(tmp_path / "source"), tmp_path / "model", precision="int3")  # type: ignore[arg-type]


CHOICES: dict[str, tuple[dict[str, Any], str]] = {
    "a head precision of nowhere": ({"head_precision": "int2"}, r'head precision "int2" is unknown; known: fp32, bf16'),
    "a block size of no kernel": (
        {"precision": "int4", "block_size": 48},
        r"block size 48 cannot be stored; known: 16",
    ),
    "blocks of fp32": ({"block_size": 32}, r"block size 32 is for int8 and int4, not for precision fp32"),
    "symmetric int8": (
        {"precision": "int8", "symmetric": True},
        r"symmetric is a choice of int4, not of precision int8",
    ),
    "symmetric nothing": (
        {"precision": "int8", "head_precision": "fp32", "symmetric": True},
        r"not of precision int8, head fp32; leave it out",
    ),
}


@pytest.mark.parametrize("case", CHOICES)
def test_choices_that_do_not_exist_or_go_together_are_refused(case: str, tmp_path: Path) -> None:
    options, message = CHOICES[case]
    with pytest.raises(ConversionError, match=message):
        convert(write_tiny_llama(tmp_path / "source"), tmp_path / "model", **options)
    assert not (tmp_path / "model").exists()


def test_weights_beyond_float16_are_refused_where_it_would_store_them(tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "source")

    def enlarge(weights: dict[str, Any]) -> None:
        weights["model.layers.1.mlp.up_proj.weight"][7, 3] = 1e5

    change_weights(source, enlarge)
    with pytest.raises(ConversionError, match=r"model\.layers\.1\.mlp\.up_proj\.weight has a weight of 100000.*bf16"):
        convert(source, tmp_path / "model", precision="fp16")
    assert convert(source, tmp_path / "model", precision="bf16").folder.is_dir()


@pytest.mark.parametrize("precision", ["int8", "int4"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_weights_that_are_no_numbers_are_refused_where_blocks_cannot_store_them(
    value: float, precision: Any, tmp_path: Path
) -> None:
    source = write_tiny_llama(tmp_path / "source")

    def spoil(weights: dict[str, Any]) -> None:
        weights["model.layers.1.mlp.up_proj.weight"][7, 3] = value

    change_weights(source, spoil)
    with pytest.raises(ConversionError, match=r"model\.layers\.1\.mlp\.up_proj\.weight.*no number.*precision fp32"):
        convert(source, tmp_path / "model", precision=precision)
    assert convert(source, tmp_path / "model").folder.is_dir()


def test_memory_stays_at_one_tensor_however_large_the_source_is(tmp_path: Path) -> None:
    layers = 12
    source = write_tiny_llama(
        tmp_path / "source", hidden_size=512, intermediate_size=1536, num_hidden_layers=layers, tokenizer=False
    )
    size = (source / "model.safetensors").stat().st_size
    code = (
        "import sys\n"
        "from oga.export import convert\n"
        "def status(name):\n"
        "    return int(next(line for line in open('/proc/self/status') if line.startswith(name)).split()[1]) * 1024\n"
        "convert(sys.argv[1], sys.argv[3], precision='int4')\n"  # the packages are loaded now
        "open('/proc/self/clear_refs', 'w').write('5')\n"
        "before = status('VmRSS')\n"
        "convert(sys.argv[2], sys.argv[4], precision='int4')\n"
        "print(status('VmHWM') - before)\n"
    )
    small = write_tiny_llama(tmp_path / "small", tokenizer=False)
    command = [sys.executable, "-c", code, small, source, tmp_path / "first", tmp_path / "second"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert size > 120e6
    assert int(done.stdout) < size / 4


def test_a_destination_in_use_is_kept_unless_replacing_it_is_forced(tmp_path: Path) -> None:
    first = write_tiny_llama(tmp_path / "first")
    second = write_tiny_llama(tmp_path / "second", seed=1, vocab_size=600)
    convert(first, tmp_path / "model")
    with pytest.raises(ConversionError, match=r"model exists and is not empty"):
        convert(second, tmp_path / "model")
    assert json.loads((tmp_path / "model" / "genai_config.json").read_text())["model"]["vocab_size"] == 512
    convert(second, tmp_path / "model", force=True)
    assert json.loads((tmp_path / "model" / "genai_config.json").read_text())["model"]["vocab_size"] == 600
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["first", "model", "second"]


def test_force_never_replaces_what_is_no_model_folder(tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "source")
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").write_text("friend")
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to(tmp_path / "source")
    for name, words in {"letters": "no genai_config", "file": "not a folder", "link": "not a folder"}.items():
        with pytest.raises(ConversionError, match=words):
            convert(source, tmp_path / name, force=True)
    assert (tmp_path / "letters" / "dear.txt").read_text() == "friend"
    assert (source / "config.json").is_file()


def test_a_destination_that_holds_the_source_is_refused(tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "both")
    (source / "genai_config.json").write_text("{}")
    with pytest.raises(ConversionError, match=r"holds the source"):
        convert(source, source, force=True)
    assert (source / "model.safetensors").is_file()


def test_an_empty_folder_and_missing_parents_are_taken(tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "source")
    (tmp_path / "empty").mkdir()
    assert convert(source, tmp_path / "empty").folder == tmp_path / "empty"
    assert (convert(source, tmp_path / "a" / "b" / "c").folder / "model.onnx").is_file()


def test_a_destination_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "source")
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(ConversionError, match=r"file/model could not be written.*choose another destination"):
        convert(source, tmp_path / "file" / "model")


def test_running_out_of_space_leaves_nothing(tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "source")
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, old[1]))  # a file may not grow further
    try:
        with pytest.raises(ConversionError, match=r"model could not be written.*free space"):
            convert(source, tmp_path / "model")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["source"]


def test_an_interrupt_at_any_tensor_leaves_nothing_and_keeps_the_old_folder(tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "source")
    convert(source, tmp_path / "model")
    before = {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()}
    reports: list[tuple[str, int, int]] = []
    convert(source, tmp_path / "other", progress=lambda *report: reports.append(report))
    for stop in range(len(reports)):
        calls = iter(range(len(reports)))

        def interrupt(what: str, done: int, total: int, stop: int = stop, calls: Any = calls) -> None:
            if next(calls) == stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            convert(source, tmp_path / "model", force=True, progress=interrupt)
        assert sorted(entry.name for entry in tmp_path.iterdir()) == ["model", "other", "source"]
    assert {path.name: path.read_bytes() for path in (tmp_path / "model").iterdir()} == before


def test_progress_rises_to_the_size_of_the_source_and_the_report_counts_what_was_made(tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "source")
    reports: list[tuple[str, int, int]] = []
    report = convert(source, tmp_path / "model", progress=lambda *each: reports.append(each))
    assert {what for what, _, _ in reports} == {"Converting"}
    done = [amount for _, amount, _ in reports]
    assert done == sorted(done)
    assert done[-1] == reports[-1][2] == report.parameters * 4
    assert report.bytes == sum(path.stat().st_size for path in (tmp_path / "model").iterdir())
    assert (report.family, report.precision, report.context_length) == ("llama", "fp32", 256)


def test_a_folder_without_a_tokenizer_converts_and_says_so(tmp_path: Path) -> None:
    report = convert(write_tiny_llama(tmp_path / "source", tokenizer=False), tmp_path / "model")
    assert len(report.notes) == 1
    assert "token ids only" in report.notes[0]
    assert not (tmp_path / "model" / "tokenizer.json").exists()


def test_a_template_in_a_file_of_its_own_moves_into_the_tokenizers_config(tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "source")
    settings = json.loads((source / "tokenizer_config.json").read_text())
    (source / "chat_template.jinja").write_text(settings.pop("chat_template"))
    (source / "tokenizer_config.json").write_text(json.dumps(settings))
    convert(source, tmp_path / "model")
    assert "<|im_start|>" in json.loads((tmp_path / "model" / "tokenizer_config.json").read_text())["chat_template"]


def test_every_end_token_and_generation_default_reaches_the_manifest(tmp_path: Path) -> None:
    source = write_tiny_llama(tmp_path / "source", eos_token_id=[5, 6], pad_token_id=-1)
    generation = {"eos_token_id": [6, 9], "do_sample": True, "temperature": 0.6, "top_p": 0.9, "top_k": 20}
    (source / "generation_config.json").write_text(json.dumps(generation))
    convert(source, tmp_path / "model")
    manifest = json.loads((tmp_path / "model" / "genai_config.json").read_text())
    assert manifest["model"]["eos_token_id"] == [6, 9, 5, 2]  # 2 closes a message of the chat template
    assert manifest["model"]["pad_token_id"] == 6
    search = manifest["search"]
    assert (search["do_sample"], search["temperature"], search["top_p"], search["top_k"]) == (True, 0.6, 0.9, 20)
    assert search["max_length"] == 256


def test_a_config_that_says_nothing_means_what_the_family_means(tmp_path: Path) -> None:
    config = tiny_config(model_type="mistral", num_attention_heads=8, num_key_value_heads=8, eos_token_id=0)
    source = write_tiny_llama(tmp_path / "source", **config, tokenizer=False)
    change_config(source, num_key_value_heads="-", sliding_window="-", eos_token_id="-", bos_token_id="-")
    convert(source, tmp_path / "model")
    model = json.loads((tmp_path / "model" / "genai_config.json").read_text())["model"]
    assert (model["bos_token_id"], model["eos_token_id"]) == (1, [2])
    assert model["decoder"]["num_key_value_heads"] == 8


def test_importing_is_quick_and_a_missing_package_is_named_with_the_cure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heavy = "{'onnx', 'onnx_ir', 'gguf', 'tokenizers', 'torch'}"
    code = f"import sys, oga.export; print(sorted({heavy} & set(sys.modules)))"
    listed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert listed.stdout.strip() == "[]"
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(MissingExtraError, match=r"gguf.*pip install 'oga\[export\]'"):
        convert(write_tiny_llama(tmp_path / "source"), tmp_path / "model")
