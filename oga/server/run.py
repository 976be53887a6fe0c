"""Runs the application on uvicorn until it is told to stop."""

from __future__ import annotations

import contextlib
import gc
import logging
import signal
import socket
import sys
from collections.abc import Iterator

import uvicorn

from oga.server.app import create_app
from oga.server.settings import ServerSettings

BACKLOG = 2048
log = logging.getLogger("oga.server")


class Server(uvicorn.Server):
    """Says early that it drains: load balancers look at ``/ready`` while open answers are still being written."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handles both signals here. uvicorn's own way raises them again when all is over, as if nobody had."""
        before = {number: signal.signal(number, self.handle_exit) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Says where the server is as soon as it can be asked."""
        await super().startup(sockets)
        gc.collect()
        gc.freeze()  # what is there by now stays; every collection that walked it would hold up all answers
        for each in sockets or []:
            host, port = each.getsockname()[:2]
            log.info("serving on http://%s:%d", f"[{host}]" if ":" in host else host, port)

    def handle_exit(self, sig: int, frame: object) -> None:
        """The first signal starts draining, a second one ends at once."""
        self.config.loaded_app_state.registry.is_draining = True  # type: ignore[attr-defined]
        super().handle_exit(sig, frame)  # type: ignore[arg-type]


def serve(settings: ServerSettings, host: str, port: int, *, shares_port: bool = False) -> None:
    """Serves until SIGINT or SIGTERM, then lets open answers end for ``settings.drain_seconds``.

    ``shares_port`` lets another server listen on the same port, so that a new one can start before the old one is told
    to stop: no connection is refused in between. Raises ``OSError`` when the port cannot be had.
    """
    _log_to_stderr()
    app = create_app(settings)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        backlog=BACKLOG,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=int(settings.drain_seconds),
    )
    config.loaded_app_state = app.state  # type: ignore[attr-defined]
    listening = listen(host, port, shares_port)
    with listening:
        Server(config).run(sockets=[listening])


def listen(host: str, port: int, shares_port: bool = False) -> socket.socket:
    """A socket that is bound; port 0 takes a free one. Raises ``OSError``."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shares_port:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listening.bind((host, port))
    except BaseException:
        listening.close()
        raise
    return listening


def _log_to_stderr() -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(message)s"))
    for name in ("oga.server", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.setLevel(logging.INFO if name == "oga.server" else logging.WARNING)
        logger.addHandler(handler)
        logger.propagate = False
