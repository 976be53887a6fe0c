"""What a step tells the host about one request."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from oga._native.check import check
from oga._native.loader import ffi, lib
from oga.logprobs import TokenLogprobs, read_logprobs
from oga.usage import TurnUsage, copy_usage

if TYPE_CHECKING:
    from oga.event_buffer import EngineEventBuffer
    from oga.request import Request

__all__ = ["EngineErrorCode", "EngineEvent", "EngineEventFlags", "ErrorCode", "FailureKind", "FinishReason"]


class EngineEventFlags(enum.IntFlag):
    """What an event carries; a set of bits, to be tested as ``event.flags & EngineEventFlags.TOKEN``."""

    NONE = 0
    TOKEN = 1
    TURN_FINISHED = 2
    CAPACITY_BLOCKED = 4
    FAILED = 8
    RETRYABLE = 16

    def __str__(self) -> str:
        return f"EngineEventFlags.{self.name or self.value}"


class FinishReason(enum.IntEnum):
    """Why a turn ended."""

    NONE = 0
    EOS = 1
    STOP_STRING = 2
    MAX_GENERATED_TOKENS = 3
    MAX_SESSION_TOKENS = 4
    CANCELLED = 5
    FAILED = 6

    def __str__(self) -> str:
        return f"FinishReason.{self.name}"


class EngineErrorCode(enum.IntEnum):
    """What went wrong, on events with CAPACITY_BLOCKED, FAILED or RETRYABLE."""

    NONE = 0
    CAPACITY_DEFERRED = 1
    EXECUTION_CAPACITY_EXCEEDED = 2
    RETRYABLE_EXECUTION = 3
    REQUEST_UNSERVICEABLE = 4
    ENGINE_CONTRACT_FAILURE = 5
    ENGINE_EXECUTION_FAILURE = 6

    def __str__(self) -> str:
        return f"EngineErrorCode.{self.name}"


ErrorCode = EngineErrorCode
"""The name of the C API."""


class FailureKind(enum.IntEnum):
    """Why a turn failed. The values equal ``OgaFailureKind`` of the C API and never change."""

    NONE = 0
    BAD_LOGITS = 1
    """The model gave this turn logits that are not numbers."""
    NO_ALLOWED_TOKEN = 2
    """The turn's options and grammar leave no token to choose."""
    GRAMMAR_FAILED = 3
    """The turn's grammar could not go on."""
    NEVER_FITS = 4
    """The turn could never fit the cache."""
    EXECUTION = 5
    """The model failed for good, and the engine with it."""
    CONTRACT = 6
    """A promise inside the library was broken, and the engine failed."""

    def __str__(self) -> str:
        return f"FailureKind.{self.name}"


# Plain integers: operators of enums are slow, and events are read for every token.
TOKEN, TURN_FINISHED = int(EngineEventFlags.TOKEN), int(EngineEventFlags.TURN_FINISHED)


