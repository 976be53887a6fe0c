"""Conversations to token ids, by the chat template of a model folder.

Templates come with models, so they run in Jinja's sandbox. What people write is kept apart from the template's control
tokens: ``<|im_end|>`` typed by a user is text, not the end of a turn.
"""

from __future__ import annotations

import datetime
import importlib.util
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from oga.errors import ArgumentTypeError, InvalidArgumentError, MissingFileError, UnsupportedError
from oga.tokenizer import Tokenizer, encode, read_text

if TYPE_CHECKING:
    import jinja2
    import numpy as np
    import numpy.typing as npt
    import tokenizers

__all__ = ["ChatTemplate", "Message"]

Message = Mapping[str, Any]
"""One message: ``{"role": "user", "content": "..."}``; content may be a list of ``{"type": "text", "text": "..."}``."""

# Characters that stand for others while a conversation is rendered are taken from here, the private use of the last
# plane: no vocabulary knows them, and those that a conversation or its template does hold are passed over.
PRIVATE = range(0x10F000, 0x10FFFE)
FRAMED_TOKENIZERS = 4


Values = tuple[list[dict[str, Any]], list[Any] | None, dict[str, Any]]
"""What a program hands to a template: messages, tools, variables."""


class ChatTemplate:
    """The chat template of a tokenizer's folder. Any thread; one call at a time.

    Example::

        tokens = model.chat_template.encode([{"role": "user", "content": "What is the capital of France?"}])
        request.begin_turn(tokens)
    """

    def __init__(self, tokenizer: Tokenizer, source: str | None = None) -> None:
        """Compiles ``source``, or the folder's own template.

        That is ``chat_template.jinja``, or else the ``chat_template`` in ``tokenizer_config.json``.

        Raises :class:`oga.MissingFileError` when the folder has none, and :class:`oga.InvalidArgumentError` with the
        place of a syntax error.
        """
        self._tokenizer = tokenizer
        origin = "the template given"
        if source is None:
            source, origin = _folder_template(tokenizer)
        self._origin = origin
        self._source = source
        self._template = _compile(source, origin)
        self._framed_cores: dict[str, tokenizers.Tokenizer] = {}

    def render(
        self,
        messages: Iterable[Message],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[Any] | None = None,
        **variables: Any,
    ) -> str:
        """The conversation as text, control tokens included.

        ``add_generation_prompt`` ends it with the start of the assistant's answer. ``variables`` reach the template by
        name. Raises :class:`oga.InvalidArgumentError` carrying the template's message when it refuses the conversation.
        """
        return self._render(_checked(messages), tools, variables, add_generation_prompt)

    def encode(
        self,
        messages: Iterable[Message],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[Any] | None = None,
        begins_sequence: bool = True,
        **variables: Any,
    ) -> npt.NDArray[np.int32]:
        """The conversation as token ids, int32 of shape [tokens].

        A BOS that the template or the tokenizer wants is there exactly once. ``begins_sequence=False`` is for messages
        that continue a sequence in a later turn: there is none then. Special tokens written inside messages, tools and
        variables become ordinary tokens. Raises as :meth:`render`.
        """
        import numpy as np

        values = (_checked(messages), None if tools is None else list(tools), dict(variables))
        if not begins_sequence:
            values[2]["bos_token"] = ""
        ids = self._encode(values, add_generation_prompt)
        prefix = self._tokenizer.prefix_ids
        shared = next((at for at, (a, b) in enumerate(zip(ids, prefix, strict=False)) if a != b), len(prefix))
        ids = (prefix if begins_sequence else []) + ids[min(shared, len(ids)) :]
        return np.array(ids, dtype=np.int32)

    def _encode(self, values: Values, add_generation_prompt: bool) -> list[int]:
        """Encodes with the template's special tokens told from those that people wrote."""
        starts = {special[0] for special in self._specials}
        plain = self._render(*values, add_generation_prompt)
        if not any(_mentions(values, start) for start in starts):
            return encode(self._tokenizer._core, plain, False)
        unused = _unused_characters(plain, self._source, values)
        frame = next(unused) + next(unused)
        # One character stands for each that begins a special token, so that templates see lengths and neighbours as
        # they are. A template that looks for such characters renders something else: then only whole special tokens
        # are replaced, which is what is left to do.
        veil = {start: next(unused) for start in sorted(starts)}
        try:
            text = self._render_veiled(values, veil, add_generation_prompt)
        except InvalidArgumentError:
            text = ""
        if _unveiled(text, veil) != plain:
            veil = {special: frame[0] + next(unused) + frame[1] for special in self._specials}
            text = self._render_veiled(values, veil, add_generation_prompt)
        written = re.compile("|".join(map(re.escape, self._specials)))
        framed = written.sub(lambda match: f"{frame[0]}{match[0]}{frame[1]}", text)
        return encode(self._framed(frame), _unveiled(framed, veil), False)

    def _render_veiled(self, values: Values, veil: Mapping[str, str], add_generation_prompt: bool) -> str:
        messages, tools, variables = _replaced(values, veil)
        return self._render(messages, tools, variables, add_generation_prompt)

    @cached_property
    def _specials(self) -> list[str]:
        """Texts of the special tokens, longest first, so that none is taken for a part of another."""
        added = self._tokenizer._core.get_added_tokens_decoder().values()
        return sorted((token.content for token in added if token.special and token.content), key=len, reverse=True)

    def _framed(self, frame: str) -> tokenizers.Tokenizer:
        """A tokenizer with the ids of the folder's, which knows the special tokens only inside the two characters."""
        import tokenizers

        if frame not in self._framed_cores:
            if len(self._framed_cores) == FRAMED_TOKENIZERS:
                self._framed_cores.clear()
            description = json.loads(self._tokenizer._core.to_str())
            names = {special: f"{frame[0]}{special}{frame[1]}" for special in self._specials}
            for token in description.get("added_tokens", []):
                token["content"] = names.get(token["content"], token["content"])
            _rename(description["model"], names)
            description["post_processor"] = None
            self._framed_cores[frame] = tokenizers.Tokenizer.from_str(json.dumps(description))
        return self._framed_cores[frame]

    def _render(
        self, messages: list[dict[str, Any]], tools: Any, variables: Mapping[str, Any], add_generation_prompt: bool
    ) -> str:
        import jinja2

        try:
            return self._template.render(
                {
                    **self._tokenizer.special_tokens,
                    "messages": messages,
                    "tools": tools,
                    "documents": None,
                    "add_generation_prompt": add_generation_prompt,
                    **variables,
                }
            )
        except (
            jinja2.TemplateError,
            TypeError,
            ValueError,
            ArithmeticError,
            LookupError,
            AttributeError,
            RecursionError,
        ) as error:
            raise InvalidArgumentError(
                f"The chat template ({self._origin}) refused the conversation: {error}",
                field="messages",
            ) from error


