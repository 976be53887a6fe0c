"""``oga chat``: a conversation at a terminal, or in a pipe.

One kept conversation per branch: each message adds only what is new to the model's cache, ``/rewind`` takes turns out
of it, ``/fork`` shares it. The engine has its own thread; the event loop runs only while something is asked of it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import sys
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from oga.aio import AsyncEngine, Conversation
from oga.cli.answer import DIM, PLAIN, Answer, is_screen
from oga.cli.chat_settings import Settings
from oga.cli.failures import complain, one_line
from oga.cli.lines import MessageSource, Pipe, Terminal, history_path
from oga.cli.models import find_model
from oga.cli.progress import waiting
from oga.errors import EngineUnhealthyError, InvalidArgumentError, OgaError

if TYPE_CHECKING:
    from oga.chat import ChatTemplate, Message

T = TypeVar("T")


@dataclasses.dataclass
class Branch:
    """A conversation and its system message, which is no part of any turn and may change between two."""

    conversation: Conversation
    system: str | None

    def encoder(self, template: ChatTemplate) -> Callable[[Sequence[Message]], list[int]]:
        """Encodes everything that was said behind the system message."""
        system = [] if self.system is None else [{"role": "system", "content": self.system}]
        return lambda messages: template.encode([*system, *messages]).tolist()


class Chat:
    """The state of one `oga chat`."""

    def __init__(self, runner: asyncio.Runner, engine: AsyncEngine, source: MessageSource, system: str | None) -> None:
        self.engine = engine
        self.source = source
        self.is_interactive = isinstance(source, Terminal)
        self.settings = Settings()
        self.last: Answer | None = None
        self.has_failed = False
        self._runner = runner
        self.branches = [Branch(engine.open_conversation(), system)]
        self.number = 1

    @property
    def branch(self) -> Branch:
        """The branch that is talked to."""
        return self.branches[self.number - 1]

    @property
    def conversation(self) -> Conversation:
        """Its conversation."""
        return self.branch.conversation

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Runs the event loop until the work is done; Ctrl-C cancels it."""
        return self._runner.run(work)

    def change_settings(self, name: str, value: str) -> None:
        """Sets one setting; a value that the engine would refuse is refused now."""
        settings = self.settings.changed(name, value)
        self.wait(self.engine.check_settings(**settings.generation))
        self.settings = settings

    def say(self, text: str) -> None:
        """A remark of the program: where the person looks, and never among a pipe's answers."""
        if self.is_interactive and is_screen():
            print(f"{DIM}{text}{PLAIN}", flush=True)
        else:
            print(text, file=sys.stdout if self.is_interactive else sys.stderr, flush=True)

    def begin_again(self) -> None:
        """A new conversation in the place of this one."""
        self.wait(self.conversation.close())
        self.branch.conversation = self.engine.open_conversation()

    def ask(self, text: str) -> None:
        """One turn: writes the answer as it comes; Ctrl-C ends it and what was said stays."""
        self.last = answer = Answer()
        if self.wait(self._answer(text, answer)) and not self.is_interactive:
            raise KeyboardInterrupt

    async def _answer(self, text: str, answer: Answer) -> bool:
        """Whether the person interrupted it."""
        encode = self.branch.encoder(self.engine.model.chat_template)
        messages = [{"role": "user", "content": text}]
        stream = self.conversation.stream_encoded(messages, encode, **self.settings.generation)
        try:
            async for delta in stream:
                answer.add(delta)
            return False
        except asyncio.CancelledError:
            await stream.aclose()
            answer.note_stop()
            return True
        finally:
            answer.timings = stream.timings
            answer.close()


def chat(model: str, system: str | None, settings: list[str], keeps_history: bool, overlay: str | None) -> None:
    """Talks until Ctrl-D, ``/quit`` or the end of the input. Fails when something that a pipe asked for failed."""
    from oga.cli.chat_commands import NAMES

    is_interactive = sys.stdin.isatty() and sys.stdout.isatty()
    source = Terminal(history_path() if keeps_history else None, NAMES) if is_interactive else Pipe()
    engine = AsyncEngine(find_model(model), config=overlay)
    with asyncio.Runner() as runner:
        try:
            with waiting(f"Loading {model} ..."):
                runner.run(engine.open())
            _ = engine.model.chat_template  # one that is missing or broken is told before anybody types
            chat = Chat(runner, engine, source, system)
            for given in settings:
                name, separator, value = given.partition("=")
                if not separator:
                    raise InvalidArgumentError(f"--set {given}: write NAME=VALUE, for example --set temperature=0.7.")
                chat.change_settings(name.strip(), value)
            _talk(chat, Path(model).name)
        finally:
            runner.run(engine.close())
    if chat.has_failed and not is_interactive:
        raise OgaError("Not everything that was asked for could be done; the lines above say what.")


def _talk(chat: Chat, name: str) -> None:
    if chat.is_interactive:
        chat.say(f"{name}. /help lists what can be typed; Ctrl-C ends an answer, Ctrl-D the conversation.")
    goes_on = True
    while goes_on:
        try:
            goes_on = _exchange(chat)
        except KeyboardInterrupt:
            if not chat.is_interactive:
                raise
            print(flush=True)
        except EngineUnhealthyError:
            raise
        except OgaError as error:
            complain(f"error: {one_line(error)}")
            chat.has_failed = True


def _exchange(chat: Chat) -> bool:
    """Reads and does one thing; whether there may be more."""
    from oga.cli.chat_commands import obey

    message = chat.source.read("> " if len(chat.branches) == 1 else f"[{chat.number}]> ")
    if message is None:
        return False
    if message.startswith("/") and not message.startswith("//"):
        return obey(chat, message)
    if message.strip():
        chat.ask(message[1:] if message.startswith("//") else message)
    return True
