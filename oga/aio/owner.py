"""The thread that owns an engine: it creates it, runs its steps, and carries out what other threads ask between them.

::

    tasks --- commands ---> [ take commands | step | wake readers ] --- mailboxes ---> tasks
                                  owner thread, one engine

Invariants:

- O1: every command's future is answered: with its result, its failure, or the reason why the engine is over.
- O2: a command waits for at most one step.
- O3: whatever ends the engine ends every open turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from oga.errors import EngineClosedError, InternalError, OgaError, QueueFullError
from oga.turns import Turns

if TYPE_CHECKING:
    from oga.aio.mailbox import Mailbox
    from oga.engine import Engine
    from oga.statistics import EngineStatistics

T = TypeVar("T")

STATISTICS_SECONDS = 0.02  # a snapshot costs a few microseconds, a step of a small model some hundred
OVER = "The engine was closed. Open another oga.AsyncEngine."


class Owner:
    """An engine and the thread that owns it."""

    def __init__(self, open_engine: Callable[[], Engine], max_waiting: int | None) -> None:
        """``open_engine`` runs on the owner thread. ``max_waiting`` None admits any number of turns."""
        self._open_engine = open_engine
        self._max_waiting = max_waiting
        self._commands: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_closing = False
        self._has_ended = False
        self._admitted = 0
        self._woken: dict[Mailbox, None] = {}
        self._thread = threading.Thread(target=self._main, name="oga-engine", daemon=True)
        self._opened: Future[Engine] = Future()
        self.failure: OgaError | None = None
        self.statistics: EngineStatistics | None = None
        self.largest_batch = 0
        self._statistics_at = 0.0

    def start(self) -> Future[Engine]:
        """Starts the thread; the future has the engine, or why it could not be opened."""
        self._thread.start()
        return self._opened

    # Any thread.

    @property
    def is_running(self) -> bool:
        """Whether the engine was opened and has not ended."""
        return self._thread.is_alive() and not self._has_ended

    @property
    def admitted(self) -> int:
        """Turns that were admitted and have not ended."""
        return self._admitted

    def admit(self) -> None:
        """Takes a place for one turn. Raises :class:`oga.QueueFullError` when all are taken."""
        with self._lock:
            if self._is_closing:
                raise EngineClosedError(OVER)
            if self._max_waiting is not None and self._admitted >= self.largest_batch + self._max_waiting:
                raise QueueFullError(
                    f"{self._admitted} turns are running or waiting, and the engine takes {self.largest_batch} + "
                    f"{self._max_waiting} (max_waiting). Try again when some have ended."
                )
            self._admitted += 1

    def leave(self) -> None:
        """Gives a place back."""
        with self._lock:
            self._admitted -= 1

    def submit(self, command: Callable[[], T]) -> Future[T]:
        """Runs ``command`` on the owner thread before its next step; one that was cancelled until then never runs."""
        future: Future[T] = Future()

        def run() -> None:
            if not future.set_running_or_notify_cancel():
                return
            if self._has_ended:
                future.set_exception(self.failure or EngineClosedError(OVER))
                return
            try:
                future.set_result(command())
            except BaseException as error:
                future.set_exception(error)

        with self._lock:
            if self._has_ended:
                future.set_exception(self.failure or EngineClosedError(OVER))
            else:
                self._commands.put(run)
        return future

    def post(self, command: Callable[[], None]) -> None:
        """As :meth:`submit` for what needs no answer; takes no lock, so a finalizer may call it."""
        self._commands.put(command)

    def close(self, *, drain: bool) -> None:
        """Takes no more turns; lets those that are open end, or fails them. Does not wait."""
        with self._lock:
            self._is_closing = True
        self._commands.put(None if drain else self._abort)

    def join(self, seconds: float | None = None) -> bool:
        """Waits for the end of the thread; whether it came."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    # The owner thread.

    def wake(self, mailbox: Mailbox) -> None:
        """Remembers to wake a reader after the step."""
        self._woken[mailbox] = None

    def _main(self) -> None:
        try:
            engine = self._open_engine()
        except BaseException as error:
            self._end(None)
            self._opened.set_exception(error)
            return
        self.engine = engine
        self.turns = Turns(engine)
        self.largest_batch = engine.get_capabilities().configured_max_batch_size
        self._take_statistics()
        self._opened.set_result(engine)
        try:
            self._run()
        finally:
            self._end(engine)

    def _run(self) -> None:
        while not (self._is_closing and len(self.turns) == 0 and self._commands.empty()):
            try:
                self._take_commands()
                if self.failure is None and self.turns.has_work:
                    self.turns.step()
            except OgaError as error:
                self._break(error)
            except BaseException as error:
                self._break(InternalError(f"The step loop failed: {error!r}."))
                raise
            self._wake_readers()
            if time.monotonic() - self._statistics_at >= STATISTICS_SECONDS:
                self._take_statistics()

    def _take_commands(self) -> None:
        while True:
            try:
                command = self._commands.get_nowait()
            except queue.Empty:
                if self._is_closing or (self.failure is None and self.turns.has_work):
                    return
                self._wake_readers()
                self._take_statistics()
                command = self._commands.get()
            if command is not None:
                command()
            command = None  # what it holds may be waiting to be dropped
            if self._is_closing and len(self.turns) == 0:
                return

    def _abort(self) -> None:
        self.turns.fail_all(EngineClosedError("The engine was closed before the turn ended."))

    def _break(self, error: OgaError) -> None:
        self.failure = error
        self.turns.fail_all(error)

    def _wake_readers(self) -> None:
        """One call per event loop, however many readers have something new."""
        by_loop: dict[asyncio.AbstractEventLoop, list[Mailbox]] = {}
        for mailbox in self._woken:
            by_loop.setdefault(mailbox.loop, []).append(mailbox)
        self._woken.clear()
        for loop, mailboxes in by_loop.items():
            with contextlib.suppress(RuntimeError):  # the loop is closed, so nobody reads
                loop.call_soon_threadsafe(_look, mailboxes)

    def _take_statistics(self) -> None:
        self.statistics = self.engine.get_statistics()
        self._statistics_at = time.monotonic()

    def _end(self, engine: Engine | None) -> None:
        with self._lock:
            self._is_closing = self._has_ended = True
        if engine is not None:
            self._abort()
        while not self._commands.empty():
            command: Any = self._commands.get()
            if command is not None:
                command()
        if engine is not None:
            self._wake_readers()
            self._take_statistics()
            self.turns.close()
            engine.close()


def _look(mailboxes: list[Mailbox]) -> None:
    for mailbox in mailboxes:
        mailbox.look()
