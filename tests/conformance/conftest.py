"""Fixtures of the conformance tests: the real SmolLM2, converted once, and where the programs lie."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from oga import export

TESTS = Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS / "models"))
sys.path.append(str(TESTS / "python"))

from tiny_models import tiny_folder  # noqa: E402

__all__ = ["tiny_folder"]


@pytest.fixture(scope="session")
def fp32_folder() -> Path:
    """SmolLM2-135M-Instruct in full precision, from the user's cache."""
    return export.pull("smollm2", precision="fp32")


@pytest.fixture(scope="session")
def int8_folder() -> Path:
    """SmolLM2-135M-Instruct in 8-bit form, from the user's cache."""
    return export.pull("smollm2", precision="int8")


@pytest.fixture(scope="session")
def bf16_folder() -> Path:
    """SmolLM2-135M-Instruct with weights in bfloat16, from the user's cache."""
    return export.pull("smollm2", precision="bf16")


@pytest.fixture(scope="session")
def tokenizer(fp32_folder: Path) -> Tokenizer:
    return Tokenizer.from_file(str(fp32_folder / "tokenizer.json"))


@pytest.fixture(scope="session")
def programs() -> Path:
    """Where the programs of tests/ were built."""
    return Path(os.environ["OGA_TEST_PROGRAMS"])
