"""An answer that grows on a terminal, with a line below it that says how fast; plain text elsewhere."""

from __future__ import annotations

import os
import shutil
import sys
import time
from typing import TYPE_CHECKING

from rich.cells import cell_len

from oga.cli.display import VISIBLE_CONTROLS
from oga.event import FinishReason

if TYPE_CHECKING:
    from oga.generation import Delta, Timings
    from oga.usage import TurnUsage

# Down a line with the same column, scrolling at the end of the screen, and up again: there is a line below now.
MAKE_ROOM = "\x1bD\x1b[1A"
SAVE, RESTORE, NEXT_LINE, CLEAR_BELOW = "\x1b7", "\x1b8", "\x1b[1B\r", "\x1b[J"
DIM, PLAIN = "\x1b[2m", "\x1b[0m"
TAB_CELLS = 8

ENDINGS = {
    FinishReason.MAX_GENERATED_TOKENS: "cut at max_tokens",
    FinishReason.MAX_SESSION_TOKENS: "the context is full: /rewind, /reset or a shorter message",
    FinishReason.CANCELLED: "stopped; the conversation keeps what is there",
}


class Speed:
    """How many tokens came, and how fast."""

    def __init__(self) -> None:
        self.tokens = 0
        self._start = time.monotonic()
        self._first = self._last = 0.0

    def count(self, tokens: int) -> None:
        """Notes tokens that have just come."""
        if tokens:
            self.tokens += tokens
            self._last = time.monotonic()
            self._first = self._first or self._last

    @property
    def first_seconds(self) -> float | None:
        """From the question to the first token."""
        return self._first - self._start if self.tokens else None

    @property
    def tokens_per_second(self) -> float | None:
        """From the first token to the last one; None before there are two."""
        seconds = self._last - self._first
        return (self.tokens - 1) / seconds if seconds > 0 else None

    def __str__(self) -> str:
        rate = self.tokens_per_second
        count = "1 token" if self.tokens == 1 else f"{self.tokens} tokens"
        return count + ("" if rate is None else f", {rate:.1f} tokens/s")


class Answer:
    """One answer while it is written, and what is known of it at its end."""

    def __init__(self) -> None:
        self.speed = Speed()
        self.text = ""
        self.finish_reason = FinishReason.NONE
        self.usage: TurnUsage | None = None
        self.timings: Timings | None = None
        self._screen = Screen() if is_screen() else None
        self._controls = VISIBLE_CONTROLS if sys.stdout.isatty() else {}

    def add(self, delta: Delta) -> None:
        """Writes what is new."""
        self.speed.count(len(delta.token_ids))
        self.text += delta.text
        if delta.last:
            self.finish_reason, self.usage = delta.finish_reason, delta.usage
        self._write(delta.text.translate(self._controls))

    def note_stop(self) -> None:
        """The person has ended it."""
        self.finish_reason = FinishReason.CANCELLED

    def close(self) -> None:
        """Ends the line, and on a terminal leaves what the answer came to below it."""
        if self._screen is not None:
            self._screen.clear()
        if self.text and not self.text.endswith("\n"):
            sys.stdout.write("\n")
        if self._screen is not None:
            sys.stdout.write(f"{DIM}{self.summary()}{PLAIN}\n")
        sys.stdout.flush()

    def summary(self) -> str:
        """A few words on speed, the prompt and the end."""
        words = [str(self.speed)]
        if self.speed.first_seconds is not None:
            words.append(f"the first after {self.speed.first_seconds:.2f} s")
        if (ending := ENDINGS.get(self.finish_reason)) is not None:
            words.append(ending)
        return ", ".join(words)

    def _write(self, text: str) -> None:
        if self._screen is None:
            sys.stdout.write(text)
        else:
            self._screen.write(text, str(self.speed))
        sys.stdout.flush()


class Screen:
    """Writes text at the cursor and a status on the line below it, which the text then takes."""

    def __init__(self) -> None:
        self._column = 0
        self._has_status = False

    def write(self, text: str, status: str) -> None:
        """Adds text; the status is shown where the terminal leaves no doubt about the cursor's place."""
        self.clear()
        sys.stdout.write(text)
        width = shutil.get_terminal_size().columns
        self._column = column_after(text, self._column, width)
        # At the right edge the cursor stands on the last character or after it: moving it could lose one.
        if 0 < self._column < width - 1 and cell_len(status) < width:
            sys.stdout.write(f"{MAKE_ROOM}{SAVE}{NEXT_LINE}{DIM}{status}{PLAIN}{RESTORE}")
            self._has_status = True

    def clear(self) -> None:
        """Removes the status."""
        if self._has_status:
            sys.stdout.write(CLEAR_BELOW)
            self._has_status = False


def column_after(text: str, column: int, width: int) -> int:
    """Where the cursor is after ``text``, in cells from the left edge; ``width`` when it waits after the last cell."""
    for number, line in enumerate(text.split("\n")):
        column = column if number == 0 else 0
        for part in line.split("\t")[:-1]:
            column = _wrapped(column + cell_len(part), width)
            column = min(width - 1, (column // TAB_CELLS + 1) * TAB_CELLS)
        column = _wrapped(column + cell_len(line.split("\t")[-1]), width)
    return column


def _wrapped(cells: int, width: int) -> int:
    return cells if cells <= width else (cells - 1) % width + 1


def is_screen() -> bool:
    """Whether standard output is a terminal that moves its cursor."""
    return sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
