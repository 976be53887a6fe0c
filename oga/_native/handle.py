"""The one class that owns a native pointer.

Invariants:

- H1: ``_pointer`` is a live native object or None, and None is for good.
- H2: a native object is destroyed exactly once: by ``close`` or, when the Python object is forgotten, by its finalizer.
- H3: it is never destroyed while a call on it is in progress: calls and ``close`` exclude each other by ``_guard``.
- H4: nothing is destroyed at interpreter exit (threads may still be inside the library) or in a forked child (the
  native threads stayed in the parent).
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Self

from oga._native.check import check
from oga._native.loader import ffi, lib
from oga.errors import InvalidStateError

__all__ = ["Handle", "address", "borrowed"]

_live: weakref.WeakSet[Handle] = weakref.WeakSet()


class Handle:
    """Owns one native object: ``close()``, ``with``, and a finalizer for the forgotten."""

    _destroy: ClassVar[str]
    """Name of the C function that releases the native object."""

    _why_closed = "it is already closed"

    def __init__(self, pointer: Any, release: Callable[..., None] | None = None, *extra: Any) -> None:
        """Takes over ``pointer``. ``release(pointer, *extra)`` frees it; the default is the C function ``_destroy``."""
        self._guard = threading.RLock()
        self._native = pointer
        self._finalizer = weakref.finalize(self, release or getattr(lib, self._destroy), pointer, *extra)
        self._finalizer.atexit = False
        _live.add(self)

    @property
    def closed(self) -> bool:
        """Whether the native object is gone. Any thread."""
        return self._native is None

    @property
    def _pointer(self) -> Any:
        if self._native is None:
            raise InvalidStateError(f"This {type(self).__name__} cannot be used: {self._why_closed}.")
        return self._native

    def _call(self, function: Any, *arguments: Any) -> None:
        """Calls ``function(pointer, *arguments)`` and raises when it fails."""
        with self._guard:
            check(function(self._pointer, *arguments))

    def close(self) -> None:
        """Releases the native object now. Idempotent. Any thread; waits for a call in progress on another thread."""
        with self._guard:
            if self._native is not None:
                self._native = None
                self._finalizer()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<oga.{type(self).__name__}{' closed' if self.closed else ''}>"

    def _abandon(self, why: str) -> None:
        """Forgets the native object without destroying it."""
        self._native = None
        self._why_closed = why
        self._finalizer.detach()


@contextlib.contextmanager
def borrowed(handle: Handle | None) -> Iterator[Any]:
    """The pointer of an argument for the length of a call, NULL for None; closing the argument waits for the end."""
    if handle is None:
        yield ffi.NULL
        return
    with handle._guard:
        yield handle._pointer


def address(pointer: Any) -> int:
    """The identity of a native object as an integer."""
    return int(ffi.cast("uintptr_t", pointer))


def _abandon_all() -> None:
    for handle in list(_live):
        handle._guard = threading.RLock()
        handle._abandon("it belongs to the parent process; create another one in this process")


os.register_at_fork(after_in_child=_abandon_all)
