"""Fixtures of the conformance tests: the real SmolLM2, converted once, and where the programs lie."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer

from oga import export
from oga.export.precision import Precision

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
def int8_fp32_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2-135M-Instruct in 8-bit form, with keys and values in float."""
    return with_fp32_cache("int8", tmp_path_factory)


@pytest.fixture(scope="session")
def bf16_fp32_cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2-135M-Instruct with weights in bfloat16, and keys and values in float."""
    return with_fp32_cache("bf16", tmp_path_factory)


def with_fp32_cache(precision: Precision, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(f"{precision}-fp32-cache") / "model"
    export.convert(export.fetch_source("smollm2"), folder, precision=precision, cache="fp32")
    return folder


@pytest.fixture(scope="session")
def tokenizer(fp32_folder: Path) -> Tokenizer:
    return Tokenizer.from_file(str(fp32_folder / "tokenizer.json"))


@pytest.fixture(scope="session")
def programs() -> Path:
    """Where the programs of tests/ were built."""
    return Path(os.environ["OGA_TEST_PROGRAMS"])
