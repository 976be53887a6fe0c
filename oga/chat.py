"""Conversations to token ids, by the chat template of a model folder.

Templates come with models, so they run in Jinja's sandbox. What people write is kept apart from the template's control
tokens: ``<|im_end|>`` typed by a user is text, not the end of a turn.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn

from oga.errors import ArgumentTypeError, InvalidArgumentError, MissingFileError, UnsupportedError
from oga.text import Tokenizer, read_text

if TYPE_CHECKING:
    import jinja2
    import numpy as np
    import numpy.typing as npt
    import tokenizers

__all__ = ["ChatTemplate", "Message"]

Message = Mapping[str, Any]
"""One message: ``{"role": "user", "content": "..."}``; content may be a list of ``{"type": "text", "text": "..."}``."""

# Private-use characters: no model's vocabulary, and no text that means anything, holds this pair.
OPEN, CLOSE = "\U0010fdd0", "\U0010fdd1"


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
        self._template = _compile(source, origin)

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
        return self._render(_checked(messages), add_generation_prompt, tools, variables)

    def encode(
        self,
        messages: Iterable[Message],
        *,
        add_generation_prompt: bool = True,
        tools: Sequence[Any] | None = None,
        **variables: Any,
    ) -> npt.NDArray[np.int32]:
        """The conversation as token ids, int32 of shape [tokens].

        A BOS that the template or the tokenizer wants is there exactly once. Special tokens written inside messages and
        tools become ordinary tokens. Raises as :meth:`render`.
        """
        import numpy as np

        given = (_checked(messages), None if tools is None else list(tools), dict(variables))
        specials = [text for text in self._specials if _mentions(given, text)]
        if specials:
            ids = self._encode_apart(*given, specials, add_generation_prompt)
        else:
            chat, tool_list, extra = given
            text = self._render(chat, add_generation_prompt, tool_list, extra)
            ids = Tokenizer._encode(self._tokenizer._core, text, False)
        bos = self._tokenizer.bos_id
        if bos is not None and ids[:1] != [bos]:
            ids.insert(0, bos)
        return np.array(ids, dtype=np.int32)

    def _encode_apart(
        self,
        messages: list[dict[str, Any]],
        tools: list[Any] | None,
        variables: dict[str, Any],
        specials: list[str],
        add_generation_prompt: bool,
    ) -> list[int]:
        """Encodes with the template's special tokens framed, so that unframed ones are ordinary text."""
        veiled = {special: f"{OPEN}{number}{CLOSE}" for number, special in enumerate(specials)}
        text = self._render(
            _replaced(messages, veiled), add_generation_prompt, _replaced(tools, veiled), _replaced(variables, veiled)
        )
        for special in self._specials:
            text = text.replace(special, f"{OPEN}{special}{CLOSE}")
        for special, veil in veiled.items():
            text = text.replace(veil, special)
        core, originals = self._framed
        return [originals.get(token, token) for token in Tokenizer._encode(core, text, False)]

    @cached_property
    def _specials(self) -> list[str]:
        """Texts of the special tokens, longest first, so that none is taken for a part of another."""
        added = self._tokenizer._core.get_added_tokens_decoder().values()
        return sorted((token.content for token in added if token.special and token.content), key=len, reverse=True)

    @cached_property
    def _framed(self) -> tuple[tokenizers.Tokenizer, dict[int, int]]:
        """A tokenizer that knows the special tokens only in frames, and its ids for them mapped to the true ones."""
        import tokenizers

        core = self._tokenizer._core
        description = json.loads(core.to_str())
        true_ids: dict[str, int] = {}
        for token in description.get("added_tokens", []):
            if token["special"]:
                framed = f"{OPEN}{token['content']}{CLOSE}"
                true_ids[framed] = token["id"]
                token["content"] = framed
        description["post_processor"] = None
        copy = tokenizers.Tokenizer.from_str(json.dumps(description))
        return copy, {
            known: true for framed, true in true_ids.items() if (known := copy.token_to_id(framed)) is not None
        }

    def _render(
        self, messages: list[dict[str, Any]], add_generation_prompt: bool, tools: Any, variables: Mapping[str, Any]
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
                f"The chat template ({self._origin}) refused the conversation: {error}"
            ) from error


def _checked(messages: Iterable[Message]) -> list[dict[str, Any]]:
    """Copies messages; the text parts of a content become one string, as templates of text models expect."""
    if isinstance(messages, str | bytes | Mapping):
        raise ArgumentTypeError(f"messages must be a list of messages, not {type(messages).__name__}.")
    chat: list[dict[str, Any]] = []
    for index, message in enumerate(messages):
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise InvalidArgumentError(f'messages[{index}] must be like {{"role": "user", "content": "..."}}.')
        copied = dict(message)
        content = copied.get("content")
        if isinstance(content, list | tuple):
            copied["content"] = "".join(_part_text(part, f"messages[{index}].content") for part in content)
        elif not isinstance(content, str | None):
            raise InvalidArgumentError(f"messages[{index}].content must be text, not {type(content).__name__}.")
        chat.append(copied)
    if not chat:
        raise InvalidArgumentError("messages is empty; a conversation needs at least one message.")
    return chat


def _part_text(part: Any, name: str) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str):
        return str(part["text"])
    found = part.get("type") if isinstance(part, Mapping) else type(part).__name__
    raise InvalidArgumentError(f'{name} holds a part of type {found!r}; only {{"type": "text"}} parts are known.')


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
