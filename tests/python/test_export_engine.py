"""Converted families and block formats on the engine: the tokens of transformers, and the same ones in any company."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from tiny_models import LIMITS

import oga
from oga.export import convert

NEW_TOKENS = 24
# Draws show differences that the likeliest token of a small random model would hide.
SAMPLING = {"temperature": 2.0, "seed": 5}
QWEN2 = {"model_type": "qwen2"}
QWEN3 = {"model_type": "qwen3", "tie_word_embeddings": False, "head_dim": 32}
WINDOWED = {**QWEN2, "use_sliding_window": True, "sliding_window": 8, "max_window_layers": 1}
FORMATS: dict[str, dict[str, Any]] = {
    "int4": {"precision": "int4"},
    "int4, symmetric blocks of 16": {"precision": "int4", "symmetric": True, "block_size": 16},
    "int4 with an int8 head": {"precision": "int4", "head_precision": "int8"},
    "int8": {"precision": "int8"},
    "bf16": {"precision": "bf16"},
    "fp16 with an fp32 head": {"precision": "fp16", "head_precision": "fp32"},
    "fp32 with a bf16 cache": {"cache": "bf16"},
    "fp32 with an fp16 cache": {"cache": "fp16"},
    "int8 with an fp32 cache": {"precision": "int8", "cache": "fp32"},
}


def prompts() -> list[list[int]]:
    draw = random.Random(3)
    return [[draw.randrange(3, 512) for _ in range(length)] for length in (5, 17, 30)]


def load(folder: Path, cpu_matmul: str = "auto", **limits: int) -> oga.Model:
    with oga.Config(folder) as config:
        config.overlay({"engine": {"dynamic_batching": LIMITS | limits}})
        config.overlay({"model": {"decoder": {"session_options": {"cpu_matmul": cpu_matmul}}}})
        return oga.Model(config)


def answers(model: oga.Model, *, together: bool, **sampling: Any) -> list[list[int]]:
    options = {"max_new_tokens": NEW_TOKENS, "min_new_tokens": NEW_TOKENS, **sampling}
    with oga.Engine(model) as engine:
        if not together:
            return [list(engine.stream(prompt, **options)) for prompt in prompts()]
        streams = [engine.stream(prompt, **options) for prompt in prompts()]
        return [list(stream) for stream in streams]


@pytest.mark.parametrize("changes", [QWEN2, WINDOWED, QWEN3], ids=["qwen2", "qwen2 with a window", "qwen3"])
def test_a_converted_model_generates_what_transformers_generates(changes: dict[str, Any], tmp_path: Path) -> None:
    from reference_hf import load_reference, reference_greedy
    from tiny_llama import write_tiny_llama

    source = write_tiny_llama(tmp_path / "source", tokenizer=False, eos_token_id=None, **changes)
    reference = load_reference(source)
    wanted = [reference_greedy(reference, prompt, NEW_TOKENS) for prompt in prompts()]
    with load(convert(source, tmp_path / "model").folder) as model:
        assert answers(model, together=True) == wanted


@pytest.mark.parametrize("weights", FORMATS)
@pytest.mark.parametrize("changes", [QWEN2, QWEN3], ids=["qwen2", "qwen3"])
def test_stored_weights_generate_the_same_alone_together_and_in_small_steps(
    changes: dict[str, Any], weights: str, tmp_path: Path
) -> None:
    from tiny_llama import write_tiny_llama

    source = write_tiny_llama(tmp_path / "source", tokenizer=False, **changes)
    folder = convert(source, tmp_path / "model", **FORMATS[weights]).folder
    with load(folder) as model:
        alone = answers(model, together=False, **SAMPLING)
        assert answers(model, together=True, **SAMPLING) == alone
    with load(folder, max_scheduled_tokens=5) as model:
        assert answers(model, together=True, **SAMPLING) == alone
    assert len({token for tokens in alone for token in tokens}) > 10


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("cpu_matmul", ["fp32", "bf16"])
def test_float_weights_generate_the_same_alone_and_together_in_either_arithmetic(
    cpu_matmul: str, precision: Any, tmp_path: Path
) -> None:
    from reference_hf import load_reference, reference_greedy
    from tiny_llama import write_tiny_llama

    source = write_tiny_llama(tmp_path / "source", tokenizer=False, eos_token_id=None, **QWEN2)
    folder = convert(source, tmp_path / "model", precision=precision).folder
    with load(folder, cpu_matmul) as model:
        alone = answers(model, together=False, **SAMPLING)
        assert answers(model, together=True, **SAMPLING) == alone
        greedy = answers(model, together=True)
    with load(folder, cpu_matmul, max_scheduled_tokens=5) as model:
        assert answers(model, together=True, **SAMPLING) == alone
    if cpu_matmul == "fp32" and precision == "fp32":
        reference = load_reference(source)
        assert greedy == [reference_greedy(reference, prompt, NEW_TOKENS) for prompt in prompts()]


def test_an_unknown_arithmetic_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    from tiny_llama import write_tiny_llama

    folder = convert(write_tiny_llama(tmp_path / "source", tokenizer=False), tmp_path / "model").folder
    with pytest.raises(oga.InvalidArgumentError, match=r"session_options\.cpu_matmul is the string 'int8'.*bf16"):
        load(folder, "int8")


def test_the_text_of_a_qwen_model_goes_through_its_own_tokenizer_and_template(tmp_path: Path) -> None:
    from tiny_llama import write_tiny_llama

    folder = convert(write_tiny_llama(tmp_path / "source", **QWEN2), tmp_path / "model", precision="int4").folder
    with load(folder) as model, oga.Engine(model) as engine:
        chat = model.chat_template.encode([{"role": "user", "content": "then"}]).tolist()
        assert chat[0] == 1  # the marker that opens a message; such models have no token for the start of a text
        assert "".join(engine.stream("then the other", max_new_tokens=4, min_new_tokens=4))
