"""Two ways to drive an engine that look the same: the Python API, and the functions of the C API one by one.

A call that the engine refuses raises ``RefusedError`` with the name of its status code, whichever way it was made. The
C driver also checks what the headers promise of every out-parameter when a call fails.
"""

from __future__ import annotations

import abc
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import oga
from oga._native.loader import ffi, lib

TOKEN, FINISHED, BLOCKED, FAILED, RETRYABLE = (1 << bit for bit in range(5))
GARBAGE = 0x5EED


class RefusedError(Exception):
    """A call failed: ``code`` is the name of its status, and ``str()`` its message."""

    def __init__(self, code: oga.StatusCode, message: str) -> None:
        super().__init__(message)
        self.code = "".join(part.capitalize() for part in code.name.split("_"))


@dataclass(frozen=True)
class Seen:
    """What one event said."""

    request: Request | None
    turn_id: int
    flags: int
    token: int
    reason: oga.FinishReason
    error: int
    usage: tuple[int, int, int]
    stop_index: int

    def __str__(self) -> str:
        """For example ``A1 T|F MaxGeneratedTokens [3,2,0]``: request, turn, flags, reason, error and usage."""
        who = "engine" if self.request is None else f"{self.request.name}{self.turn_id}"
        names = {TOKEN: "T", FINISHED: "F", BLOCKED: "CapacityBlocked", FAILED: "Failed", RETRYABLE: "Retryable"}
        parts = [who, "|".join(name for bit, name in names.items() if self.flags & bit)]
        if self.reason not in (oga.FinishReason.NONE, oga.FinishReason.FAILED):
            parts.append("".join(part.capitalize() for part in self.reason.name.split("_")))
        if self.error:
            parts.append(f"error {self.error}")
        if self.flags & FINISHED:
            parts.append("[{},{},{}]".format(*self.usage))
        return " ".join(parts)


class Request(abc.ABC):
    """One request; ``name`` stands for it in transcripts."""

    name: str

    @abc.abstractmethod
    def options(self, **values: Any) -> Any: ...

    @abc.abstractmethod
    def begin_with(self, tokens: Any, options: Any = None) -> int: ...

    @abc.abstractmethod
    def cancel(self, turn: int) -> bool: ...

    @abc.abstractmethod
    def rewind(self, turn: int) -> None: ...

    @abc.abstractmethod
    def close(self) -> None: ...

    @abc.abstractmethod
    def release(self) -> None:
        """Gives the handle back without closing the request first."""

    def begin(self, tokens: Sequence[int], exactly: int | None = None, **values: Any) -> int:
        """Starts a turn, of exactly so many tokens when that is given."""
        if exactly is not None:
            values |= {"max_generated_tokens": exactly, "min_generated_tokens": exactly}
        return self.begin_with(tokens, self.options(**values) if values else None)


class Buffer(abc.ABC):
    """An event buffer."""

    @abc.abstractmethod
    def seen(self) -> list[Seen]: ...

    @abc.abstractmethod
    def has(self, index: int) -> bool:
        """Whether there is an event with this index."""


class Engine(abc.ABC):
    """An engine and the requests made on it."""

    def __init__(self) -> None:
        self.requests: list[Request] = []

    @abc.abstractmethod
    def request(self, name: str, *, max_session_tokens: int | None = None, priority: int | None = None) -> Request: ...

    @abc.abstractmethod
    def fork(self, name: str, origin: Request) -> Request: ...

    @abc.abstractmethod
    def buffer(self, capacity: int) -> Buffer: ...

    @abc.abstractmethod
    def run(self, buffer: Buffer | None) -> list[Seen]: ...

    @abc.abstractmethod
    def pending(self) -> bool: ...

    @abc.abstractmethod
    def capabilities(self) -> tuple[int, int, int]:
        """Largest batch, tokens per step, longest request."""

    @abc.abstractmethod
    def count(self, name: str) -> int:
        """One counter of the statistics."""

    @abc.abstractmethod
    def close(self) -> None: ...


class Driver(abc.ABC):
    """Loads models and makes engines on them."""

    name: ClassVar[str]

    @abc.abstractmethod
    def load(self, folder: Path, overlay: dict[str, Any]) -> Any: ...

    @abc.abstractmethod
    def engine(self, model: Any) -> Engine: ...

    @abc.abstractmethod
    def unload(self, model: Any) -> None: ...


