"""Turns in progress on one engine: begins them, runs the engine, and hands each turn what it has produced.

Belongs to the engine's thread. The asyncio engine and :class:`oga.LLM` are loops around it.

Invariants:

- T1: every turn that began gets exactly one ending: a last delta, or a failure.
- T2: a turn's own request is closed with its ending; a kept request stays.
- T3: a receiver is called on the engine's thread and never makes it wait.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from oga._native.handle import address
from oga.errors import OgaError, ResourceExhaustedError
from oga.event import EngineErrorCode, EngineEventFlags, FailureKind, FinishReason
from oga.failures import OF_THE_ENGINE, turn_error
from oga.generation import Delta
from oga.stream import MAX_FRUITLESS_RUNS, in_words_of_streams
from oga.turn_options import TurnOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oga._native.tokens import Tokens
    from oga.engine import Engine
    from oga.event import EngineEvent
    from oga.request import Request, RequestOptions

ENGINE_FAILURES = (EngineErrorCode.ENGINE_CONTRACT_FAILURE, EngineErrorCode.ENGINE_EXECUTION_FAILURE)
LOGPROBS = ("logprobs", "logprob_tokens", "prompt_logprobs")
FIRST_PAUSE_SECONDS = 0.001
LONGEST_PAUSE_SECONDS = 0.05


class Receiver(Protocol):
    """Whoever wants the output of a turn."""

    def receive(self, delta: Delta) -> None:
        """More output; ``delta.last`` on the last."""

    def fail(self, error: OgaError) -> None:
        """The turn failed; nothing comes after it."""


class OpenTurn:
    """A turn that has begun and not ended."""

    __slots__ = ("failure", "is_kept", "key", "receiver", "request", "turn_id", "wants_logprobs")

    def __init__(self, request: Request, is_kept: bool, receiver: Receiver) -> None:
        self.request = request
        self.is_kept = is_kept
        self.receiver = receiver
        self.key = address(request._pointer)
        self.turn_id = 0
        self.failure = FailureKind.NONE  # of a turn that fails with the engine, until the engine says why
        self.wants_logprobs = False


class Turns:
    """The open turns of an engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._buffer = engine.create_event_buffer(engine.get_capabilities().configured_max_batch_size)
        self._open: dict[int, OpenTurn] = {}
        self._fruitless_runs = 0
        self._has_text = (engine.model.path / "tokenizer.json").exists()

    def __len__(self) -> int:
        return len(self._open)

    @property
    def has_work(self) -> bool:
        """Whether a step would do something; also reclaims requests that were dropped."""
        return self._engine.has_pending_requests()

    def begin(
        self,
        tokens: Tokens,
        settings: Mapping[str, Any],
        receiver: Receiver,
        *,
        options: RequestOptions | None = None,
        kept: Request | None = None,
    ) -> OpenTurn:
        """Queues a turn on ``kept``, or on a request of its own made with ``options``.

        ``settings`` are what :func:`oga.stream.turn_settings` makes of the keywords of a stream, which errors name.
        Raises what :meth:`oga.Request.begin_turn` raises; nothing is left behind then.
        """
        request = kept if kept is not None else self._engine.create_request(options=options)
        try:
            turn = OpenTurn(request, kept is not None, receiver)
            turn.wants_logprobs = any(settings.get(name) is not None for name in LOGPROBS)
            with in_words_of_streams(), TurnOptions(request, **settings) as turn_options:
                if self._has_text:
                    turn_options.set_emit_text(True)
                turn.turn_id = request.begin_turn(tokens, turn_options)
        except BaseException:
            if kept is None:
                request.close()
            raise
        self._open[turn.key] = turn
        return turn

    def cancel(self, turn: OpenTurn) -> None:
        """Ends a turn as CANCELLED. Its own request is gone at once; a kept one gives the rest of its output first."""
        if self._open.get(turn.key) is not turn:
            return
        if turn.is_kept:
            turn.request.cancel_turn(turn.turn_id)
        else:
            del self._open[turn.key]
            turn.request.close()
            turn.receiver.receive(Delta(finish_reason=FinishReason.CANCELLED))

    def close_request(self, request: Request) -> None:
        """Closes a kept request; a turn that it has open ends as CANCELLED."""
        turn = self._open.get(address(request._pointer))
        request.close()
        if turn is not None:
            del self._open[turn.key]
            turn.receiver.receive(Delta(finish_reason=FinishReason.CANCELLED))

    def step(self) -> None:
        """Runs the engine once. Raises :class:`oga.EngineUnhealthyError` when it is over with the engine."""
        fruitless = broken = False
        for event in self._engine.run(self._buffer):
            request = event.request
            broken = broken or event.error_code in ENGINE_FAILURES  # without a failure where no turn was open
            if request is None:
                fruitless = not event.flags & EngineEventFlags.FAILED
            elif not request.closed and (turn := self._open.get(address(request._pointer))) is not None:
                self._receive(turn, event)
        if broken:
            self._raise_cause()
        self._count_fruitless(fruitless)

    def fail_all(self, error: OgaError) -> None:
        """Ends every open turn with ``error``, which is why the engine failed where turns failed with it.

        Kept requests lose their open turn.
        """
        for turn in list(self._open.values()):
            self._end(turn)
            if turn.is_kept and not turn.request.closed:
                turn.request.close()
            turn.receiver.fail(turn_error(turn.failure, error) if turn.failure else error)

    def close(self) -> None:
        """Releases the event buffer."""
        self._buffer.close()

    def _receive(self, turn: OpenTurn, event: EngineEvent) -> None:
        delta = Delta()
        if (token := event.token) is not None:
            delta.token_ids.append(token)
        if text := event.text:
            delta.pieces.append(text)
        elif token is not None:
            delta.pieces.append("")
        if turn.wants_logprobs:
            _add_logprobs(event, delta)
        delta.finish_reason = event.finish_reason
        if not delta.last:
            turn.receiver.receive(delta)
            return
        failure = event.failure
        if failure in OF_THE_ENGINE:
            turn.failure = failure
            return  # all turns that are open fail together, with the cause
        delta.usage = event.usage
        delta.stop_string = event.matched_stop_string_index
        self._end(turn)
        if delta.finish_reason is FinishReason.FAILED:
            turn.receiver.fail(turn_error(failure))
        else:
            turn.receiver.receive(delta)

    def _raise_cause(self) -> NoReturn:
        """Drains an engine that failed for good, until it says why."""
        while True:
            for event in self._engine.run(self._buffer):
                request = event.request
                if request is not None and not request.closed and (turn := self._open.get(address(request._pointer))):
                    self._receive(turn, event)

    def _end(self, turn: OpenTurn) -> None:
        del self._open[turn.key]
        if not turn.is_kept:
            turn.request.close()

    def _count_fruitless(self, fruitless: bool) -> None:
        self._fruitless_runs = self._fruitless_runs + 1 if fruitless else 0
        if self._fruitless_runs == 0:
            return
        if self._fruitless_runs >= MAX_FRUITLESS_RUNS:
            self._fruitless_runs = 0
            self.fail_all(
                ResourceExhaustedError(
                    f"The engine made no progress in {MAX_FRUITLESS_RUNS} runs: its cache is full. "
                    "Close conversations that are no longer needed, or configure more "
                    "engine.dynamic_batching.num_blocks."
                )
            )
            return
        time.sleep(min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * self._fruitless_runs))


def _add_logprobs(event: EngineEvent, delta: Delta) -> None:
    if (found := event.logprobs) is not None:
        delta.logprobs.append(found)
    delta.prompt_logprobs = event.prompt_logprobs
