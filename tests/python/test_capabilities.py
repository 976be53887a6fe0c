"""EngineCapabilities: the fixed limits, as configured and as the cache allows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import oga


def test_the_limits_are_those_configured(engine: oga.Engine) -> None:
    limits = engine.get_capabilities()
    assert limits.configured_max_batch_size == 4
    assert limits.max_scheduled_tokens == 64
    assert limits.max_request_length == 256


def test_a_small_cache_bounds_the_longest_request(make_model: Callable[..., oga.Model]) -> None:
    with oga.Engine(make_model(num_blocks=10)) as engine:
        assert engine.get_capabilities().max_request_length == 10 * 4 + 1


def test_public_names_are_the_limits(engine: oga.Engine) -> None:
    limits = engine.get_capabilities()
    names = [name for name in dir(limits) if not name.startswith("_")]
    assert names == ["configured_max_batch_size", "max_request_length", "max_scheduled_tokens", "prefix_caching"]
    with pytest.raises(AttributeError):
        limits.max_request_length = 5  # type: ignore[misc]


def test_it_outlives_its_engine(model: oga.Model) -> None:
    with oga.Engine(model) as engine:
        limits = engine.get_capabilities()
    assert limits.configured_max_batch_size == 4


def test_only_an_engine_makes_one() -> None:
    with pytest.raises(TypeError, match="No constructor defined"):
        oga.EngineCapabilities()
