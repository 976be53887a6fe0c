"""Streams: the simplest way to generate, on top of requests, turns and events.

All streams of an engine share one event buffer: a step that one of them asks for hands every other one its tokens too.
"""

from __future__ import annotations

import contextlib
import math
import operator
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from oga._native.handle import address
from oga._native.sampling_table import OFF, WARPERS
from oga.errors import (
    ArgumentTypeError,
    InvalidArgumentError,
    InvalidStateError,
    OgaError,
    ResourceExhaustedError,
)
from oga.event import EngineEvent, EngineEventFlags, FinishReason
from oga.failures import turn_error
from oga.turn_options import SamplingSettings, TurnOptions

if TYPE_CHECKING:
    from oga._native.tokens import Tokens
    from oga.chat import Message
    from oga.engine import Engine
    from oga.event_buffer import EngineEventBuffer
    from oga.logprobs import TokenLogprobs
    from oga.request import Request, RequestOptions
    from oga.usage import TurnUsage

__all__ = ["Generation", "Stream"]

Piece = TypeVar("Piece", str, int)

# A run that made no progress may be tried again; this many in a row mean that nothing will change.
MAX_FRUITLESS_RUNS = 1000

# The keywords of TurnOptions that streams have another word for.
KEYWORDS = {"max_generated_tokens": "max_new_tokens", "min_generated_tokens": "min_new_tokens"}


class Generation(SamplingSettings, total=False):
    """The generation keywords of :meth:`oga.Engine.stream`."""

    max_new_tokens: int | None
    min_new_tokens: int | None


class Stream(Generic[Piece]):
    """The output of one prompt, piece by piece; made by :meth:`oga.Engine.stream`. Belongs to the engine's thread.

    Reading it to the end, or ``close()``, ends its request. A stream that is dropped half-read abandons its request,
    which the engine reclaims at its next call.
    """

    def __init__(
        self,
        engine: Engine,
        group: StreamGroup,
        request: Request,
        piece_of: Callable[[EngineEvent], Any],
        wants_logprobs: bool,
    ) -> None:
        """``piece_of(event)`` gives the piece that an event brings; None or an empty text is none."""
        self._engine = engine
        self._group = group
        self._request = request
        self._piece_of = piece_of
        self._wants_logprobs = wants_logprobs
        self._pieces: deque[Piece] = deque()
        self._token_ids: list[int] = []
        self._logprobs: list[TokenLogprobs] = []
        self._prompt_logprobs: list[TokenLogprobs | None] | None = None
        self._stop_string_index: int | None = None
        self._finish_reason = FinishReason.NONE
        self._usage: TurnUsage | None = None
        self._error: OgaError | None = None
        group.add(self)

    @property
    def done(self) -> bool:
        """Whether the turn is over or the stream is closed; pieces may still be waiting."""
        return self._request.closed

    @property
    def finish_reason(self) -> FinishReason:
        """Why the turn ended; NONE before its end, CANCELLED after ``close()`` in the middle."""
        return self._finish_reason

    @property
    def usage(self) -> TurnUsage | None:
        """The turn's token counts; None before its end and after ``close()`` in the middle."""
        return self._usage

    @property
    def token_ids(self) -> list[int]:
        """The tokens generated so far, read or not."""
        return list(self._token_ids)

    @property
    def logprobs(self) -> list[TokenLogprobs]:
        """Those of the tokens generated so far; empty unless ``logprobs`` or ``logprob_tokens`` was given."""
        return list(self._logprobs)

    @property
    def prompt_logprobs(self) -> list[TokenLogprobs | None] | None:
        """Those of the prompt's tokens, once it is computed; None unless ``prompt_logprobs`` was given.

        The first token of a sequence follows nothing: its entry is None.
        """
        return self._prompt_logprobs

    @property
    def matched_stop_string_index(self) -> int | None:
        """Which of ``stop_strings`` ended the turn; None when none did."""
        return self._stop_string_index

    @property
    def error(self) -> OgaError | None:
        """Why the turn failed; iterating raises it after the last piece."""
        return self._error

    def __iter__(self) -> Iterator[Piece]:
        return self

    def __next__(self) -> Piece:
        while not self._pieces:
            if self._error is not None:
                raise self._error
            if self.done:
                raise StopIteration
            self.advance()
        return self._pieces.popleft()

    def ready(self) -> list[Piece]:
        """Takes the pieces that are waiting, without running the engine."""
        pieces = list(self._pieces)
        self._pieces.clear()
        return pieces

    def advance(self) -> None:
        """Runs the engine once, for this and every other open stream; does nothing on a stream that is done.

        Raises :class:`oga.InvalidStateError` while a request that is no stream has an unfinished turn, and what
        :meth:`oga.Engine.run` raises.
        """
        if not self.done:
            self._group.step(self._engine)

    def close(self) -> None:
        """Cancels the turn, drops the pieces that are waiting and closes the request. Idempotent."""
        if not self.done:
            self._request.close()
            self._finish_reason = FinishReason.CANCELLED
            self._group.remove(self)
        self._pieces.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _receive(self, event: EngineEvent) -> None:
        if (token := event.token) is not None:
            self._token_ids.append(token)
        if self._wants_logprobs:
            if (logprobs := event.logprobs) is not None:
                self._logprobs.append(logprobs)
            if self._prompt_logprobs is None:
                self._prompt_logprobs = event.prompt_logprobs
        piece = self._piece_of(event)
        if piece is not None and piece != "":
            self._pieces.append(piece)
        if event.finish_reason is not FinishReason.NONE:
            self._finish_reason = event.finish_reason
            self._stop_string_index = event.matched_stop_string_index
            self._usage = event.usage
            if self._finish_reason is FinishReason.FAILED:
                self._error = turn_error(event.failure)
            self._request.close()
            self._group.remove(self)


