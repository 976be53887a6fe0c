"""The golden rule on the real model: the same however the work is cut and shared, and on every instruction set.

tests/python/test_smollm2.py compares its text with transformers.
"""

from __future__ import annotations

import os
import random
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from driving import finish, generate
from tokenizers import Tokenizer

import oga

QUESTIONS = ("What is the capital of France?", "Write one sentence about the sea.", "Explain why the sky is blue.")
NEW_TOKENS = 48


def chat(tokenizer: Tokenizer, question: str) -> list[int]:
    text = (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        f"<|im_start|>user\n{question}<|im_end|>\n<|im_start|>assistant\n"
    )
    return list(tokenizer.encode(text).ids)


def load(folder: Path, chunk_size: int = 0, **limits: int) -> oga.Model:
    with oga.Config(folder) as config:
        config.overlay({"search": {"chunk_size": chunk_size}, "engine": {"dynamic_batching": limits}})
        return oga.Model(config)


def together(engine: oga.Engine, prompts: list[list[int]], count: int) -> list[list[int]]:
    """What the prompts generate when they start together."""
    requests = [engine.create_request() for _ in prompts]
    for request, prompt in zip(requests, prompts, strict=True):
        request.begin_turn(prompt, oga.TurnOptions(request, max_generated_tokens=count))
    turns = finish(engine, capacity=64)
    tokens = [turns[request, 1].tokens for request in requests]
    for request in requests:
        assert len(turns[request, 1].endings) == 1
        request.close()
    return tokens


@pytest.fixture(scope="module")
def prompts(tokenizer: Tokenizer) -> list[list[int]]:
    return [chat(tokenizer, question) for question in QUESTIONS]


@pytest.mark.parametrize("precision", ["int8", "bf16"])
def test_text_of_narrow_weights_does_not_depend_on_how_it_is_computed(
    precision: str, request: pytest.FixtureRequest, prompts: list[list[int]]
) -> None:
    folder = request.getfixturevalue(f"{precision}_folder")
    with load(folder, num_blocks=200) as model, oga.Engine(model) as engine:
        alone = [generate(engine, prompt, NEW_TOKENS) for prompt in prompts]
        assert together(engine, prompts, NEW_TOKENS) == alone
    with load(folder, num_blocks=200, max_scheduled_tokens=7) as model, oga.Engine(model) as engine:
        assert together(engine, prompts, NEW_TOKENS) == alone
    with load(folder, num_blocks=200, chunk_size=3) as model, oga.Engine(model) as engine:
        assert together(engine, prompts, NEW_TOKENS) == alone


