"""Where the owner thread leaves the output of one turn and a task finds it.

The owner never waits for a reader: what is not read is merged into one pending piece, which is as large as the turn's
own output and no larger.

Invariants:

- M1: exactly one of a last piece and a failure comes, and nothing after it.
- M2: the owner holds the lock for the length of a few list operations, and so does the reader.
- M3: ``_waiter`` belongs to the reader's loop; the owner only asks the loop to look.
"""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING

from oga.generation import Delta, Pending, Timings

if TYPE_CHECKING:
    from collections.abc import Callable

    from oga.errors import OgaError


class Mailbox:
    """The output of one turn, on its way from the owner thread to the task that reads it."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, wake: Callable[[Mailbox], None], ended: Callable[[], None]
    ) -> None:
        """``wake(mailbox)`` on the owner thread: there is something new. ``ended()``: nothing will come any more."""
        self.loop = loop
        self.timings = Timings()
        self._lock = threading.Lock()
        self._pending = Pending()
        self._error: OgaError | None = None
        self._is_over = False
        self._wake = wake
        self._ended = ended
        self._waiter: asyncio.Future[None] | None = None

    def receive(self, delta: Delta) -> None:
        """Owner thread: more output."""
        if delta.token_ids and not self.timings.first_token:
            self.timings.first_token = time.monotonic()
        is_last = delta.last  # the reader may own the piece as soon as it is added
        with self._lock:
            self._pending.add(delta)
            self._is_over = is_last
        self._finish(is_last)

    def fail(self, error: OgaError) -> None:
        """Owner thread: the turn failed."""
        with self._lock:
            self._error = error
            self._is_over = True
        self._finish(True)

    def _finish(self, is_last: bool) -> None:
        if is_last:
            self.timings.finished = time.monotonic()
            self._ended()
        self._wake(self)

    @property
    def is_over(self) -> bool:
        """Whether the turn has ended; output may still be unread."""
        return self._is_over

    async def take(self) -> Delta | None:
        """Reader: everything new as soon as there is anything; None after the end. Raises the turn's failure."""
        while True:
            with self._lock:
                delta, error, is_over = self._pending.take(), self._error, self._is_over
            if delta is not None:
                return delta
            if error is not None:
                raise error
            if is_over:
                return None
            await self._wait()

    async def _wait(self) -> None:
        self._waiter = self.loop.create_future()
        try:
            # What came before the waiter was there has woken nobody.
            if not (self._pending or self._is_over):
                await self._waiter
        finally:
            self._waiter = None

    def look(self) -> None:
        """Reader's loop: lets a task that waits look again."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
