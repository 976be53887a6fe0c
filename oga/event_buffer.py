"""Where a run puts its events."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

from oga._native.check import check
from oga._native.handle import Handle, address
from oga._native.loader import ffi, lib
from oga._native.registry import RequestRegistry
from oga.errors import InvalidStateError
from oga.event import TURN_FINISHED, EngineEvent
from oga.request import Request
from oga.sequences import item_position
from oga.usage import read_usage

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["EngineEventBuffer", "EventColumns"]


class EventColumns(NamedTuple):
    """All events of a run as arrays of one length, in the order of the buffer. Copies, valid for ever."""

    request: list[Request | None]
    """The caller's request objects; None for engine-level events."""
    turn_id: npt.NDArray[np.uint64]
    flags: npt.NDArray[np.uint32]
    """Bits of :class:`oga.EngineEventFlags`."""
    token: npt.NDArray[np.int32]
    """Meaningful where ``flags & EngineEventFlags.TOKEN``, otherwise 0."""
    finish_reason: npt.NDArray[np.uint32]
    """Values of :class:`oga.FinishReason`."""
    matched_stop_string_index: npt.NDArray[np.int32]
    """-1 unless the reason is STOP_STRING."""
    error_code: npt.NDArray[np.uint32]
    """Values of :class:`oga.EngineErrorCode`."""
    prompt_tokens: npt.NDArray[np.uint64]
    generated_tokens: npt.NDArray[np.uint64]
    cached_prompt_tokens: npt.NDArray[np.uint64]


class EngineEventBuffer(Handle):
    """A sequence of the events of the last run on it; made by :meth:`oga.Engine.create_event_buffer`.

    ``len(buffer)``, ``buffer[i]`` and iteration give :class:`oga.EngineEvent` views. Reading is legal on any thread,
    between two runs; it waits while a run on this buffer is in progress.
    """

    _destroy = "OgaDestroyEngineEventBuffer"
    _capacity: int
    _registry: RequestRegistry
    _generation: int
    # Weak, because a view keeps its buffer alive; while somebody holds a view, buffer[i] is that view.
    _views: list[weakref.ref[EngineEvent] | None]
    _stand_ins: dict[int, Request]

    def __init__(self) -> None:
        raise TypeError("oga.EngineEventBuffer: No constructor defined! Use Engine.create_event_buffer(capacity).")

    @classmethod
    def _take(cls, pointer: Any, capacity: int, registry: RequestRegistry) -> EngineEventBuffer:
        self = cls.__new__(cls)
        self._capacity = capacity
        self._registry = registry
        self._generation = 0
        self._views = []
        self._stand_ins = {}
        Handle.__init__(self, pointer)
        return self

    @property
    def capacity(self) -> int:
        """The most events one run hands out through this buffer."""
        return self._capacity

    def columns(self) -> EventColumns:
        """All events of the last run as NumPy arrays of shape [len(buffer)]. Raises on a closed buffer."""
        import numpy as np

        with self._guard:
            count = len(self)
            usage = np.zeros((count, 3), np.uint64)
            columns = EventColumns(
                [],
                turn_id=np.zeros(count, np.uint64),
                flags=np.zeros(count, np.uint32),
                token=np.zeros(count, np.int32),
                finish_reason=np.zeros(count, np.uint32),
                matched_stop_string_index=np.zeros(count, np.int32),
                error_code=np.zeros(count, np.uint32),
                prompt_tokens=usage[:, 0],
                generated_tokens=usage[:, 1],
                cached_prompt_tokens=usage[:, 2],
            )
            self._fill(columns, _cells(usage))
            return columns

    def _fill(self, columns: EventColumns, usage: Any) -> None:
        cells = [(getter, _cells(column)) for getter, column in zip(_column_getters(), columns[1:7], strict=True)]
        request, native_usage = ffi.new("const OgaRequest **"), ffi.new("const OgaTurnUsage **")
        for index in range(len(self)):
            event = lib.OgaEngineEventBufferGet(self._pointer, index)
            for getter, cell in cells:
                check(getter(event, cell + index))
            check(lib.OgaEngineEventGetUsage(event, native_usage))
            read_usage(native_usage[0], usage + 3 * index)
            check(lib.OgaEngineEventGetRequest(event, request))
            columns.request.append(None if request[0] == ffi.NULL else self._request_of(request[0]))

    def __len__(self) -> int:
        with self._guard:
            return int(lib.OgaEngineEventBufferGetCount(self._pointer))

    def __getitem__(self, index: SupportsIndex) -> EngineEvent:
        """The view of one event; negative indices count from the end. Raises IndexError."""
        with self._guard:
            return self._view(item_position(index, len(self), "event"))

    def __iter__(self) -> Iterator[EngineEvent]:
        """The views of this run; the iteration raises when another run on the buffer comes in between."""
        generation = self._generation
        for index in range(len(self)):
            with self._guard:
                self._check_generation(generation)
                view = self._view(index)
            yield view

    def _view(self, position: int) -> EngineEvent:
        known = self._views[position]
        view = None if known is None else known()
        if view is None:
            pointer = lib.OgaEngineEventBufferGet(self._pointer, position)
            view = EngineEvent._view(self, self._generation, pointer)
            self._views[position] = weakref.ref(view)
        return view

    def _is_current(self, generation: int) -> bool:
        return generation == self._generation and not self.closed

    def _check_generation(self, generation: int) -> None:
        if not self._is_current(generation):
            raise InvalidStateError(
                "This event is stale: its buffer was closed or has taken part in another run since. "
                "Copy what you need from an event before the next run, or use buffer.columns()."
            )

    def _accept_run(self) -> None:
        """Ends the views of the run before and notes the turns that this one finished."""
        count = len(self)
        self._generation += 1
        self._views = [None] * count
        self._stand_ins.clear()
        open_turns = self._registry.open_turns
        flags, request = ffi.new("uint32_t *"), ffi.new("const OgaRequest **")
        for index in range(count if open_turns else 0):
            event = lib.OgaEngineEventBufferGet(self._pointer, index)
            check(lib.OgaEngineEventGetFlags(event, flags))
            if flags[0] & TURN_FINISHED:
                check(lib.OgaEngineEventGetRequest(event, request))
                open_turns.discard(address(request[0]))

    def _request_of(self, pointer: Any) -> Request:
        found = self._registry.find(pointer)
        if found is None:
            found = self._stand_ins.setdefault(address(pointer), Request._stand_in())
        return found


def _column_getters() -> tuple[Any, ...]:
    return (
        lib.OgaEngineEventGetTurnId,
        lib.OgaEngineEventGetFlags,
        lib.OgaEngineEventGetToken,
        lib.OgaEngineEventGetFinishReason,
        lib.OgaEngineEventGetMatchedStopStringIndex,
        lib.OgaEngineEventGetErrorCode,
    )


def _cells(column: Any) -> Any:
    """A pointer to a column's memory, for the C getters to write to."""
    kind = {"uint64": "uint64_t", "uint32": "uint32_t", "int32": "int32_t"}[column.dtype.name]
    return ffi.cast(f"{kind} *", ffi.from_buffer(column, require_writable=True))
