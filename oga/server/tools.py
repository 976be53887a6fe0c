"""Tool calls: the grammar that makes a model write them, and what reads them while they are written.

A call is ``{"name": "f", "arguments": {...}}``. A model that knows calls has two tokens around each; between them, and
only there, the grammar rules (``auto``). A model without such tokens writes nothing but calls, when it is told to
(``required``, or a named function).
"""

from __future__ import annotations

import dataclasses
import json
import re
import uuid
from typing import TYPE_CHECKING, Any, TypeAlias

from oga.server.errors import refused
from oga.server.schemas.common import NamedTool

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oga.aio import AsyncEngine
    from oga.generation import Delta
    from oga.server.schemas.common import Tool, ToolChoice
    from oga.tokenizer import Tokenizer, TokenizerStream

HEAD = re.compile(r'\s*\{\s*"name"\s*:\s*"([^"\\]+)"\s*,\s*"arguments"\s*:\s*')
ANY_OBJECT: dict[str, Any] = {"type": "object"}


@dataclasses.dataclass(frozen=True, slots=True)
class Content:
    """More of the text."""

    text: str


@dataclasses.dataclass(frozen=True, slots=True)
class CallStart:
    """The model calls a function."""

    index: int
    identity: str
    name: str


@dataclasses.dataclass(frozen=True, slots=True)
class CallArguments:
    """More of the JSON of a call's arguments."""

    index: int
    text: str


Part: TypeAlias = Content | CallStart | CallArguments


class PlainText:
    """An answer without calls."""

    completed_calls = 0

    def feed(self, delta: Delta) -> list[Part]:
        """What a piece of output adds."""
        return [Content(delta.text)] if delta.text else []


class CallReader:
    """Reads calls while they are written. What it gives adds up to the same JSON whatever the pieces were."""

    def __init__(self) -> None:
        self.completed_calls = 0
        self._begun = 0
        self._waiting = ""
        self._is_inside = False
        self._depth = 0
        self._is_string = False
        self._is_escaped = False

    def feed(self, text: str) -> list[Part]:
        """What a piece of text adds."""
        parts: list[Part] = []
        self._waiting += text
        while self._waiting:
            if not self._is_inside:
                head = HEAD.match(self._waiting.lstrip("} \n\r\t"))
                if head is None:
                    break
                self._waiting = self._waiting.lstrip("} \n\r\t")[head.end() :]
                self._is_inside, self._depth = True, 0
                parts.append(CallStart(self._begun, f"call_{uuid.uuid4().hex[:24]}", head[1]))
                self._begun += 1
                continue
            if self._depth == 0 and not self._is_string:
                self._waiting = self._waiting.lstrip()
            length = self._value_length()
            if length:
                parts.append(CallArguments(self._begun - 1, self._waiting[:length]))
                self._waiting = self._waiting[length:]
        return parts

    def _value_length(self) -> int:
        """How much of what waits belongs to the arguments; notes when they are complete."""
        for index, character in enumerate(self._waiting):
            if self._is_string:
                self._is_string = self._is_escaped or character != '"'
                self._is_escaped = character == "\\" and not self._is_escaped
            elif character == '"':
                self._is_string = True
            elif character in "{[":
                self._depth += 1
            elif character in "}]":
                self._depth -= 1
                if self._depth == 0:
                    self._is_inside = False
                    self.completed_calls += 1
                    return index + 1
        return len(self._waiting)


class BareCalls:
    """An answer that is nothing but calls."""

    def __init__(self) -> None:
        self._reader = CallReader()

    @property
    def completed_calls(self) -> int:
        """Calls that were written to their end."""
        return self._reader.completed_calls

    def feed(self, delta: Delta) -> list[Part]:
        """What a piece of output adds."""
        return self._reader.feed(delta.text)


