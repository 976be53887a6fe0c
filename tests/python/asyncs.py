"""Asynchronous tests without a plugin."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Callable, Coroutine
from typing import Any

import oga

SECONDS = 60


def asynchronous(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Runs a test in an event loop of its own; one that hangs fails."""

    @functools.wraps(test)
    def run(*arguments: Any, **keywords: Any) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(SECONDS):
                await test(*arguments, **keywords)
            assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()], "a task was left"

        asyncio.run(bounded())

    return run


async def settled(engine: oga.AsyncEngine) -> oga.EngineStatistics:
    """The engine's counters after everything that was asked for before."""
    return await engine.get_statistics()


async def assert_all_returned(engine: oga.AsyncEngine, kept: int = 0) -> None:
    """Nothing is running, and every block and slot is back."""
    counts = await settled(engine)
    assert engine.open_turns == 0
    assert counts.live_requests == kept
    assert counts.free_blocks == counts.total_blocks


def engine_threads() -> list[threading.Thread]:
    """The threads of engines that are open."""
    return [thread for thread in threading.enumerate() if thread.name.startswith("oga-")]
