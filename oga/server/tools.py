"""Tool calls: the grammar that makes a model write them, and what reads them while they are written.

A call is ``{"name": "f", "arguments": {...}}``. A model that knows calls has two tokens around each; between them, and
only there, the grammar rules (``auto``). A model without such tokens writes nothing but calls, when it is told to
(``required``, or a named function).
"""

from __future__ import annotations

import dataclasses
import enum
import json
import re
import uuid
from collections import deque
from typing import TYPE_CHECKING, Any, TypeAlias

from oga.server.errors import refused
from oga.server.schemas.common import NamedTool

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from oga.aio import AsyncEngine
    from oga.generation import Delta
    from oga.server.schemas.common import Tool, ToolChoice
    from oga.tokenizer import Tokenizer

HEAD = re.compile(r'\s*\{\s*"name"\s*:\s*"([^"\\]+)"\s*,\s*"arguments"\s*:\s*')


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

    has_called = False

    def feed(self, delta: Delta) -> list[Part]:
        """What a piece of output adds."""
        return [Content(delta.text)] if delta.text else []


class CallReader:
    """Reads calls while they are written. What it gives adds up to the same JSON whatever the pieces were."""

    def __init__(self) -> None:
        self._completed = 0
        self._begun = 0
        self._waiting = ""
        self._is_inside = False
        self._depth = 0
        self._is_string = False
        self._is_escaped = False

    @property
    def has_called(self) -> bool:
        """Whether there is a call, and none was left unfinished."""
        return 0 < self._begun == self._completed

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
                    self._completed += 1
                    return index + 1
        return len(self._waiting)


class BareCalls:
    """An answer that is nothing but calls."""

    def __init__(self) -> None:
        self._reader = CallReader()

    @property
    def has_called(self) -> bool:
        """Whether there is a call, and none was left unfinished."""
        return self._reader.has_called

    def feed(self, delta: Delta) -> list[Part]:
        """What a piece of output adds."""
        return self._reader.feed(delta.text)


class Place(enum.Enum):
    """Where a text stands."""

    OUTSIDE = enum.auto()
    INSIDE = enum.auto()
    MARK = enum.auto()


class MarkedCalls:
    """An answer with calls between two tokens, and text around them.

    The tokens say where each text stands, and the engine how much of it is visible: it holds back what may become a
    stop string, and cuts off what became one.
    """

    def __init__(self, tokenizer: Tokenizer, opening: int, closing: int) -> None:
        self._opening = opening
        self._closing = closing
        self._marks = {token: tokenizer.token_bytes(token).decode("utf-8", "replace") for token in (opening, closing)}
        self._decoder = tokenizer.create_stream(skip_special_tokens=True)
        self._place = Place.OUTSIDE
        self._written: deque[tuple[Place, str]] = deque()
        self._reader = CallReader()

    @property
    def has_called(self) -> bool:
        """Whether there is a call, and none was left unfinished."""
        return self._reader.has_called

    def feed(self, delta: Delta) -> list[Part]:
        """What a piece of output adds."""
        for token in delta.token_ids:
            self._write(token, self._decoder.decode(token))
        if delta.last:
            self._written.append((self._place, self._decoder.finish()))
        return self._show(len(delta.text))

    def _write(self, token: int, text: str) -> None:
        """Notes where a token's text stands; before that of a mark, the rest of a broken character may stand."""
        if token not in self._marks:
            self._written.append((self._place, text))
            return
        before = text.removesuffix(self._marks[token])
        self._written.append((self._place, before))
        self._written.append((Place.MARK, text[len(before) :]))
        self._place = Place.INSIDE if token == self._opening else Place.OUTSIDE

    def _show(self, characters: int) -> list[Part]:
        """What so many more visible characters say."""
        parts: list[Part] = []
        while self._written and characters:
            place, text = self._written.popleft()
            if len(text) > characters:
                self._written.appendleft((place, text[characters:]))
                text = text[:characters]
            characters -= len(text)
            if place is Place.INSIDE:
                parts += self._reader.feed(text)
            elif place is Place.OUTSIDE and text:
                parts.append(Content(text))
        return parts


Reader: TypeAlias = PlainText | BareCalls | MarkedCalls