def test_thirty_two_requests_share_a_pool_for_half_of_them(int8_folder: Path) -> None:
    draw = random.Random(7)
    prompts = [[draw.randrange(20, 40000) for _ in range(draw.randint(16, 400))] for _ in range(32)]
    blocks = sum(-(-(len(prompt) + 8) // 16) for prompt in prompts) // 2
    with load(int8_folder, num_blocks=blocks, max_batch_size=8) as model, oga.Engine(model) as engine:
        tokens = together(engine, prompts, 8)
        assert all(1 <= len(each) <= 8 for each in tokens)
        counts = engine.get_statistics()
        assert counts.free_blocks == blocks
        assert counts.live_requests == 0


def cpu_variants() -> list[str]:
    """The instruction sets of this CPU that the tests can tell by its flags, the plainest first."""
    flags = set(Path("/proc/cpuinfo").read_text().split("flags", 1)[1].split("\n", 1)[0].split())
    wanted = {
        "portable": set(),
        "avx2": {"avx2", "fma", "f16c"},
        "avx512": {"avx512f", "avx512bw", "avx512vl", "avx512dq"},
        "avx512_bf16": {"avx512_bf16"},
        "amx": {"amx_tile", "amx_bf16"},
    }
    return [name for name, needed in wanted.items() if needed <= flags]


Logits = np.ndarray[Any, np.dtype[np.float32]]


def logits_of(folder: Path, programs: Path, sequence: list[int], output: Path, **settings: str) -> Logits:
    """The logits [tokens, vocabulary] of one sequence, under these settings of the environment."""
    program = programs / "conformance" / "teacher_forced_logits"
    env = os.environ | {"OGA_ORT_LIBRARY": ort_library()} | settings
    subprocess.run([program, folder, output, *map(str, sequence)], env=env, check=True)
    return np.fromfile(output, np.float32).reshape(-1, 49152)


def logits_by_variant(folder: Path, programs: Path, sequence: list[int], output: Path) -> dict[str, Logits]:
    """What ``logits_of`` gives on each instruction set."""
    return {
        variant: logits_of(folder, programs, sequence, output / variant, OGA_CPU_ISA=variant)
        for variant in cpu_variants()
    }


def test_every_instruction_set_computes_the_same_logits(
    fp32_folder: Path, programs: Path, prompts: list[list[int]], tmp_path: Path
) -> None:
    with load(fp32_folder, num_blocks=32) as model, oga.Engine(model) as engine:
        answer = generate(engine, prompts[2], NEW_TOKENS)
    logits = logits_by_variant(fp32_folder, programs, prompts[2] + answer, tmp_path)
    best = np.sort(logits["portable"], axis=1)[:, -2:]
    clear = best[:, 1] - best[:, 0] > 1e-3
    assert clear.sum() > 5
    for found in logits.values():
        assert np.abs(found - logits["portable"]).max() < 1e-4
        same = found.argmax(1) == logits["portable"].argmax(1)
        assert same[clear].all()


# Instruction sets of one arithmetic: over a cache in bfloat16, attention has two. AMX is left out: what its tiles
# compute is its manual's word.
SAME_BITS = {"fp32": [["avx2", "avx512", "avx512_bf16"]], "bf16": [["avx2", "avx512"], ["avx512_bf16"]]}


@pytest.mark.parametrize(("precision", "cache"), [("int8", "fp32"), ("bf16", "fp32"), ("int8", "bf16")])
def test_logits_of_narrow_weights_have_the_same_bits_where_the_arithmetic_is_the_same(
    precision: str, cache: str, request: pytest.FixtureRequest, programs: Path, prompts: list[list[int]], tmp_path: Path
) -> None:
    folder = request.getfixturevalue(f"{precision}_folder" if cache == "bf16" else f"{precision}_fp32_cache_folder")
    logits = logits_by_variant(folder, programs, prompts[0], tmp_path)
    assert np.abs(logits["portable"]).max() > 1
    for names in SAME_BITS[cache]:
        found = [logits[name] for name in names if name in logits]
        assert all(one.tobytes() == found[0].tobytes() for one in found)
    for found in logits.values():  # a difference in the last bit may turn a rounding to bfloat16 further on
        assert np.abs(found - logits["portable"]).max() < 1


def test_sixteen_bits_stay_close_to_full_precision(
    fp32_folder: Path, bf16_folder: Path, programs: Path, prompts: list[list[int]], tmp_path: Path
) -> None:
    wanted = logits_of(fp32_folder, programs, prompts[0], tmp_path / "fp32")
    differences = []
    for folder, matmul in ((bf16_folder, "fp32"), (bf16_folder, "bf16"), (fp32_folder, "bf16")):
        found = logits_of(folder, programs, prompts[0], tmp_path / "found", OGA_CPU_MATMUL=matmul)
        differences.append(np.abs(found - wanted).max())
    assert min(differences) > 0
    assert max(differences) < 1


def test_narrow_weights_answer_like_full_precision(
    fp32_folder: Path, bf16_folder: Path, int8_folder: Path, tokenizer: Tokenizer, prompts: list[list[int]]
) -> None:
    for folder in (fp32_folder, bf16_folder, int8_folder):
        with load(folder, num_blocks=32) as model, oga.Engine(model) as engine:
            assert tokenizer.decode(generate(engine, prompts[0], NEW_TOKENS)) == "The capital of France is Paris."


def ort_library() -> str:
    return oga.get_ort_version().split("(", 1)[1].rstrip(")")
