"""Which Python object stands for which native request of one engine, and which of them have an unfinished turn.

Shared by the engine, its requests and its event buffers, none of which own one another: dropping the engine ends its
requests, and dropping a request abandons it.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from oga._native.handle import address

if TYPE_CHECKING:
    from oga.request import Request

__all__ = ["RequestRegistry"]


class RequestRegistry:
    """Keys are the addresses of native requests."""

    def __init__(self) -> None:
        self._requests: weakref.WeakValueDictionary[int, Request] = weakref.WeakValueDictionary()
        self.open_turns: set[int] = set()
        """Requests whose last turn has not shown its final event yet."""

    def add(self, request: Request) -> None:
        """Registers the caller's object for a native request."""
        self._requests[address(request._pointer)] = request

    def find(self, pointer: Any) -> Request | None:
        """The caller's object for a native request; None when the program dropped it."""
        return self._requests.get(address(pointer))