class StreamGroup:
    """The open streams of one engine and the buffer they share. It owns neither: a dropped stream leaves by itself."""

    def __init__(self, buffer: EngineEventBuffer, open_turns: set[int]) -> None:
        self._buffer = buffer
        self._open_turns = open_turns
        self._streams: weakref.WeakValueDictionary[Request, Stream[Any]] = weakref.WeakValueDictionary()
        self._fruitless_runs = 0

    @property
    def is_open(self) -> bool:
        """Whether a stream is open."""
        return len(self._streams) > 0

    def add(self, stream: Stream[Any]) -> None:
        self._streams[stream._request] = stream

    def remove(self, stream: Stream[Any]) -> None:
        self._streams.pop(stream._request, None)

    def step(self, engine: Engine) -> None:
        """Runs the engine once and hands every stream its events."""
        own = {address(request._pointer) for request in list(self._streams)}
        if others := len(self._open_turns - own):
            raise InvalidStateError(
                f"A stream cannot run the engine while {others} other request(s) have an unfinished turn: it would "
                "take their events. Finish them with Engine.run first, or use begin_turn and run for everything."
            )
        fruitless = False
        for event in engine._run(self._buffer):
            request = event.request
            if request is None:
                fruitless = not event.flags & EngineEventFlags.FAILED
            elif (stream := self._streams.get(request)) is not None:
                stream._receive(event)
        self._count_fruitless(fruitless)

    def _count_fruitless(self, fruitless: bool) -> None:
        self._fruitless_runs = self._fruitless_runs + 1 if fruitless else 0
        if self._fruitless_runs >= MAX_FRUITLESS_RUNS:
            self._fruitless_runs = 0
            raise ResourceExhaustedError(
                f"The engine made no progress in {MAX_FRUITLESS_RUNS} runs: its cache is full. "
                "Close requests that are no longer needed, or configure more engine.dynamic_batching.num_blocks."
            )


def open_stream(
    engine: Engine, prompt: str | Sequence[Message] | Tokens, options: RequestOptions | None, generation: Generation
) -> Stream[Any]:
    """What :meth:`oga.Engine.stream` does."""
    settings = turn_settings(generation)
    tokens, is_text = _encoded(engine, prompt)
    group = engine._streams
    if group is None:
        capacity = engine.get_capabilities().configured_max_batch_size
        group = StreamGroup(engine.create_event_buffer(capacity), engine._registry.open_turns)
        engine._streams = group
    request = engine.create_request(options=options)
    try:
        with in_words_of_streams(), TurnOptions(request, emit_text=is_text, **settings) as turn_options:
            request.begin_turn(tokens, turn_options)
    except BaseException:
        request.close()
        raise
    wants_logprobs = any(settings.get(name) is not None for name in ("logprobs", "logprob_tokens", "prompt_logprobs"))
    return Stream(engine, group, request, operator.attrgetter("text" if is_text else "token"), wants_logprobs)


def _encoded(engine: Engine, prompt: Any) -> tuple[Tokens, bool]:
    """Token ids of a prompt, and whether it was text: then the pieces are text too."""
    is_chat = isinstance(prompt, list | tuple) and len(prompt) > 0 and isinstance(prompt[0], Mapping)
    if not is_chat and not isinstance(prompt, str):
        return prompt, False
    return engine.model.chat_template.encode(prompt) if is_chat else engine.model.tokenizer.encode_prompt(prompt), True


def turn_settings(generation: Generation) -> dict[str, Any]:
    """The keywords of TurnOptions for those of a stream: a distribution that is described is sampled from."""
    settings: dict[str, Any] = dict(generation)
    keywords = Generation.__required_keys__ | Generation.__optional_keys__
    unknown = settings.keys() - keywords
    if unknown:
        known = ", ".join(sorted(keywords))
        name = sorted(unknown)[0]
        raise ArgumentTypeError(f"Engine.stream has no keyword {name!r}; it has {known} and options.", field=name)
    limits = {keyword: settings.pop(keyword, None) for keyword in KEYWORDS.values()}
    limit = limits["max_new_tokens"]
    if limit == 0 and not isinstance(limit, bool):
        raise ArgumentTypeError(
            "max_new_tokens is 0; it must be at least 1, or None for no limit.", field="max_new_tokens"
        )
    described = any(settings.get(name) is not None for name in WARPERS)
    if settings.get("do_sample") is None and described:
        settings["do_sample"] = not _asks_for_greedy(settings)
    return settings | {name: limits[keyword] for name, keyword in KEYWORDS.items()}


@contextlib.contextmanager
def in_words_of_streams() -> Iterator[None]:
    """Lets an error about a keyword of TurnOptions be about the one that streams have for it."""
    try:
        yield
    except OgaError as error:
        error.field = KEYWORDS.get(error.field or "", error.field)
        raise


def _asks_for_greedy(settings: Mapping[str, Any]) -> bool:
    """Whether the most likely token is wanted. Raises for an option beside that, which would silently not act."""
    if settings.get("temperature") == 0:
        cause, remedy = "temperature is 0", "set a temperature above 0"
    elif settings.get("top_k") == 1:
        cause, remedy = "top_k is 1", "set another top_k"
    else:
        return False
    for name in WARPERS:
        value = settings.get(name)
        if isinstance(value, Real) and math.isfinite(value) and value not in OFF[name]:
            raise InvalidArgumentError(
                f"{name} is {value}, which has no effect: {cause}, so the most likely token is taken. "
                f"Unset {name}, or {remedy}.",
                field=name,
            )
    return True