# --- Python -----------------------------------------------------------------------------------------------------------


class _Translated:
    """Errors of the Python API as ``RefusedError``."""

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, oga.OgaError):
            raise RefusedError(error.code, str(error)) from error


def translated(call: Callable[[], Any]) -> Callable[[], Any]:
    """A call of the Python API that raises ``RefusedError`` when it is refused."""

    def translate() -> Any:
        with _Translated():
            return call()

    return translate


class PythonRequest(Request):
    def __init__(self, name: str, request: oga.Request) -> None:
        self.name = name
        self.handle: oga.Request | None = request

    def options(self, **values: Any) -> oga.TurnOptions:
        assert self.handle is not None
        with _Translated():
            return oga.TurnOptions(self.handle, **values)

    def begin_with(self, tokens: Any, options: Any = None) -> int:
        assert self.handle is not None
        with _Translated():
            return self.handle.begin_turn(tokens, options)

    def cancel(self, turn: int) -> bool:
        assert self.handle is not None
        with _Translated():
            return self.handle.cancel_turn(turn)

    def rewind(self, turn: int) -> None:
        assert self.handle is not None
        with _Translated():
            self.handle.rewind_to_start_of_turn(turn)

    def close(self) -> None:
        if self.handle is not None:
            with _Translated():
                self.handle.close()

    def release(self) -> None:
        self.handle = None


class PythonBuffer(Buffer):
    def __init__(self, engine: PythonEngine, buffer: oga.EngineEventBuffer) -> None:
        self.engine, self.handle = engine, buffer

    def seen(self) -> list[Seen]:
        return [
            Seen(
                self.engine.find(event.request),
                event.turn_id,
                int(event.flags),
                event.token or 0,
                event.finish_reason,
                int(event.error_code),
                (event.usage.prompt_tokens, event.usage.generated_tokens, event.usage.cached_prompt_tokens),
                -1 if event.matched_stop_string_index is None else event.matched_stop_string_index,
            )
            for event in self.handle
        ]

    def has(self, index: int) -> bool:
        try:
            return self.handle[index] is not None
        except IndexError:
            return False


class PythonEngine(Engine):
    def __init__(self, engine: oga.Engine) -> None:
        super().__init__()
        self.handle = engine

    def find(self, wanted: oga.Request | None) -> Request | None:
        if wanted is None:
            return None
        return next(each for each in self.requests if isinstance(each, PythonRequest) and each.handle is wanted)

    def request(self, name: str, *, max_session_tokens: int | None = None, priority: int | None = None) -> Request:
        with _Translated(), oga.RequestOptions(max_session_tokens=max_session_tokens, priority=priority) as options:
            self.requests.append(PythonRequest(name, self.handle.create_request(options=options)))
        return self.requests[-1]

    def fork(self, name: str, origin: Request) -> Request:
        assert isinstance(origin, PythonRequest)
        assert origin.handle is not None
        with _Translated():
            self.requests.append(PythonRequest(name, origin.handle.fork()))
        return self.requests[-1]

    def buffer(self, capacity: int) -> Buffer:
        with _Translated():
            return PythonBuffer(self, self.handle.create_event_buffer(capacity))

    def run(self, buffer: Any) -> list[Seen]:
        with _Translated():
            self.handle.run(getattr(buffer, "handle", buffer))
        return list(buffer.seen())

    def pending(self) -> bool:
        with _Translated():
            return self.handle.has_pending_requests()

    def capabilities(self) -> tuple[int, int, int]:
        with _Translated():
            found = self.handle.get_capabilities()
        return found.configured_max_batch_size, found.max_scheduled_tokens, found.max_request_length

    def count(self, name: str) -> int:
        with _Translated():
            return int(getattr(self.handle.get_statistics(), name))

    def close(self) -> None:
        self.handle.close()


class PythonDriver(Driver):
    name = "python"

    def load(self, folder: Path, overlay: dict[str, Any]) -> oga.Model:
        with _Translated(), oga.Config(folder) as config:
            config.overlay(overlay)
            return oga.Model(config)

    def engine(self, model: oga.Model) -> Engine:
        with _Translated():
            return PythonEngine(oga.Engine(model))

    def unload(self, model: oga.Model) -> None:
        model.close()


