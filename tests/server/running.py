"""A real server on a free port, in a thread of the test's process."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Any

import httpx
import uvicorn

from oga.aio import AsyncEngine
from oga.server import ServerSettings, create_app
from oga.server.run import listen

SECONDS = 20
BOS = "<|endoftext|>"
LIMITS = {"block_size": 8, "num_blocks": 1024, "max_batch_size": 8, "max_scheduled_tokens": 256}
ENGINE = {"engine": {"dynamic_batching": LIMITS}}


class Running:
    """A server and what a test may look at inside of it."""

    def __init__(self, app: Any, url: str) -> None:
        self.app = app
        self.url = url
        self.loop: asyncio.AbstractEventLoop | None = None

    @property
    def engines(self) -> list[AsyncEngine]:
        return [engine for _, engine in self.app.state.registry.loaded]

    def on_loop(self, coroutine: Any) -> Any:
        """Runs a coroutine where the server runs."""
        assert self.loop is not None
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(SECONDS)

    def wait_idle(self) -> None:
        """Waits until no turn is open."""
        end = time.monotonic() + SECONDS
        while any(engine.open_turns for engine in self.engines):
            assert time.monotonic() < end, "a turn never ended"
            time.sleep(0.005)

    def assert_idle(self) -> None:
        """Drops what is kept on purpose; then no block, slot or task of a request may be left."""
        self.wait_idle()
        self.on_loop(self._drop_kept())
        for engine in self.engines:
            counts = self.on_loop(engine.get_statistics())
            assert counts.live_requests == 0
            assert counts.free_blocks == counts.total_blocks
        end = time.monotonic() + SECONDS
        while names := self.on_loop(_request_tasks()):
            assert time.monotonic() < end, names
            time.sleep(0.005)

    async def _drop_kept(self) -> None:
        state = self.app.state
        for session in list(state.sessions._sessions.values()):
            await state.sessions.remove(session)
        for identity in list(state.responses._stored):
            await state.responses.remove(identity)


async def _request_tasks() -> list[str]:
    """Tasks that work for a turn."""
    return [repr(task) for task in asyncio.all_tasks() if "oga/server" in repr(task) and "_expire" not in repr(task)
            and "_request_tasks" not in repr(task)]  # fmt: skip


def plain_client(url: str) -> httpx.Client:
    """A client without certificates: they take 20 ms to load, and the servers of tests speak plain HTTP."""
    return httpx.Client(base_url=url, timeout=30, verify=False)


@contextlib.contextmanager
def started(settings: ServerSettings) -> Iterator[Running]:
    """A server until the block ends; then it must stop by itself."""
    app = create_app(settings)
    listening = listen("127.0.0.1", 0)
    running = Running(app, f"http://127.0.0.1:{listening.getsockname()[1]}")
    server = uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=5))

    async def serve() -> None:
        running.loop = asyncio.get_running_loop()
        await server.serve(sockets=[listening])

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="test-server")
    thread.start()
    try:
        end = time.monotonic() + SECONDS
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            assert time.monotonic() < end, "the server never started"
            time.sleep(0.01)
        yield running
    finally:
        server.should_exit = True
        thread.join(SECONDS)
        listening.close()
        assert not thread.is_alive(), "the server never stopped"


def ask(client: httpx.Client, content: str, **fields: Any) -> httpx.Response:
    """A chat completion with one user message."""
    body = {"model": "random", "messages": [{"role": "user", "content": content}]} | fields
    return client.post("/v1/chat/completions", json=body)
