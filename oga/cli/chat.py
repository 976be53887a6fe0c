"""``oga chat``: a conversation in the terminal."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

from oga.aio import AsyncEngine, Conversation
from oga.cli.display import VISIBLE_CONTROLS
from oga.cli.failures import complain, one_line
from oga.cli.models import find_model
from oga.cli.progress import waiting
from oga.errors import OgaError
from oga.event import FinishReason
from oga.stream import Generation, turn_settings

HELP = """\
/help               this list
/reset              forget everything that was said
/rewind [TURN]      take back a turn and all later ones; the last one when none is named
/fork               go on in a copy; /switch goes back
/switch [NUMBER]    list the copies, or go on in one
/system [TEXT]      what the model is told to be; without text, nothing
/set [NAME VALUE]   show the generation settings, or set one: /set temperature 0.7; VALUE default unsets it
/stats              what the engine has done and holds
/quit               leave; Ctrl-D does too
A line that ends with \\ goes on in the next one; lines between two lines of \"\"\" are one message.
Ctrl-C ends an answer, not the program."""
HISTORY_LINES = 1000
TITLE_SECONDS = 0.5
ANSWER = "\N{BLACK RIGHT-POINTING SMALL TRIANGLE} "


class Leave(Exception):  # noqa: N818 (a wish, not an error)
    """The person wants to go."""


class Chat:
    """The conversation that goes on, its copies, and what the slash commands change."""

    def __init__(
        self, engine: AsyncEngine, runner: asyncio.Runner, system: str | None, settings: dict[str, Any]
    ) -> None:
        self._engine = engine
        self._runner = runner
        self._system = system
        self._settings = settings
        self._branches: list[Conversation] = [engine.open_conversation()]
        self._current = 0
        self._is_terminal = sys.stdout.isatty()

    @property
    def conversation(self) -> Conversation:
        """The copy that goes on."""
        return self._branches[self._current]

    def take(self, line: str) -> None:
        """Carries out a command, or answers a message. Errors are said, and the conversation goes on."""
        try:
            if line.startswith("/"):
                self._command(*line[1:].split(maxsplit=1))
            elif line.strip():
                self._answer(line)
        except OgaError as error:
            complain(f"error: {one_line(error)}")

    def _command(self, name: str = "", argument: str = "") -> None:
        known = {
            "help": lambda _: print(HELP),
            "reset": self._reset,
            "rewind": self._rewind,
            "fork": self._fork,
            "switch": self._switch,
            "system": self._tell,
            "set": self._set,
            "stats": self._stats,
            "quit": self._quit,
        }
        if name not in known:
            complain(f"there is no /{name}; /help lists the commands")
            return
        known[name](argument.strip())

    def _reset(self, _: str) -> None:
        for branch in self._branches:
            self._runner.run(branch.close())
        self._branches, self._current = [self._engine.open_conversation()], 0
        print("Everything is forgotten.")

    def _rewind(self, argument: str) -> None:
        turns = self.conversation.turns
        number = int(argument) if argument.isdecimal() else len(turns)
        if not 1 <= number <= len(turns):
            complain(f"there are {len(turns)} turns to take back")
            return
        said = turns[number - 1].messages[-1]["content"]
        self._runner.run(self.conversation.rewind(number))
        print(f"Turn {number} is taken back. It was: {said.translate(VISIBLE_CONTROLS)}")

    def _fork(self, _: str) -> None:
        self._branches.append(self._runner.run(self.conversation.fork()))
        self._current = len(self._branches) - 1
        print(f"This is copy {self._current + 1}. /switch 1 goes back to the first one.")

    def _switch(self, argument: str) -> None:
        if argument.isdecimal() and 1 <= int(argument) <= len(self._branches):
            self._current = int(argument) - 1
        elif argument:
            complain(f"there are the copies 1 to {len(self._branches)}")
            return
        for index, branch in enumerate(self._branches):
            mark = "*" if index == self._current else " "
            print(f"{mark} {index + 1}: {len(branch.turns)} turns, {branch.tokens} tokens")

    def _tell(self, argument: str) -> None:
        self._system = argument or None
        print("The model is told so from the next answer on." if argument else "The model is told nothing.")

    def _set(self, argument: str) -> None:
        if not argument:
            for name, value in self._settings.items():
                print(f"{name} {value}")
            return
        name, _, text = argument.partition(" ")
        changed = {key: value for key, value in self._settings.items() if key != name}
        if text.strip() != "default":
            changed[name] = _value(text.strip())
        turn_settings(cast("Generation", changed))  # refuses a name that is not known
        self._settings = changed

    def _stats(self, _: str) -> None:
        counts = self._runner.run(self._engine.get_statistics())
        used = counts.total_blocks - counts.free_blocks
        print(
            f"{counts.generated_tokens} tokens in {counts.steps} steps; {counts.prefix_tokens_saved} not computed again"
        )
        print(f"cache: {used} of {counts.total_blocks} blocks in use, {counts.cached_blocks} kept for later")
        print(f"this conversation: {len(self.conversation.turns)} turns, {self.conversation.tokens} tokens")

    def _quit(self, _: str) -> None:
        raise Leave

    def _answer(self, said: str) -> None:
        try:
            self._runner.run(self._stream(said))
        except KeyboardInterrupt:
            print("\n[stopped]", flush=True)

    async def _stream(self, said: str) -> None:
        system = [] if self._system is None else [{"role": "system", "content": self._system}]
        template = self._engine.model.chat_template
        stream = self.conversation.stream_encoded(
            [{"role": "user", "content": said}],
            lambda whole: [int(token) for token in template.encode([*system, *whole])],
            **self._settings,
        )
        begun, first, tokens, titled = time.monotonic(), 0.0, 0, 0.0
        if self._is_terminal:
            print(ANSWER, end="", flush=True)
        async for delta in stream:
            now = time.monotonic()
            first = first or now
            tokens += len(delta.token_ids)
            print(delta.text.translate(VISIBLE_CONTROLS) if self._is_terminal else delta.text, end="", flush=True)
            if self._is_terminal and now - titled > TITLE_SECONDS:
                titled = now
                print(f"\033]0;{_speed(tokens, now - first)}\a", end="", flush=True)
            if delta.last:
                _finish(delta.finish_reason, tokens, now - first, first - begun, self._is_terminal)


def chat(model: str, system: str | None, settings: dict[str, Any], overlay: str | None) -> None:
    """Talks until the person leaves."""
    folder = find_model(model)
    with asyncio.Runner() as runner:
        engine = AsyncEngine(folder, config=overlay)
        with waiting(f"Loading {model} ..."):
            runner.run(engine.open())
        try:
            engine.model.chat_template  # noqa: B018 (a folder without one is refused before anything is asked)
            talk = Chat(engine, runner, system, settings)
            if sys.stdin.isatty():
                print(f"{model}: say something, or /help. Ctrl-D leaves.")
            for line in _messages():
                talk.take(line)
        except Leave:
            pass
        finally:
            runner.run(engine.close())


def _messages() -> Iterator[str]:
    """What is typed, message by message. Ctrl-C at the prompt drops the line."""
    with _history():
        while True:
            try:
                yield _message()
            except KeyboardInterrupt:
                print()
            except EOFError:
                if sys.stdin.isatty():
                    print()
                return


def _message() -> str:
    line = input("> " if sys.stdin.isatty() else "")
    if line.strip() == '"""':
        lines = []
        while (following := input("")).strip() != '"""':
            lines.append(following)
        return "\n".join(lines)
    while line.endswith("\\"):
        line = line[:-1] + "\n" + input("")
    return line


@contextlib.contextmanager
def _history() -> Iterator[None]:
    """Line editing and a history that outlives the program, on a terminal."""
    if not sys.stdin.isatty():
        yield
        return
    try:
        import readline
    except ImportError:
        yield
        return
    home = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")
    path = home / "oga" / "chat_history"
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        readline.read_history_file(path)
    readline.set_history_length(HISTORY_LINES)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            readline.write_history_file(path)
            path.chmod(0o600)


def _finish(reason: FinishReason, tokens: int, seconds: float, wait: float, is_terminal: bool) -> None:
    cut = " [cut off]" if reason in (FinishReason.MAX_GENERATED_TOKENS, FinishReason.MAX_SESSION_TOKENS) else ""
    print(cut)
    if is_terminal:
        print(f"\033[2m{tokens} tokens, {_speed(tokens, seconds)}, first after {wait:.2f} s\033[0m", flush=True)


def _speed(tokens: int, seconds: float) -> str:
    return f"{(tokens - 1) / seconds:.1f} tokens/s" if seconds > 0 and tokens > 1 else "- tokens/s"


def _value(text: str) -> Any:
    """A number, true or false, or the text itself."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text