# --- C ----------------------------------------------------------------------------------------------------------------


def check(result: Any) -> None:
    """Raises what a result says, and frees it."""
    if result == ffi.NULL:
        return
    code = oga.StatusCode(lib.OgaResultGetCode(result))
    message = ffi.string(lib.OgaResultGetError(result)).decode()
    lib.OgaDestroyResult(result)
    assert code is not oga.StatusCode.OK
    assert message
    raise RefusedError(code, message)


def made(kind: str, function: Any, *arguments: Any) -> Any:
    """The handle that a call writes; NULL is written when it fails."""
    out = ffi.new(f"{kind} **", ffi.cast(f"{kind} *", GARBAGE))
    try:
        check(function(*arguments, out))
    except RefusedError:
        assert out[0] == ffi.NULL
        raise
    assert out[0] not in (ffi.NULL, ffi.cast(f"{kind} *", GARBAGE))
    return out[0]


def read(kind: str, function: Any, *arguments: Any) -> Any:
    out = ffi.new(f"{kind} *")
    check(function(*arguments, out))
    return out[0]


class CRequest(Request):
    def __init__(self, name: str, pointer: Any) -> None:
        self.name, self.pointer = name, pointer
        self._options: list[Any] = []

    def options(self, **values: Any) -> Any:
        options = made("OgaTurnOptions", lib.OgaRequestCreateTurnOptions, self.pointer)
        self._options.append(options)
        for name, value in values.items():
            setter = "OgaTurnOptionsSet" + "".join(part.capitalize() for part in name.split("_"))
            check(getattr(lib, setter)(options, value))
        return options

    def begin_raw(self, options: Any, tokens: Any, count: int) -> int:
        out = ffi.new("uint64_t *", GARBAGE)
        try:
            check(lib.OgaRequestBeginTurn(self.pointer, options or ffi.NULL, tokens, count, out))
        except RefusedError:
            assert out[0] == 0
            raise
        return int(out[0])

    def begin_with(self, tokens: Any, options: Any = None) -> int:
        if tokens is None:
            return self.begin_raw(options, ffi.NULL, 3)
        return self.begin_raw(options, ffi.new("int32_t[]", list(tokens)), len(tokens))

    def cancel(self, turn: int) -> bool:
        out = ffi.new("bool *", True)
        try:
            check(lib.OgaRequestCancelTurn(self.pointer, turn, out))
        except RefusedError:
            assert out[0]
            raise
        return bool(out[0])

    def rewind(self, turn: int) -> None:
        check(lib.OgaRequestRewindToStartOfTurn(self.pointer, turn))

    def close(self) -> None:
        if self.pointer != ffi.NULL:
            check(lib.OgaRequestClose(self.pointer))

    def release(self) -> None:
        pointer, self.pointer = self.pointer, ffi.NULL
        lib.OgaDestroyRequest(pointer)

    def free(self) -> None:
        for options in self._options:
            lib.OgaDestroyTurnOptions(options)
        self.release()


class CBuffer(Buffer):
    def __init__(self, engine: CEngine, pointer: Any) -> None:
        self.engine, self.pointer = engine, pointer

    def seen(self) -> list[Seen]:
        count = lib.OgaEngineEventBufferGetCount(self.pointer)
        return [self._seen(lib.OgaEngineEventBufferGet(self.pointer, index)) for index in range(count)]

    def _seen(self, event: Any) -> Seen:
        usage = read("const OgaTurnUsage *", lib.OgaEngineEventGetUsage, event)
        counts = (
            int(read("uint64_t", lib.OgaTurnUsageGetPromptTokens, usage)),
            int(read("uint64_t", lib.OgaTurnUsageGetGeneratedTokens, usage)),
            int(read("uint64_t", lib.OgaTurnUsageGetCachedPromptTokens, usage)),
        )
        return Seen(
            self.engine.find(read("const OgaRequest *", lib.OgaEngineEventGetRequest, event)),
            read("uint64_t", lib.OgaEngineEventGetTurnId, event),
            read("uint32_t", lib.OgaEngineEventGetFlags, event),
            read("int32_t", lib.OgaEngineEventGetToken, event),
            oga.FinishReason(read("uint32_t", lib.OgaEngineEventGetFinishReason, event)),
            read("uint32_t", lib.OgaEngineEventGetErrorCode, event),
            counts,
            read("int32_t", lib.OgaEngineEventGetMatchedStopStringIndex, event),
        )

    def has(self, index: int) -> bool:
        return bool(lib.OgaEngineEventBufferGet(self.pointer, index) != ffi.NULL)


