"""Server-sent events to a client that may leave at any time, and answers for one that may have left."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.responses import Response

from oga.errors import OgaError
from oga.server.errors import ApiError, of_oga

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.types import Receive, Scope, Send

T = TypeVar("T")
KEEP_ALIVE = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"


def encoded(value: Any) -> bytes:
    """JSON as it goes over the wire: compact, UTF-8, never NaN."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def event(value: Any, name: str | None = None) -> bytes:
    """One server-sent event."""
    return (b"" if name is None else f"event: {name}\n".encode()) + b"data: " + encoded(value) + b"\n\n"


class EventStream(Response):
    """Sends events as they come. When the client leaves, the source is closed at once, whatever it is waiting for."""

    media_type = "text/event-stream"

    def __init__(self, request: Request, events: AsyncGenerator[bytes, None], end: bytes = b"") -> None:
        """``end`` follows the last event, also after an error."""
        super().__init__(headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"})
        del self.headers["content-length"]
        self._events = events
        self._keep_alive_seconds: float = request.app.state.settings.keep_alive_seconds
        self._fields: dict[str, str] = request.state.fields
        self._end = end

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends everything, or stops when the client leaves."""
        sending = asyncio.create_task(self._send(send))
        leaving = asyncio.create_task(_disconnected(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            if not sending.done():
                sending.cancel()
            await asyncio.gather(leaving, return_exceptions=True)
            with contextlib.suppress(asyncio.CancelledError, OSError):
                await sending

    async def _send(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async with contextlib.aclosing(self._with_pauses()) as pieces:
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": self._end, "more_body": False})

    async def _with_pauses(self) -> AsyncGenerator[bytes, None]:
        """The events, and a comment whenever there is none for long; an error becomes the last event."""
        following: asyncio.Task[bytes | None] | None = None
        try:
            while True:
                following = following or asyncio.create_task(_next(self._events))
                done, _ = await asyncio.wait({following}, timeout=self._keep_alive_seconds)
                if not done:
                    yield KEEP_ALIVE
                    continue
                piece, following = following.result(), None
                if piece is None:
                    return
                yield piece
        except OgaError as error:
            yield event(of_oga(error, self._fields).body)
        except ApiError as error:
            yield event(error.body)
        finally:
            if following is not None:
                following.cancel()
                await asyncio.gather(following, return_exceptions=True)
            await self._events.aclose()


async def unless_gone(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What ``work`` gives. When the client leaves before, the work is cancelled."""
    working = asyncio.create_task(work)
    leaving = asyncio.create_task(_disconnected(request.receive))
    try:
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ApiError(499, "The client closed the connection.")
        return working.result()
    finally:
        for task in (working, leaving):
            task.cancel()
        await asyncio.gather(working, leaving, return_exceptions=True)


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _next(events: AsyncGenerator[bytes, None]) -> bytes | None:
    return await anext(events, None)
