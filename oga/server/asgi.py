"""What stands around every request: its id, its size, its line in the log. Plain ASGI, so that streams stay streams."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import time
import uuid
from typing import TYPE_CHECKING, Any

from oga.server.errors import ApiError

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from oga.server.metrics import Metrics
    from oga.server.settings import ServerSettings

log = logging.getLogger("oga.server.access")
DISCARD_BYTES = 16 * 2**20
DISCARD_SECONDS = 0.5
GIVEN_ID = re.compile(r"[\w.:-]{1,128}")


class Frame:
    """The outermost part of the application."""

    def __init__(self, app: ASGIApp, settings: ServerSettings, metrics: Metrics) -> None:
        self._app = app
        self._settings = settings
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        given = headers.get(b"x-request-id", b"").decode("latin-1")
        identity = given if GIVEN_ID.fullmatch(given) else f"req-{uuid.uuid4().hex}"
        note: dict[str, Any] = {"status": 0}
        scope.setdefault("state", {})
        scope["state"] |= {"request_id": identity, "note": note}
        start = time.monotonic()

        async def send_named(message: Message) -> None:
            if message["type"] == "http.response.start":
                note["status"] = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", identity.encode())]
            await send(message)

        try:
            await self._serve(scope, receive, send_named, headers)
        finally:
            self._finish(scope, identity, note, time.monotonic() - start)

    async def _serve(self, scope: Scope, receive: Receive, send: Send, headers: dict[bytes, bytes]) -> None:
        most = self._settings.max_body_bytes
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > most:
            await _discard(receive)
            await _too_large(most).response()(scope, receive, send)
            return
        received = 0

        async def receive_counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > most:
                await _discard(receive)
                raise _too_large(most)
            return message

        await self._app(scope, receive_counted, send)

    def _finish(self, scope: Scope, identity: str, note: dict[str, Any], seconds: float) -> None:
        route = scope.get("route")
        path = getattr(route, "path", "other")
        self._metrics.count_http(path, note["status"])
        facts = {
            "request_id": identity,
            "method": scope["method"],
            "path": path,
            "seconds": round(seconds, 4),
            **note,
        }
        if self._settings.log_format == "json":
            log.info(json.dumps(facts))
        else:
            log.info(" ".join(f"{name}={value}" for name, value in facts.items()))


async def _discard(receive: Receive) -> None:
    """Reads on for a while: a client that is still writing would not see an answer on a closed connection."""
    discarded = 0
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(DISCARD_SECONDS):
            while discarded < DISCARD_BYTES:
                message = await receive()
                discarded += len(message.get("body", b""))
                if message["type"] != "http.request" or not message.get("more_body"):
                    return


def _too_large(most: int) -> ApiError:
    return ApiError(
        413, f"The body is larger than {most} bytes.", code="body_too_large", headers={"Connection": "close"}
    )