@dataclasses.dataclass(frozen=True)
class ToolUse:
    """What tools change about a turn."""

    settings: dict[str, Any] = dataclasses.field(default_factory=dict)
    marks: tuple[int, int] | None = None
    is_bare: bool = False

    @property
    def has_grammar(self) -> bool:
        """Whether a grammar of the calls rules the answer, or a part of it."""
        return not self.settings.keys().isdisjoint({"guidance", "delimited_guidance"})

    def guided_by(self, settings: Mapping[str, Any], format_field: str) -> str | None:
        """The field of the request whose grammar rules the answer: that of a format in ``settings``, or the tools'.

        Raises 400 when both would.
        """
        has_format = "guidance" in settings
        if has_format and self.has_grammar:
            told = "may be" if "delimited_guidance" in self.settings else "has to be"
            raise refused(
                f"{format_field} cannot rule an answer that {told} a tool call: the tools' grammar does. "
                f'Leave out {format_field}, or set tool_choice to "none".',
                param=format_field,
            )
        return "tools" if self.has_grammar else format_field if has_format else None

    def reader(self, tokenizer: Tokenizer) -> Reader:
        """What reads the output of one choice."""
        if self.marks is not None:
            return MarkedCalls(tokenizer, *self.marks)
        return BareCalls() if self.is_bare else PlainText()


def tool_use(
    engine: AsyncEngine,
    tools: Sequence[Tool] | None,
    choice: ToolChoice | None,
    is_parallel: bool,
    schema_field: str = "function.parameters",
) -> ToolUse:
    """How the model is made to call; ``schema_field`` is where a tool of the request has its schema.

    Raises 400 for what contradicts itself or the model cannot do.
    """
    if not tools:
        if choice not in (None, "none"):
            raise refused("tool_choice needs tools.", param="tool_choice")
        return ToolUse()
    names = [tool.function.name for tool in tools]
    if len(set(names)) < len(names):
        raise refused("Two tools have the same name.", param="tools")
    schemas = {
        tool.function.name: _object_schema(tool.function.parameters, f"tools[{index}].{schema_field}")
        for index, tool in enumerate(tools)
    }
    if choice == "none":
        return ToolUse()
    if isinstance(choice, NamedTool):
        name = choice.function.name
        if name not in schemas:
            raise refused(f"tool_choice names {name!r}, which is not in tools.", param="tool_choice")
        schemas = {name: schemas[name]}
    marks = _marks(engine.model.tokenizer)
    if choice in (None, "auto"):
        return _free_to_call(marks, _calls(schemas), is_parallel)
    is_parallel = is_parallel and not isinstance(choice, NamedTool)
    one = "call" if marks is None else f'<[{marks[0]}]> "\\n" call "\\n" <[{marks[1]}]>'
    whole = f'start: one ("\\n" one)*\none: {one}\n' if is_parallel else f"start: {one}\n"
    return ToolUse({"guidance": ("lark", whole + _calls(schemas))}, marks, is_bare=marks is None)


def _free_to_call(marks: tuple[int, int] | None, calls: str, is_parallel: bool) -> ToolUse:
    """The model may call or not."""
    if marks is None:
        raise refused(
            "This model has no tokens that mark tool calls, so it cannot choose to call. "
            'Use tool_choice "required", "none", or name the function.',
            param="tool_choice",
            code="unsupported",
        )
    settings: dict[str, Any] = {"delimited_guidance": (*marks, "start: SPACE call SPACE\n" + calls)}
    if not is_parallel:
        settings["stop_tokens"] = [marks[1]]
    return ToolUse(settings, marks)


def _object_schema(given: dict[str, Any] | None, param: str) -> dict[str, Any]:
    """A schema of arguments that only objects obey: arguments have names. Raises 400 for one of something else."""
    kind = (given or {}).get("type", "object")
    if kind not in ("object", ["object"]):
        raise refused(
            f'{param} has the type {json.dumps(kind):.80}; the arguments of a function are an object. Set "type" to '
            '"object" and name each argument in "properties".',
            param=param,
        )
    return (given or {}) | {"type": "object"}


def _calls(schemas: Mapping[str, dict[str, Any]]) -> str:
    """Rules for one call of any of the functions, and for the space around it."""
    lines = ["call: " + " | ".join(f"call_{index}" for index in range(len(schemas)))]
    for index, (name, schema) in enumerate(schemas.items()):
        head = json.dumps(f'{{"name": {json.dumps(name)}, "arguments": ')
        lines.append(f'call_{index}: {head} arguments_{index} "}}"')
        lines.append(f"arguments_{index}: %json {json.dumps(schema)}")
    return "\n".join([*lines, "SPACE: /[ \\n]{0,2}/", ""])


def _marks(tokenizer: Tokenizer) -> tuple[int, int] | None:
    opening, closing = tokenizer.bot_token_id, tokenizer.eot_token_id
    return None if opening is None or closing is None else (opening, closing)
