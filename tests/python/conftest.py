"""Fixtures of the Python tests: a tiny random model, converted once, and engines on it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny_models import LIMITS, failing_folder, poisoned_folder, tiny_folder

import oga

TESTS = Path(__file__).resolve().parents[1]
sys.path.append(str(TESTS / "models"))

__all__ = ["failing_folder", "poisoned_folder", "tiny_folder"]


@pytest.fixture(scope="session")
def model(tiny_folder: Path) -> Iterator[oga.Model]:
    """The tiny model with a cache of 96 blocks of 4 tokens, at most 4 rows and 64 tokens in a step."""
    with oga.Config(tiny_folder) as config:
        config.overlay({"engine": {"dynamic_batching": LIMITS}})
        with oga.Model(config) as loaded:
            yield loaded


@pytest.fixture
def engine(model: oga.Model) -> Iterator[oga.Engine]:
    """An engine of its own for each test; at the end no cache may be left in use by closed requests."""
    with oga.Engine(model) as created:
        yield created


@pytest.fixture(scope="session")
def long_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model with a context of 512 tokens."""
    from tiny_llama import write_tiny_llama

    from oga import export

    home = tmp_path_factory.mktemp("long")
    source = write_tiny_llama(home / "source", max_position_embeddings=512)
    return export.convert(source, home / "model", precision="int8").folder


@pytest.fixture(scope="session")
def smollm2_source() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct."""
    from oga.export import fetch_source

    return fetch_source("smollm2")


@pytest.fixture(scope="session")
def smollm2_folder(smollm2_source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """SmolLM2 converted in full precision. No test changes it."""
    from oga.export import convert

    return convert(smollm2_source, tmp_path_factory.mktemp("smollm2") / "fp32", precision="fp32").folder


@pytest.fixture(scope="session")
def smollm2_reference(smollm2_source: Path) -> Any:
    """SmolLM2 in transformers, which takes seconds to load."""
    from reference_hf import load_reference

    return load_reference(smollm2_source)


@pytest.fixture
def slow_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step of an asyncio engine takes two milliseconds more, so that a long turn lasts."""
    from oga.turns import Turns

    step = Turns.step

    def slow(turns: Turns) -> None:
        time.sleep(0.002)
        step(turns)

    monkeypatch.setattr(Turns, "step", slow)


@pytest.fixture
def make_model(tiny_folder: Path) -> Iterator[Callable[..., oga.Model]]:
    """Loads the tiny model with other settings: ``make_model(search={...}, **dynamic_batching)``."""
    loaded: list[oga.Model] = []

    def make(search: dict[str, object] | None = None, **limits: int) -> oga.Model:
        with oga.Config(tiny_folder) as config:
            config.overlay({"search": search or {}, "engine": {"dynamic_batching": LIMITS | limits}})
            loaded.append(oga.Model(config))
        return loaded[-1]

    yield make
    for each in loaded:
        each.close()