class EngineEvent:
    """A view of one event of a buffer, valid until the next accepted run on that buffer, or until the buffer is closed.

    Afterwards every property raises :class:`oga.InvalidStateError`; what a property returned stays valid. Any thread,
    between two runs. A view keeps its buffer alive.
    """

    __slots__ = ("__weakref__", "_bits", "_buffer", "_generation", "_native")
    _buffer: EngineEventBuffer
    _generation: int
    _native: Any
    _bits: int | None  # the flags, once read

    def __init__(self) -> None:
        raise TypeError("oga.EngineEvent: No constructor defined! Events come from an EngineEventBuffer.")

    @classmethod
    def _view(cls, buffer: EngineEventBuffer, generation: int, pointer: Any) -> EngineEvent:
        self = cls.__new__(cls)
        self._buffer = buffer
        self._generation = generation
        self._native = pointer
        self._bits = None
        return self

    def _read(self, getter: Any, out: Any) -> Any:
        buffer = self._buffer
        with buffer._guard:
            buffer._check_generation(self._generation)
            check(getter(self._native, out))
        return out[0]

    def _has(self, flag: int) -> bool:
        bits = self._bits
        if bits is None or not self._buffer._is_current(self._generation):
            bits = self._bits = self._read(lib.OgaEngineEventGetFlags, ffi.new("uint32_t *"))
        return bits & flag != 0

    @property
    def request(self) -> Request | None:
        """The request the event is about: the caller's own object. None for engine-level events.

        When the program has dropped that object, a closed stand-in takes its place.
        """
        pointer = self._read(lib.OgaEngineEventGetRequest, ffi.new("const OgaRequest **"))
        return None if pointer == ffi.NULL else self._buffer._request_of(pointer)

    @property
    def turn_id(self) -> int:
        """The turn the event belongs to: 1, 2, 3 ... within its request; 0 for engine-level events."""
        return int(self._read(lib.OgaEngineEventGetTurnId, ffi.new("uint64_t *")))

    @property
    def flags(self) -> EngineEventFlags:
        """What the event carries."""
        return EngineEventFlags(self._read(lib.OgaEngineEventGetFlags, ffi.new("uint32_t *")))

    @property
    def token(self) -> int | None:
        """The generated token id; None without TOKEN."""
        if not self._has(TOKEN):
            return None
        return int(self._read(lib.OgaEngineEventGetToken, ffi.new("int32_t *")))

    @property
    def finish_reason(self) -> FinishReason:
        """Why the turn ended; NONE without TURN_FINISHED."""
        return FinishReason(self._read(lib.OgaEngineEventGetFinishReason, ffi.new("uint32_t *")))

    @property
    def matched_stop_string_index(self) -> int | None:
        """The index of the stop string that matched; None unless the reason is STOP_STRING."""
        index = int(self._read(lib.OgaEngineEventGetMatchedStopStringIndex, ffi.new("int32_t *")))
        return None if index < 0 else index

    @property
    def error_code(self) -> EngineErrorCode:
        """What went wrong; NONE on events that report no trouble."""
        return EngineErrorCode(self._read(lib.OgaEngineEventGetErrorCode, ffi.new("uint32_t *")))

    @property
    def failure(self) -> FailureKind:
        """Why the turn failed; NONE unless the finish reason is FAILED."""
        return FailureKind(self._read(lib.OgaEngineEventGetFailure, ffi.new("uint32_t *")))

    @property
    def usage(self) -> TurnUsage:
        """The turn's token counts; all zero without TURN_FINISHED."""
        with self._buffer._guard:
            return copy_usage(self._read(lib.OgaEngineEventGetUsage, ffi.new("const OgaTurnUsage **")))

    @property
    def text(self) -> str:
        """The text that this event makes certain; empty unless the turn emits text (:meth:`TurnOptions.set_emit_text`).

        Whole characters, nothing is ever taken back: what may still become part of a stop string or of a character
        comes with a later event, the last at the turn's end. The texts of a turn's events add up to its visible text.
        """
        out, size = ffi.new("const char **"), ffi.new("size_t *")
        with self._buffer._guard:
            self._buffer._check_generation(self._generation)
            check(lib.OgaEngineEventGetText(self._native, out, size))
            return bytes(ffi.buffer(out[0], size[0])).decode("utf-8")

    @property
    def logprobs(self) -> TokenLogprobs | None:
        """The log-probabilities that come with the token; None unless asked for (:meth:`TurnOptions.set_logprobs`)."""
        with self._buffer._guard:
            self._buffer._check_generation(self._generation)
            return read_logprobs(lib.OgaEngineEventGetLogprobs, self._native)

    @property
    def prompt_logprobs(self) -> list[TokenLogprobs | None] | None:
        """The log-probability of every token of the turn's input, on the turn's first event.

        None on other events and unless asked for (:meth:`TurnOptions.set_prompt_logprobs`). The entry of the first
        token of a sequence, which nothing predicts, is None. A turn that ends early has fewer entries.
        """
        count = ffi.new("size_t *")
        with self._buffer._guard:
            scored = self._read(lib.OgaEngineEventGetPromptLogprobsCount, count)
            if scored == 0:
                return None
            getter = lib.OgaEngineEventGetPromptLogprobs
            return [read_logprobs(getter, self._native, index) for index in range(scored)]

    def __repr__(self) -> str:
        if not self._buffer._is_current(self._generation):
            return "<oga.EngineEvent, stale>"
        parts = [f"turn_id={self.turn_id}", f"flags={self.flags.name}"]
        if self.token is not None:
            parts.append(f"token={self.token}")
        if self._has(TURN_FINISHED):
            parts.append(f"finish_reason={self.finish_reason.name}")
        if self.error_code:
            parts.append(f"error_code={self.error_code.name}")
        return f"<oga.EngineEvent {' '.join(parts)}>"
