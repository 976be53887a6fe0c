"""A request: one sequence, all its turns, tokens and state; and its options."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oga._native import arguments
from oga._native.check import check, create
from oga._native.handle import Handle, address, borrowed
from oga._native.loader import ffi, lib
from oga._native.registry import RequestRegistry
from oga._native.tokens import Tokens, as_int32
from oga.errors import OF_PROMPTS

if TYPE_CHECKING:
    from oga.turn_options import TurnOptions

__all__ = ["Request", "RequestOptions"]


class RequestOptions(Handle):
    """A reusable option set for :meth:`oga.Engine.create_request`. Not bound to an engine; one thread at a time."""

    _destroy = "OgaDestroyRequestOptions"

    def __init__(
        self, *, max_session_tokens: int | None = None, priority: int | None = None, cache_salt: int | None = None
    ) -> None:
        """Creates an option set; what is not given stays unset."""
        super().__init__(create("OgaRequestOptions", lib.OgaCreateRequestOptions))
        if max_session_tokens is not None:
            self.set_max_session_tokens(max_session_tokens)
        if priority is not None:
            self.set_priority(priority)
        if cache_salt is not None:
            self.set_cache_salt(cache_salt)

    def set_max_session_tokens(self, max_session_tokens: int) -> None:
        """Limits the whole sequence: prompt, output and continuations of all turns, in tokens.

        0 unsets; the default is min(``search.max_length``, the engine's ``max_request_length``). A value above the
        engine's maximum is refused by ``create_request``.
        """
        value = arguments.uint64(max_session_tokens, "max_session_tokens")
        self._call(lib.OgaRequestOptionsSetMaxSessionTokens, value)

    def set_priority(self, priority: int) -> None:
        """Sets who goes first when not everybody can: higher first, ties by arrival; the default is 0.

        It never starves the others.
        """
        self._call(lib.OgaRequestOptionsSetPriority, arguments.int32(priority, "priority"))

    def set_cache_salt(self, cache_salt: int) -> None:
        """Isolates requests in the prefix cache: only those with the same salt (0 to 2**64 - 1) share beginnings.

        The default is 0. Different salts keep one user from telling, by timing, what another one has asked.
        """
        self._call(lib.OgaRequestOptionsSetCacheSalt, arguments.uint64(cache_salt, "cache_salt"))


class Request(Handle):
    """One sequence with all its turns; made by :meth:`oga.Engine.create_request`.

    Every method belongs to the thread that created the engine; from another one it raises
    :class:`oga.InvalidStateError` and changes nothing. A request that the program drops is abandoned: the engine
    reclaims it at its next call.
    """

    _destroy = "OgaDestroyRequest"
    _registry: RequestRegistry

    def __init__(self) -> None:
        raise TypeError("oga.Request: No constructor defined! Use Engine.create_request().")

    @classmethod
    def _take(cls, pointer: Any, registry: RequestRegistry) -> Request:
        self = cls.__new__(cls)
        self._registry = registry
        Handle.__init__(self, pointer, _release, address(pointer), registry)
        registry.add(self)
        return self

    @classmethod
    def _stand_in(cls) -> Request:
        """A closed object for an event whose request the program has dropped."""
        self = cls.__new__(cls)
        Handle.__init__(self, ffi.NULL, _release_nothing)
        self._abandon("the program dropped it, so the engine ended it")
        return self

    def begin_turn(self, tokens: Tokens, turn_options: TurnOptions | None = None) -> int:
        """Starts a turn: appends ``tokens`` to the sequence and queues it. Returns its id: 1, 2, 3 ...

        Legal before the first turn and after a completed one whose events are all drained. ``tokens`` is any
        one-dimensional array or iterable of integers (NumPy of any integer type and stride, list, range, memoryview,
        tensor), each in [0, vocabulary size), at least one, and leaving room for one generated token under the session
        limit. Tokens and options are copied. Without options the model's defaults apply.

        Raises :class:`oga.InvalidArgumentError` (a ``ValueError``), :class:`oga.ArgumentTypeError` (a ``TypeError``
        too) or :class:`oga.InvalidStateError` naming what was found and wanted; a refused call changes nothing.
        """
        from oga.turn_options import TurnOptions

        values = as_int32(tokens)
        given = None if turn_options is None else arguments.kind(turn_options, TurnOptions, "turn_options")
        out = ffi.new("uint64_t *")
        with self._guard, borrowed(given) as chosen:
            pointer = self._pointer
            check(lib.OgaRequestBeginTurn(pointer, chosen, values.pointer, values.length, out), OF_PROMPTS)
            self._registry.open_turns.add(address(pointer))
        return int(out[0])

    def cancel_turn(self, turn_id: int) -> bool:
        """Ends a turn that is still live; it gets one event with CANCELLED. False when it is not live (any more).

        The input it accepted and the tokens it generated stay part of the sequence. Raises
        :class:`oga.InvalidStateError` before the first turn and on a closed request.
        """
        out = ffi.new("bool *")
        self._call(lib.OgaRequestCancelTurn, arguments.uint64(turn_id, "turn_id"), out)
        return bool(out[0])

    def rewind_to_start_of_turn(self, turn_id: int) -> None:
        """Removes a completed turn and every later one from the sequence. Ids are never reused.

        Raises :class:`oga.InvalidStateError` while a turn is live or an event of the request is undrained, and
        :class:`oga.NotFoundError` for an id that is not there.
        """
        self._call(lib.OgaRequestRewindToStartOfTurn, arguments.uint64(turn_id, "turn_id"))

    def fork(self) -> Request:
        """Creates a second request with the same sequence, session limit and priority; both then go their own ways.

        Its turn ids continue where this request's stand. Cached blocks are shared and copied only when one of the two
        writes. Turns without a seed of their own draw differently in the two.

        Raises :class:`oga.InvalidStateError` before the first turn, while a turn is live, while an event is undrained,
        and after a failed turn.
        """
        with self._guard:
            return Request._take(create("OgaRequest", lib.OgaRequestFork, self._pointer), self._registry)

    def close(self) -> None:
        """Ends the request in any state: its undrained events vanish and its cache is free at once. Idempotent.

        Legal on an unhealthy engine and after the engine is gone. Raises :class:`oga.InvalidStateError` on a thread
        that is not the engine's owner.
        """
        with self._guard:
            if not self.closed:
                check(lib.OgaRequestClose(self._pointer))
                super().close()


def _release(pointer: Any, key: int, registry: RequestRegistry) -> None:
    registry.open_turns.discard(key)
    lib.OgaDestroyRequest(pointer)


def _release_nothing(pointer: Any) -> None:
    """A stand-in owns no native object."""
