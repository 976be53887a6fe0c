"""What a person types, or what a pipe holds, as messages.

On a terminal the lines are edited by the interpreter's own ``readline``: the keys are those of the shell and of
``~/.inputrc``, nothing has to be installed, and a text that is pasted stays one message. Without a terminal, every line
is a message. In both, a line that ends in a backslash goes on, and ``\"\"\"`` opens and ends a text of several lines.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Protocol

from oga.errors import InvalidArgumentError

FENCE = '"""'
MOST_KEPT = 1000
CONTINUATION = "... "


class MessageSource(Protocol):
    """Where messages come from."""

    def read(self, prompt: str) -> str | None:
        """The next message, or None after the last one."""

    def remember(self, message: str) -> None:
        """Puts a message where the person finds it again."""


class Pipe:
    """Messages from standard input when it is no terminal."""

    def read(self, prompt: str) -> str | None:
        """The next message; the end of the input also ends an open text of several lines."""
        return assemble(lambda _: self._line(), prompt)

    def remember(self, message: str) -> None:
        """A pipe cannot be searched."""

    def _line(self) -> str | None:
        try:
            line = sys.stdin.readline()
        except UnicodeDecodeError as error:
            raise InvalidArgumentError(f"Standard input is not text in {error.encoding} ({error.reason}).") from None
        return line.removesuffix("\n") if line else None


class Terminal:
    """Messages from a person, with line editing, Tab for the names of commands, and a history that outlives this."""

    def __init__(self, history: Path | None, words: Iterable[str]) -> None:
        """``history`` is where messages are kept between runs; None keeps none. ``words`` are what Tab completes."""
        self._history = history
        self._words = sorted(words)
        self._readline = _readline()
        if self._readline is not None:
            self._readline.set_auto_history(False)  # a message of several lines is one entry
            self._readline.set_completer(self._complete)
            self._readline.set_completer_delims(" \t\n")
            is_editline = "libedit" in (self._readline.__doc__ or "")
            self._readline.parse_and_bind("bind ^I rl_complete" if is_editline else "tab: complete")
            for message in read_history(history):
                self._readline.add_history(message)

    def read(self, prompt: str) -> str | None:
        """The next message; None at Ctrl-D. Ctrl-D and Ctrl-C give up a text of several lines that is open."""
        lines = 0

        def line(prompt: str) -> str | None:
            nonlocal lines
            lines += 1
            try:
                return input(prompt)
            except EOFError:
                print(flush=True)
                if lines > 1:
                    raise KeyboardInterrupt from None
                return None

        message = assemble(line, prompt)
        if message is not None and message.strip():
            self._keep(message)
        return message

    def remember(self, message: str) -> None:
        """Puts a message at the end of the history, to be sent again after a change."""
        if self._readline is not None:
            self._readline.add_history(message)

    def _keep(self, message: str) -> None:
        self.remember(message)
        if self._history is not None:
            append_history(self._history, message)

    def _complete(self, start: str, state: int) -> str | None:
        matching = [f"{word} " for word in self._words if word.startswith(start)] if start.startswith("/") else []
        return matching[state] if state < len(matching) else None


def assemble(read_line: Callable[[str], str | None], prompt: str) -> str | None:
    """Reads lines until a message is complete; None when there was no line at all."""
    first = read_line(prompt)
    if first is None:
        return None
    if first.startswith(FENCE):
        return _fenced(first.removeprefix(FENCE), read_line)
    message = first
    while message.endswith("\\"):
        following = read_line(CONTINUATION)
        message = message[:-1] + "\n" + (following or "")
        if following is None:
            break
    return message


def _fenced(first: str, read_line: Callable[[str], str | None]) -> str:
    lines = [first] if first else []
    while not (lines and lines[-1].endswith(FENCE)):
        following = read_line(CONTINUATION)
        if following is None:
            return "\n".join(lines)
        lines.append(following)
    last = lines.pop().removesuffix(FENCE)
    return "\n".join([*lines, last] if last else lines)


def history_path() -> Path:
    """``oga/chat_history.jsonl`` below ``$XDG_STATE_HOME``, else below ``~/.local/state``."""
    base = os.environ.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "oga" / "chat_history.jsonl"


def read_history(path: Path | None) -> list[str]:
    """The last messages that were kept; a history that cannot be read is an empty one."""
    if path is None:
        return []
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
    kept = [message for line in lines if (message := _message(line)) is not None][-MOST_KEPT:]
    if len(lines) > 2 * MOST_KEPT:
        _write(path, os.O_TRUNC, "".join(f"{json.dumps(message)}\n" for message in kept))
    return kept


def append_history(path: Path, message: str) -> None:
    """Keeps a message; a history that cannot be written stays as it is."""
    _write(path, os.O_APPEND, f"{json.dumps(message)}\n")


def _message(line: str) -> str | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, str) else None


def _write(path: Path, how: int, text: str) -> None:
    """Only its owner can read it: people tell models much."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | how, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
    except OSError:
        return


def _readline() -> Any:
    """The module, where the interpreter was built with it."""
    try:
        import readline
    except ImportError:
        return None
    return readline
