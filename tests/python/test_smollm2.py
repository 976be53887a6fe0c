"""The real SmolLM2-135M-Instruct on the engine: the text of transformers, in any company, with prompts cut anyhow."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import oga

PROMPTS = ("What is the capital of France?", "Write one sentence about the sea.", "Why is the sky blue?")
NEW_TOKENS = 48
CACHE = {"block_size": 16, "num_blocks": 64}


@pytest.fixture(scope="module")
def model(smollm2_folder: Path) -> Iterator[oga.Model]:
    with oga.Model(smollm2_folder) as loaded:
        yield loaded


@pytest.fixture(scope="module")
def prompts(model: oga.Model) -> list[list[int]]:
    """Token ids of the chat prompts."""
    return [model.chat_template.encode([{"role": "user", "content": text}]).tolist() for text in PROMPTS]


@pytest.fixture(scope="module")
def wanted(smollm2_reference: Any, prompts: list[list[int]]) -> list[list[int]]:
    """What transformers answers with the same fp32 weights."""
    from reference_hf import reference_greedy

    return [reference_greedy(smollm2_reference, prompt, NEW_TOKENS, eos=[2]) for prompt in prompts]


def together(folder: Path, prompts: list[list[int]], search: dict[str, Any], **limits: int) -> list[list[int]]:
    """The answers of an engine with these settings to all prompts at once."""
    with oga.Config(folder) as config:
        config.overlay({"search": search, "engine": {"dynamic_batching": CACHE | limits}})
        model = oga.Model(config)
    with model, oga.Engine(model) as engine:
        streams = [engine.stream(prompt, max_new_tokens=NEW_TOKENS) for prompt in prompts]
        return [list(stream) for stream in streams]


def test_greedy_answers_alone_are_those_of_transformers(
    smollm2_folder: Path, prompts: list[list[int]], wanted: list[list[int]]
) -> None:
    assert [together(smollm2_folder, [prompt], {})[0] for prompt in prompts] == wanted


@pytest.mark.parametrize(
    ("search", "limits"),
    [
        ({}, {}),
        ({}, {"max_scheduled_tokens": 7}),
        ({"chunk_size": 3}, {}),
        ({}, {"max_batch_size": 2, "num_blocks": 9}),
    ],
    ids=["together", "7 tokens a step", "chunks of 3", "2 rows in a tight cache"],
)
def test_greedy_answers_together_are_those_of_transformers(
    smollm2_folder: Path,
    prompts: list[list[int]],
    wanted: list[list[int]],
    search: dict[str, Any],
    limits: dict[str, int],
) -> None:
    assert together(smollm2_folder, prompts, search, **limits) == wanted


def test_the_command_knows_the_capital_of_france(
    smollm2_folder: Path, model: oga.Model, wanted: list[list[int]]
) -> None:
    command = [sys.executable, "-m", "oga", "run", smollm2_folder, *PROMPTS, "-n", str(NEW_TOKENS), "-q"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "\n\n".join(model.tokenizer.decode(tokens) for tokens in wanted) + "\n"
    assert "Paris" in done.stdout.split("\n\n")[0]
