"""Session fixtures that more than one folder of tests uses: a tiny random model, converted once."""

from __future__ import annotations

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