def _checked(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Copies messages; the text parts of a content become one string, as templates of text models expect."""
    if isinstance(messages, str | bytes | Mapping):
        raise ArgumentTypeError(
            f"messages must be a list of messages, not {type(messages).__name__}.", field="messages"
        )
    chat: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise InvalidArgumentError(
                f'messages[{index}] must be like {{"role": "user", "content": "..."}}.', field="messages"
            )
        copied = dict(message)
        content = copied.get("content")
        if isinstance(content, list | tuple):
            copied["content"] = "".join(_part_text(part, f"messages[{index}].content") for part in content)
        elif not isinstance(content, str | None):
            raise InvalidArgumentError(
                f"messages[{index}].content must be text, not {type(content).__name__}.", field="messages"
            )
        chat.append(copied)
    if not chat:
        raise InvalidArgumentError("messages is empty; a conversation needs at least one message.", field="messages")
    return chat


def _part_text(part: Any, name: str) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str):
        return str(part["text"])
    found = part.get("type") if isinstance(part, Mapping) else type(part).__name__
    raise InvalidArgumentError(
        f'{name} holds a part of type {found!r}; only {{"type": "text"}} parts are known.', field="messages"
    )


def _mentions(value: Any, text: str) -> bool:
    if isinstance(value, str):
        return text in value
    if isinstance(value, Mapping):
        return any(_mentions(item, text) for pair in value.items() for item in pair)
    return isinstance(value, list | tuple) and any(_mentions(item, text) for item in value)


def _replaced(value: Any, replacements: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        for old, new in replacements.items():
            value = value.replace(old, new)
        return value
    if isinstance(value, Mapping):
        return {_replaced(key, replacements): _replaced(item, replacements) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_replaced(item, replacements) for item in value]
    return value


def _unveiled(text: str, veil: Mapping[str, str]) -> str:
    for original, stand_in in veil.items():
        text = text.replace(stand_in, original)
    return text


def _unused_characters(*used: Any) -> Iterator[str]:
    """Characters of private use that none of the texts holds, in order."""
    return (character for character in map(chr, PRIVATE) if not _mentions(used, character))


def _rename(model: dict[str, Any], names: Mapping[str, str]) -> None:
    """Gives tokens of a vocabulary other texts, so that ordinary text no longer leads to them."""
    vocabulary = model.get("vocab")
    if isinstance(vocabulary, dict):
        model["vocab"] = {names.get(text, text): number for text, number in vocabulary.items()}
    elif isinstance(vocabulary, list):
        model["vocab"] = [[names.get(text, text), score] for text, score in vocabulary]
    if isinstance(model.get("unk_token"), str):
        model["unk_token"] = names.get(model["unk_token"], model["unk_token"])
    pairs = [merge.split(" ") if isinstance(merge, str) else merge for merge in model.get("merges") or []]
    if pairs:
        model["merges"] = [pair for pair in pairs if not {*pair, "".join(pair)} & names.keys()]


def has_jinja() -> bool:
    """Whether the package that templates need is installed."""
    return importlib.util.find_spec("jinja2") is not None


def _folder_template(tokenizer: Tokenizer) -> tuple[str, str]:
    path = tokenizer.path / "chat_template.jinja"
    if path.exists() or path.is_symlink():
        return read_text(path), str(path)
    origin = str(tokenizer.path / "tokenizer_config.json")
    found = tokenizer.settings.get("chat_template")
    if isinstance(found, list):
        named = {entry.get("name"): entry.get("template") for entry in found if isinstance(entry, Mapping)}
        found = named.get("default")
    if not isinstance(found, str):
        raise MissingFileError(
            f"There is no chat template, neither {path} nor a chat_template in {origin}. "
            "Use the model without one (`oga run --raw`), or add the template of its family."
        )
    return found, origin


def _compile(source: str, origin: str) -> jinja2.Template:
    if not source.strip():
        raise InvalidArgumentError(f"{origin} is an empty chat template; every conversation would be empty.")
    try:
        import jinja2.ext
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError:
        raise UnsupportedError(
            "Chat templates need the Python package 'jinja2', which is not installed: pip install jinja2."
        ) from None
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols, _generation_tag()]
    )
    environment.filters["tojson"] = _to_json
    environment.globals["raise_exception"] = _raise_exception
    environment.globals["strftime_now"] = _strftime_now
    try:
        return environment.from_string(source)
    except jinja2.TemplateSyntaxError as error:
        raise InvalidArgumentError(
            f"{origin} is not a valid chat template: line {error.lineno}: {error.message}"
        ) from None


def _generation_tag() -> type[jinja2.ext.Extension]:
    """``{% generation %}`` marks the assistant's part for training; here its body is simply rendered."""
    import jinja2.ext
    from jinja2 import nodes, parser

    class GenerationTag(jinja2.ext.Extension):
        tags = {"generation"}  # noqa: RUF012 (an instance variable of the base class)

        def parse(self, source: parser.Parser) -> nodes.Node:
            line = next(source.stream).lineno
            return nodes.Scope(source.parse_statements(("name:endgeneration",), drop_needle=True), lineno=line)

    return GenerationTag


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    # Jinja's own filter escapes for HTML, which no model has seen in training.
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def _raise_exception(message: str) -> NoReturn:
    import jinja2

    raise jinja2.TemplateError(message)


def _strftime_now(pattern: str) -> str:
    return datetime.datetime.now().strftime(pattern)