class MarkedCalls:
    """An answer with calls between two tokens, and text around them."""

    def __init__(self, tokenizer: Tokenizer, opening: int, closing: int) -> None:
        self._tokenizer = tokenizer
        self._opening = opening
        self._closing = closing
        self._marks = {token: tokenizer.token_bytes(token).decode("utf-8", "replace") for token in (opening, closing)}
        self._reader = CallReader()
        self._decoder: TokenizerStream | None = None

    @property
    def completed_calls(self) -> int:
        """Calls that were written to their end."""
        return self._reader.completed_calls

    def feed(self, delta: Delta) -> list[Part]:
        """What a piece of output adds."""
        parts: list[Part] = []
        texts = [*delta.pieces, ""]
        for token, text in zip(delta.token_ids, texts, strict=False):
            if token == self._opening:
                self._decoder = self._tokenizer.create_stream()
                parts += _content(text.removesuffix(self._marks[token]))
            elif self._decoder is None:
                parts += _content(text)
            elif token == self._closing:
                parts += self._reader.feed(self._decoder.finish())
                self._decoder = None
            else:
                parts += self._reader.feed(self._decoder.decode(token))
        if self._decoder is None:
            for text in delta.pieces[len(delta.token_ids) :]:
                parts += _content(text)
        return parts


Reader: TypeAlias = PlainText | BareCalls | MarkedCalls


@dataclasses.dataclass(frozen=True)
class ToolUse:
    """What tools change about a turn."""

    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    marks: tuple[int, int] | None = None
    is_bare: bool = False

    def reader(self, tokenizer: Tokenizer) -> Reader:
        """What reads the output of one choice."""
        if self.marks is not None:
            return MarkedCalls(tokenizer, *self.marks)
        return BareCalls() if self.is_bare else PlainText()


def tool_use(
    engine: AsyncEngine, tools: Sequence[Tool] | None, choice: ToolChoice | None, is_parallel: bool
) -> ToolUse:
    """How the model is made to call. Raises 400 for what contradicts itself or the model cannot do."""
    if not tools:
        if choice not in (None, "none"):
            raise refused("tool_choice needs tools.", param="tool_choice")
        return ToolUse()
    if choice == "none":
        return ToolUse()
    names = [tool.function.name for tool in tools]
    if len(set(names)) < len(names):
        raise refused("Two tools have the same name.", param="tools")
    chosen = list(tools)
    if isinstance(choice, NamedTool):
        chosen = [tool for tool in tools if tool.function.name == choice.function.name]
        if not chosen:
            raise refused(f"tool_choice names {choice.function.name!r}, which is not in tools.", param="tool_choice")
    marks = _marks(engine.model.tokenizer)
    if choice in (None, "auto"):
        if marks is None:
            raise refused(
                "This model has no tokens that mark tool calls, so it cannot choose to call. "
                'Use tool_choice "required", "none", or name the function.',
                param="tool_choice",
                code="unsupported",
            )
        inside = "start: SPACE call SPACE\n" + _calls(chosen)
        settings: dict[str, Any] = {"delimited_guidance": (*marks, inside)}
        if not is_parallel:
            settings["stop_tokens"] = [marks[1]]
        return ToolUse(settings, marks)
    is_parallel = is_parallel and not isinstance(choice, NamedTool)
    one = "call" if marks is None else f'<[{marks[0]}]> "\\n" call "\\n" <[{marks[1]}]>'
    whole = f'start: one ("\\n" one)*\none: {one}\n' if is_parallel else f"start: {one}\n"
    return ToolUse({"guidance": ("lark", whole + _calls(chosen))}, marks, is_bare=marks is None)


def _calls(tools: Sequence[Tool]) -> str:
    """Rules for one call of any of the tools, and for the space around it."""
    lines = ["call: " + " | ".join(f"call_{index}" for index in range(len(tools)))]
    for index, tool in enumerate(tools):
        head = json.dumps(f'{{"name": {json.dumps(tool.function.name)}, "arguments": ')
        schema = tool.function.parameters or ANY_OBJECT
        lines.append(f'call_{index}: {head} arguments_{index} "}}"')
        lines.append(f"arguments_{index}: %json {json.dumps(schema)}")
    return "\n".join([*lines, "SPACE: /[ \\n]{0,2}/", ""])


def _marks(tokenizer: Tokenizer) -> tuple[int, int] | None:
    opening, closing = tokenizer.bot_token_id, tokenizer.eot_token_id
    return None if opening is None or closing is None else (opening, closing)


def _content(text: str) -> list[Part]:
    return [Content(text)] if text else []
