"""A program on a pseudo-terminal: what it shows, and keys for it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

from oga._native.loader import library_path

SECONDS = 60
CTRL_C, CTRL_D = "\x03", "\x04"
ESCAPES = re.compile(r"\x1b(\[[?0-9;]*[A-Za-z]|[78D])")


def environment(**changes: str) -> dict[str, str]:
    """An environment in which this oga is the one that runs."""
    return {**os.environ, "OGA_LIBRARY": str(library_path()), "PYTHONPATH": ":".join(sys.path), **changes}


def _take_terminal() -> None:
    """Ctrl-C goes to the program on whose terminal it is typed."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class OnTerminal:
    """A program whose standard input and output are one terminal of 80 columns."""

    def __init__(self, command: Sequence[Any], changes: Mapping[str, str]) -> None:
        self._main, terminal = pty.openpty()
        termios.tcsetwinsize(terminal, (24, 80))
        self.process = subprocess.Popen(
            [str(word) for word in command],
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            env=environment(TERM="xterm", **changes),
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(terminal)
        self.raw = ""
        self._seen = 0

    def expect(self, text: str) -> str:
        """Waits until the program shows ``text``; what it showed up to there since the last call, without escapes."""
        end = time.monotonic() + SECONDS
        while (found := self.shown.find(text, self._seen)) < 0:
            assert self._read(end - time.monotonic()), f"{text!r} never came; shown: {self.raw!r}"
        before, self._seen = self._seen, found + len(text)
        return self.shown[before : self._seen]

    @property
    def shown(self) -> str:
        """Everything that was written, without escapes."""
        return ESCAPES.sub("", self.raw).replace("\r\n", "\n")

    def send(self, keys: str) -> None:
        os.write(self._main, keys.encode())

    def interrupt(self, text: str) -> None:
        """Presses Ctrl-C until ``text`` is shown: readline does not see one that comes just before it waits."""
        for _ in range(SECONDS):
            self.send(CTRL_C)
            end = time.monotonic() + 1
            while self.shown.find(text, self._seen) < 0 and time.monotonic() < end:
                self._read(end - time.monotonic())
            if self.shown.find(text, self._seen) >= 0:
                break
        self.expect(text)

    def end(self) -> int:
        """Waits for the end of the program; its exit code."""
        while self._read(SECONDS):
            pass
        return self.process.wait(SECONDS)

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._main], [], [], max(0.0, seconds))
        piece = b""
        if ready:
            with contextlib.suppress(OSError):  # the terminal ends with the program
                piece = os.read(self._main, 65536)
        self.raw += piece.decode()
        return bool(piece)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        os.close(self._main)
