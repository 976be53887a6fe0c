"""Plays the table of rows.py over the Python API and over the C API."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import rows_of_failures
import rows_of_policy
import rows_of_requests
import rows_of_runs
import rows_of_turns
from drivers import DRIVERS, Driver
from rows import CASES, Case
from world import World

SECTIONS = (
    rows_of_requests,
    rows_of_runs,
    rows_of_turns,
    rows_of_policy,
    rows_of_failures,
)  # importing one fills CASES


def played() -> list[Any]:
    return [
        pytest.param(case, driver, id=f"{case.id}-{driver.name}")
        for case in CASES
        for driver in DRIVERS
        if case.only in (None, driver.name)
    ]


@pytest.fixture(scope="session")
def failing_folder(tiny_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny model, whose run fails on token ids from 400 up."""
    from failing_model import write_failing_model

    return write_failing_model(tiny_folder, tmp_path_factory.mktemp("failing") / "model")


@pytest.fixture(scope="module")
def models() -> Iterator[dict[str, Any]]:
    """Models by driver and settings; each is loaded once."""
    loaded: dict[str, Any] = {}
    yield loaded
    drivers = {driver.name: driver for driver in DRIVERS}
    for key, model in loaded.items():
        drivers[key.split()[0]].unload(model)


@pytest.mark.parametrize(("case", "driver"), played())
def test_the_engine_behaves_as_the_table_says(
    case: Case, driver: Driver, tiny_folder: Path, failing_folder: Path, models: dict[str, Any]
) -> None:
    world = World(driver, failing_folder if case.failing_model else tiny_folder, models)
    try:
        assert list(case.play(world)) == list(case.expected), f"{case.done} ({case.ruling or 'as the page says'})"
    finally:
        world.end()
