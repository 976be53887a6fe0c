"""Where liboga's own messages go."""

from __future__ import annotations

import atexit
from collections.abc import Callable
from typing import Any

from oga._native.arguments import boolean, c_text
from oga._native.check import check
from oga._native.loader import ffi, lib
from oga.errors import ArgumentTypeError

__all__ = ["set_log_bool", "set_log_callback", "set_log_options"]

_receiver: Callable[[str], object] | None = None
# Made once and never freed: another thread may be inside it at any time.
_trampoline: Any = None


def set_log_bool(name: str, value: bool) -> None:
    """Turns a log channel on or off: ``"enabled"`` (everything), ``"warning"`` (on at start) or ``"info"``.

    Raises :class:`oga.InvalidArgumentError` for an unknown channel and lists the known ones. Any thread.
    """
    check(lib.OgaSetLogBool(c_text(name, "name"), boolean(value, "value")))


def set_log_options(**channels: bool) -> None:
    """Turns several channels on or off: ``set_log_options(info=True)``. See :func:`set_log_bool`."""
    for name, value in channels.items():
        set_log_bool(name, value)


def set_log_callback(callback: Callable[[str], object] | None) -> None:
    """Sends each log line to ``callback(line)`` instead of standard error; None restores standard error.

    The callback runs on whichever thread logs and must not call oga. An exception it raises goes to
    ``sys.unraisablehook``, which prints it, and is otherwise ignored. Any thread.
    """
    global _receiver, _trampoline
    if callback is not None and not callable(callback):
        raise ArgumentTypeError(f"callback must be callable or None, not {type(callback).__name__}.", field="callback")
    if callback is not None and _trampoline is None:
        _trampoline = ffi.callback("void(*)(const char *, size_t)", _forward)
        atexit.register(set_log_callback, None)
    _receiver = callback
    check(lib.OgaSetLogCallback(ffi.NULL if callback is None else _trampoline))


def _forward(string: Any, length: int) -> None:
    if (receiver := _receiver) is not None:
        receiver(bytes(ffi.buffer(string, length)).decode("utf-8", "backslashreplace"))