class CEngine(Engine):
    def __init__(self, pointer: Any) -> None:
        super().__init__()
        self.pointer = pointer
        self._buffers: list[CBuffer] = []

    def find(self, wanted: Any) -> Request | None:
        if wanted == ffi.NULL:
            return None
        return next(each for each in self.requests if isinstance(each, CRequest) and each.pointer == wanted)

    def request(self, name: str, *, max_session_tokens: int | None = None, priority: int | None = None) -> Request:
        options = made("OgaRequestOptions", lib.OgaCreateRequestOptions)
        try:
            check(lib.OgaRequestOptionsSetMaxSessionTokens(options, max_session_tokens or 0))
            check(lib.OgaRequestOptionsSetPriority(options, priority or 0))
            self.requests.append(CRequest(name, made("OgaRequest", lib.OgaEngineCreateRequest, self.pointer, options)))
        finally:
            lib.OgaDestroyRequestOptions(options)
        return self.requests[-1]

    def fork(self, name: str, origin: Request) -> Request:
        assert isinstance(origin, CRequest)
        self.requests.append(CRequest(name, made("OgaRequest", lib.OgaRequestFork, origin.pointer)))
        return self.requests[-1]

    def buffer(self, capacity: int) -> Buffer:
        pointer = made("OgaEngineEventBuffer", lib.OgaCreateEngineEventBuffer, self.pointer, capacity)
        self._buffers.append(CBuffer(self, pointer))
        return self._buffers[-1]

    def run(self, buffer: Any) -> list[Seen]:
        check(lib.OgaEngineRun(self.pointer, ffi.NULL if buffer is None else buffer.pointer))
        return list(buffer.seen())

    def pending(self) -> bool:
        return bool(read("bool", lib.OgaEngineHasPendingRequests, self.pointer))

    def capabilities(self) -> tuple[int, int, int]:
        found = made("OgaEngineCapabilities", lib.OgaEngineGetCapabilities, self.pointer)
        limits = (
            int(lib.OgaEngineCapabilitiesGetConfiguredMaxBatchSize(found)),
            int(lib.OgaEngineCapabilitiesGetMaxScheduledTokens(found)),
            int(lib.OgaEngineCapabilitiesGetMaxRequestLength(found)),
        )
        lib.OgaDestroyEngineCapabilities(found)
        return limits

    def count(self, name: str) -> int:
        statistics = made("OgaEngineStatistics", lib.OgaEngineGetStatistics, self.pointer)
        try:
            return int(read("uint64_t", lib.OgaEngineStatisticsGetCount, statistics, name.encode()))
        finally:
            lib.OgaDestroyEngineStatistics(statistics)

    def close(self) -> None:
        """Destroys the engine, and after it the handles that outlive it."""
        pointer, self.pointer = self.pointer, ffi.NULL
        lib.OgaDestroyEngine(pointer)

    def free(self) -> None:
        self.close()
        for buffer in self._buffers:
            lib.OgaDestroyEngineEventBuffer(buffer.pointer)
        for request in self.requests:
            assert isinstance(request, CRequest)
            request.free()


class CDriver(Driver):
    name = "c"

    def load(self, folder: Path, overlay: dict[str, Any]) -> Any:
        config = made("OgaConfig", lib.OgaCreateConfig, os.fsencode(folder))
        try:
            check(lib.OgaConfigOverlay(config, json.dumps(overlay).encode()))
            return made("OgaModel", lib.OgaCreateModelFromConfig, config)
        finally:
            lib.OgaDestroyConfig(config)

    def engine(self, model: Any) -> Engine:
        return CEngine(made("OgaEngine", lib.OgaCreateEngine, model))

    def unload(self, model: Any) -> None:
        lib.OgaDestroyModel(model)


DRIVERS: tuple[Driver, ...] = (PythonDriver(), CDriver())
