"""The commands of `oga chat` that begin with a slash."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from oga.cli.chat_settings import HELP, KNOWN, UNSET, check_name, nearest
from oga.errors import InvalidArgumentError

if TYPE_CHECKING:
    from oga.cli.chat import Chat

NO_SYSTEM = "none"


class Command(NamedTuple):
    """What is typed after the slash, what it takes, and what it does."""

    name: str
    argument: str
    help: str
    act: Callable[[Chat, str], None]


def _help(chat: Chat, _argument: str) -> None:
    width = max(len(f"/{each.name} {each.argument}") for each in COMMANDS)
    for each in COMMANDS:
        chat.say(f"{f'/{each.name} {each.argument}':{width}}  {each.help}")
    chat.say('A line that ends in \\ goes on; """ opens and ends a text of several lines; // begins a text with /.')


def _reset(chat: Chat, _argument: str) -> None:
    chat.begin_again()
    chat.say("The conversation begins again.")


def _fork(chat: Chat, _argument: str) -> None:
    from oga.cli.chat import Branch

    chat.branches.append(Branch(chat.wait(chat.conversation.fork()), chat.branch.system))
    chat.number = len(chat.branches)
    chat.say(f"This is branch {chat.number}, a copy of the conversation so far. /switch goes to another one.")


def _switch(chat: Chat, argument: str) -> None:
    if argument:
        chat.number = _between(argument, len(chat.branches), "branches")
    for number, branch in enumerate(chat.branches, start=1):
        turns = branch.conversation.turns
        last = f": {_short(turns[-1].messages[-1]['content'])}" if turns else ""
        chat.say(f"{'*' if number == chat.number else ' '} {number}  {_turns(len(turns))}{last}")


def _rewind(chat: Chat, argument: str) -> None:
    turns = chat.conversation.turns
    if not turns:
        raise InvalidArgumentError("There is nothing to rewind: the conversation has no turn yet.")
    count = _between(argument or "1", len(turns), "turns")
    first = turns[-count]
    chat.wait(chat.conversation.rewind(first.number))
    message = str(first.messages[-1]["content"])
    chat.source.remember(message)
    chat.say(f"{_turns(count)} taken back, {_turns(len(turns) - count)} left. Taken back first: {_short(message)}")


def _system(chat: Chat, argument: str) -> None:
    if not argument:
        chat.say(f"The system message is: {chat.branch.system or NO_SYSTEM}")
        return
    chat.branch.system = None if argument == NO_SYSTEM else argument
    chat.say("The model is told so from the next answer on.")


def _set(chat: Chat, argument: str) -> None:
    name, _, value = argument.partition(" ")
    if value.strip():
        chat.change_settings(name, value.strip())
    elif name:
        check_name(name)
        chat.say(f"{name}: {HELP[name]}")
    else:
        chat.say(f"Known: {', '.join(KNOWN)}.")
    chat.say(f"Set: {chat.settings}")


def _stats(chat: Chat, _argument: str) -> None:
    conversation, counts = chat.conversation, chat.wait(chat.engine.get_statistics())
    longest = chat.engine.capabilities.max_request_length
    chat.say(f"conversation  {_turns(len(conversation.turns))}, {conversation.tokens} of {longest} tokens")
    if chat.last is not None and chat.last.usage is not None:
        usage = chat.last.usage
        chat.say(f"last answer   {chat.last.summary()}")
        chat.say(f"its prompt    {usage.prompt_tokens} new tokens, {usage.cached_prompt_tokens} of them from the cache")
    blocks = (counts.total_blocks - counts.free_blocks, counts.total_blocks)
    used, total = (count * counts.block_bytes / 2**20 for count in blocks)
    chat.say(
        f"engine        {counts.generated_tokens} tokens in {counts.steps} steps; "
        f"{used:.1f} of {total:.0f} MiB of cache"
    )
    chat.say(f"settings      {chat.settings}")


def _quit(_chat: Chat, _argument: str) -> None:
    """The caller knows."""


QUIT = "quit"
COMMANDS = (
    Command("help", "", "this list", _help),
    Command("reset", "", "begin again, with the same system message", _reset),
    Command("fork", "", "go on in a copy of the conversation; the original stays", _fork),
    Command("switch", "[N]", "list the branches, or go to branch N", _switch),
    Command("rewind", "[N]", "take back the last turn, or the last N turns", _rewind),
    Command("system", "[TEXT]", f"show the system message, or change it ({NO_SYSTEM}: remove it)", _system),
    Command("set", "[NAME [VALUE]]", f"show the settings, explain one, or change it ({UNSET}: unset)", _set),
    Command("stats", "", "sizes and speeds", _stats),
    Command(QUIT, "", "end; so does Ctrl-D", _quit),
)  # fmt: skip
NAMES = tuple(f"/{command.name}" for command in COMMANDS)


def obey(chat: Chat, line: str) -> bool:
    """Does what a line says; whether the conversation goes on. Raises for an unknown command, naming the nearest."""
    word, _, argument = line.partition(" ")
    found = next((command for command in COMMANDS if f"/{command.name}" == word), None)
    if found is None:
        raise InvalidArgumentError(f"There is no {word}; the nearest is {nearest(word, list(NAMES))}. /help lists all.")
    if argument.strip() and not found.argument:
        raise InvalidArgumentError(f"{word} takes nothing after it.")
    found.act(chat, argument.strip())
    return found.name != QUIT


def _between(text: str, most: int, what: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= most:
        raise InvalidArgumentError(f"{text!r} is no number from 1 to {most}, which is how many {what} there are.")
    return int(text)


def _turns(count: int) -> str:
    return "1 turn" if count == 1 else f"{count} turns"


def _short(text: Any) -> str:
    words = " ".join(str(text).split())
    return words if len(words) <= 60 else f"{words[:57]}..."
