"""Session fixtures that more than one folder of tests uses: a tiny random model, converted once, and broken ones."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

LIMITS = {"block_size": 4, "num_blocks": 96, "max_batch_size": 4, "max_scheduled_tokens": 64}
VOCABULARY, CONTEXT = 512, 256


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A converted llama of two layers, vocabulary 512, context 256, with a tokenizer and a chat template."""
    from tiny_llama import write_tiny_llama

    from oga import export

    home = tmp_path_factory.mktemp("tiny")
    source = write_tiny_llama(home / "source")
    return export.convert(source, home / "model", precision="fp32").folder


@pytest.fixture(scope="session")
def poisoned_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model whose logits are NaN after token 300 or the letter Z, and of no harm to anything else."""
    from safetensors.numpy import load_file, save_file
    from tiny_llama import tiny_tokenizer, write_tiny_llama

    from oga import export

    home = tmp_path_factory.mktemp("poisoned")
    source = write_tiny_llama(home / "source", tie_word_embeddings=False)
    weights = load_file(source / "model.safetensors")
    weights["model.embed_tokens.weight"][[300, tiny_tokenizer(512).token_to_id("Z")]] = float("nan")
    save_file(weights, source / "model.safetensors", metadata={"format": "pt"})
    return export.convert(source, home / "model", precision="fp32").folder


@pytest.fixture(scope="session")
def failing_folder(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model, which fails to run, for good, when it meets a token id above 399."""
    sys.path.append(str(Path(__file__).resolve().parents[1] / "conformance"))
    from failing_model import write_failing_model

    return write_failing_model(tiny_folder, tmp_path_factory.mktemp("failing") / "model")
