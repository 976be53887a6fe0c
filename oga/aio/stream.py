"""The output of one turn as an asynchronous iterator, and the turn's life on the owner thread."""

from __future__ import annotations

import asyncio
import contextlib
import time
from typing import TYPE_CHECKING, Any, Protocol, Self

from oga.aio.mailbox import Mailbox
from oga.errors import EngineClosedError, InvalidStateError, OgaError
from oga.generation import Delta, Pending, Result, Timings

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from oga._native.tokens import Tokens
    from oga.aio.owner import Owner
    from oga.request import RequestOptions
    from oga.turns import OpenTurn, Receiver, Turns

__all__ = ["AsyncStream"]


class Work(Protocol):
    """A turn that is ready to begin."""

    def begin(self, turns: Turns, settings: Mapping[str, Any], reader: Receiver) -> OpenTurn:
        """Owner thread: queues it."""

    def left(self) -> None:
        """Any thread: nobody reads it any more."""

    def refused(self) -> None:
        """Owner thread: it never begins."""


class SingleTurn:
    """A turn on a request of its own."""

    def __init__(self, tokens: Tokens, options: Callable[[], RequestOptions | None]) -> None:
        self._tokens = tokens
        self._options = options

    def begin(self, turns: Turns, settings: Mapping[str, Any], reader: Receiver) -> OpenTurn:
        """Owner thread: queues it."""
        options = self._options()
        try:
            return turns.begin(self._tokens, settings, reader, options=options)
        finally:
            if options is not None:
                options.close()

    def left(self) -> None:
        """Any thread: nothing else depends on it."""

    def refused(self) -> None:
        """Owner thread: nothing was taken."""


class Ticket:
    """One turn between a task and the owner thread. It knows no task and no stream, so both may be dropped."""

    def __init__(self, owner: Owner, mailbox: Mailbox, work: Work, settings: Mapping[str, Any]) -> None:
        self.mailbox = mailbox
        self._owner = owner
        self._work = work
        self._settings = settings
        self._turn: OpenTurn | None = None
        self._is_abandoned = False

    def begin(self) -> int:
        """Owner thread: queues the turn and returns its id."""
        try:
            if self._owner.failure is not None or self._is_abandoned:
                self._work.refused()
                raise self._owner.failure or EngineClosedError("The turn was cancelled before it began.")
            self._turn = self._work.begin(self._owner.turns, self._settings, self.mailbox)
        except BaseException:
            self._owner.leave()
            raise
        self.mailbox.timings.accepted = time.monotonic()
        return self._turn.turn_id

    def abandon(self) -> None:
        """Any thread, a finalizer too: ends the turn before the owner's next step."""
        self._is_abandoned = True
        self._work.left()
        self._owner.post(self._cancel)

    def _cancel(self) -> None:
        if self._turn is not None:
            self._owner.turns.cancel(self._turn)


class AsyncStream:
    """The output of one turn, piece by piece; made by :meth:`oga.AsyncEngine.stream`. For one task at a time.

    ::

        async for delta in engine.stream("Once upon a time", max_new_tokens=64):
            print(delta.text, end="", flush=True)

    The turn is queued by the first step of the iteration, by ``await stream.start()``, or by ``async with``. It ends
    within one step of the engine when the task that reads is cancelled or times out, when the loop is left by ``break``
    and the stream is dropped, and at ``await stream.aclose()``.

    A slow reader holds up nobody: what it has not read is merged into its next piece.
    """

    def __init__(self, owner: Owner, prepare: Callable[[], Awaitable[tuple[Work, Mapping[str, Any]]]]) -> None:
        """``prepare()`` encodes the prompt: the turn that is to begin, and its settings."""
        self._owner = owner
        self._prepare = prepare
        self._ticket: Ticket | None = None
        self._has_started = False
        self._is_done = False
        self._turn_id = 0

    @property
    def turn_id(self) -> int:
        """The id of the turn within its sequence; 0 before it was queued."""
        return self._turn_id

    @property
    def timings(self) -> Timings:
        """When the turn went through its stations."""
        return Timings() if self._ticket is None else self._ticket.mailbox.timings

    async def start(self) -> Self:
        """Queues the turn; does nothing when it is. Returns the stream.

        Raises :class:`oga.QueueFullError` when the engine has enough to do, what encoding the prompt and
        :meth:`oga.Request.begin_turn` raise, and the cause when the engine is unhealthy or closed.
        """
        if self._has_started:
            return self
        self._has_started = True
        self._owner.admit()
        mailbox = Mailbox(asyncio.get_running_loop(), self._owner.wake, self._owner.leave)
        try:
            work, settings = await self._prepare()
        except BaseException:
            self._owner.leave()
            raise
        self._ticket = Ticket(self._owner, mailbox, work, settings)
        self._begun = asyncio.wrap_future(self._owner.submit(self._ticket.begin))
        try:
            self._turn_id = await asyncio.shield(self._begun)
        except BaseException:
            self._begun.add_done_callback(_see_outcome)  # nobody else may: the task that would is leaving
            self._abandon()
            raise
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delta:
        if self._is_done:
            raise StopAsyncIteration
        try:
            await self.start()
            if self._ticket is None:
                raise InvalidStateError("This stream could not be started, or is being started by another task.")
            delta = await self._ticket.mailbox.take()
        except BaseException:
            self._abandon()
            raise
        if delta is None or delta.last:
            self._is_done = True
        if delta is None:
            raise StopAsyncIteration
        return delta

    async def result(self) -> Result:
        """Reads what is left to the end, as one result. Cancelling the task that waits ends the turn."""
        pending = Pending()
        async for delta in self:
            pending.add(delta)
        return Result.of(pending.take() or Delta(), self.timings)

    async def aclose(self) -> None:
        """Ends the turn, unless it is over; returns when the engine has nothing of it any more. Idempotent."""
        self._abandon()
        if self._ticket is None:
            return
        await asyncio.wait({self._begun})
        if self._begun.exception() is None:
            with contextlib.suppress(OgaError):
                while await self._ticket.mailbox.take() is not None:
                    pass

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *exception: object) -> None:
        await self.aclose()

    def __del__(self) -> None:
        self._abandon()

    def _abandon(self) -> None:
        if not self._is_done:
            self._is_done = True
            if self._ticket is not None and not self._ticket.mailbox.is_over:
                self._ticket.abandon()


def _see_outcome(begun: asyncio.Future[int]) -> None:
    if not begun.cancelled():
        begun.exception()
