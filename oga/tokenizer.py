"""Text to token ids and back, by the ``tokenizer.json`` of a model folder."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oga._native import arguments
from oga._native.check import check, create, take_string
from oga._native.handle import Handle, borrowed
from oga._native.loader import ffi, lib
from oga._native.tokens import as_int32
from oga.config import Config
from oga.errors import (
    OF_FILES,
    ArgumentTypeError,
    FileAccessError,
    InvalidArgumentError,
    MissingFileError,
    NotFoundError,
    OgaError,
    UnsupportedError,
    called,
)
from oga.sequences import Sequences

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import tokenizers

    from oga._native.tokens import TokenArray, Tokens
    from oga.chat import Message
    from oga.model import Model

__all__ = ["Tokenizer", "TokenizerStream"]

# The components that the package `tokenizers` has; it does not name one that it lacks.
COMPONENTS = {
    "normalizer": "BertNormalizer ByteLevel Lowercase NFC NFD NFKC NFKD Nmt Precompiled Prepend Replace Sequence Strip "
    "StripAccents",
    "pre_tokenizer": "BertPreTokenizer ByteLevel CharDelimiterSplit Digits FixedLength Metaspace Punctuation Sequence "
    "Split UnicodeScripts Whitespace WhitespaceSplit",
    "post_processor": "BertProcessing ByteLevel RobertaProcessing Sequence TemplateProcessing",
}
SPECIAL_ROLES = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token")


class Tokenizer(Handle):
    """The tokenizer of a model folder. Any thread; one call at a time.

    Texts come from the native library. Ids come from the package ``tokenizers``; without it, from the native encoder,
    which knows fewer kinds of tokenizers and gives the same ids or refuses.

    Raises :class:`oga.MissingFileError` (a ``FileNotFoundError``) or :class:`oga.FileAccessError` (an ``OSError``)
    naming the file, :class:`oga.InvalidArgumentError` for a file that is no tokenizer, and
    :class:`oga.UnsupportedError` naming a component that is not known.
    """

    _destroy = "OgaDestroyTokenizer"

    def __init__(self, source: Model | Config | str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> None:
        """Loads ``tokenizer.json`` from the folder of a model or config, or from a folder's path.

        Roles of tokens are those of the model's config; of ``genai_config.json`` for a path, or of
        ``tokenizer_config.json`` in a folder without one.
        """
        from oga.model import Model

        if isinstance(source, Config):
            with borrowed(source) as config:
                pointer = create("OgaTokenizer", lib.OgaCreateTokenizerFromConfig, config, classes=OF_FILES)
            self._folder = source.path
        elif isinstance(source, Model) and not source.closed:
            with borrowed(source) as model:
                pointer = create("OgaTokenizer", lib.OgaCreateTokenizer, model, classes=OF_FILES)
            self._folder = source.path
        else:
            path = arguments.path_bytes(source.path if isinstance(source, Model) else source, "source")
            with called(config_path="source"):
                pointer = create("OgaTokenizer", lib.OgaCreateTokenizerFromPath, path, classes=OF_FILES)
            self._folder = Path(os.fsdecode(path))
        super().__init__(pointer)
        self._core_lock = threading.Lock()
        self._loaded_core: tokenizers.Tokenizer | None = None
        self._adds_special_tokens = True
        self._skips_special_tokens = True

    @property
    def path(self) -> Path:
        """The model folder, as it was given."""
        return self._folder

    @cached_property
    def settings(self) -> dict[str, Any]:
        """``tokenizer_config.json`` of the folder; empty when there is none."""
        return read_optional_json(self._folder / "tokenizer_config.json")

    @cached_property
    def special_tokens(self) -> dict[str, str]:
        """The text of the tokens with a role, by role: ``bos_token``, ``eos_token`` ..., as far as they are named."""
        found: dict[str, str] = {}
        for role in SPECIAL_ROLES:
            value = self.settings.get(role)
            text = value.get("content") if isinstance(value, dict) else value
            if isinstance(text, str):
                found[role] = text
        return found

    def update_options(
        self, *, add_special_tokens: bool | None = None, skip_special_tokens: bool | None = None
    ) -> None:
        """Changes what :meth:`encode`, :meth:`decode` and :meth:`create_stream` do when they are not told.

        Both options are on at first. None leaves an option as it is.
        """
        if add_special_tokens is not None:
            self._adds_special_tokens = arguments.boolean(add_special_tokens, "add_special_tokens")
        if skip_special_tokens is not None:
            self._skips_special_tokens = arguments.boolean(skip_special_tokens, "skip_special_tokens")

    def encode(self, text: str, *, add_special_tokens: bool | None = None) -> npt.NDArray[np.int32]:
        """Token ids of ``text``, int32 of shape [tokens].

        ``add_special_tokens`` adds what the tokenizer puts around a text (often one BOS). Special tokens written in the
        text are recognised, so a completion prompt means what it says; :class:`oga.ChatTemplate` keeps those of a user
        apart.

        Raises :class:`oga.UnsupportedError` without the package ``tokenizers`` when the native encoder does not know
        the tokenizer.
        """
        import numpy as np

        if not isinstance(text, str):
            raise ArgumentTypeError(f"text must be a str, not {type(text).__name__}.", field="text")
        adds = self._adds_special_tokens if add_special_tokens is None else add_special_tokens
        core = self._optional_core()
        return self._encode_natively(text, adds) if core is None else np.array(encode(core, text, adds), dtype=np.int32)

    def encode_prompt(self, text: str) -> npt.NDArray[np.int32]:
        """Token ids of a text that begins a sequence: as :meth:`encode`, with one BOS when the text spells it too.

        What the tokenizer puts before a text is left out where the text itself begins with it.
        """
        tokens, prefix = self.encode(text), self.prefix_ids
        count = len(prefix)
        doubles = self._adds_special_tokens and count > 0 and tokens[: 2 * count].tolist() == prefix * 2
        return tokens[count:] if doubles else tokens

    def decode(self, tokens: Tokens, *, skip_special_tokens: bool | None = None) -> str:
        """The text of ``tokens``, any one-dimensional array or iterable of integers.

        Ids that the tokenizer does not know give nothing. Bytes that are no character give U+FFFD.
        """
        values = as_int32(tokens)
        with self.create_stream(skip_special_tokens=skip_special_tokens) as stream:
            return stream._decode(values) + stream.finish()

    def create_stream(self, *, skip_special_tokens: bool | None = None) -> TokenizerStream:
        """A decoder for tokens that arrive one by one."""
        skips = self._skips_special_tokens if skip_special_tokens is None else skip_special_tokens
        with self._guard:
            self._set_option("skip_special_tokens", skips)
            return TokenizerStream._take(create("OgaTokenizerStream", lib.OgaCreateTokenizerStream, self._pointer))

    def apply_chat_template(
        self,
        messages: str | Iterable[Message],
        *,
        template_str: str | None = None,
        tools: str | Sequence[Any] | None = None,
        add_generation_prompt: bool = True,
    ) -> str:
        """A conversation as text, by ``template_str`` or the folder's template.

        ``messages`` and ``tools`` are lists, or JSON that holds one. :meth:`oga.ChatTemplate.encode` is the way to
        token ids: it keeps special tokens that people write apart from the template's own.

        Without the package ``jinja2`` the text comes from ``onnxruntime-extensions``, which knows neither tools nor
        messages that hold more than text. Raises as :meth:`oga.ChatTemplate.render`.
        """
        from oga.chat import ChatTemplate, has_jinja

        if has_jinja():
            chat = from_json(messages, "messages")
            return ChatTemplate(self, template_str).render(
                chat, tools=from_json(tools, "tools"), add_generation_prompt=add_generation_prompt
            )
        given = [None if value is None else to_json(value) for value in (messages, tools)]
        chosen = None if template_str is None else arguments.c_text(template_str, "template_str")
        with self._guard:
            return take_string(
                lib.OgaTokenizerApplyChatTemplate,
                self._pointer,
                ffi.NULL if chosen is None else chosen,
                arguments.c_text(given[0], "messages"),
                ffi.NULL if given[1] is None else arguments.c_text(given[1], "tools"),
                add_generation_prompt,
            )

    def to_token_id(self, token: str) -> int:
        """The id of a token by the text that ``tokenizer.json`` has for it; -1 when there is none."""
        text = arguments.c_text(token, "token")
        out = ffi.new("int32_t *")
        self._call(lib.OgaTokenizerToTokenId, text, out)
        return int(out[0])

    def token_bytes(self, token: int) -> bytes:
        """The bytes that a token stands for inside a text; not UTF-8 by themselves in general.

        Empty for an id that the tokenizer does not know.
        """
        value = arguments.int32(token, "token")
        out, count = ffi.new("const uint8_t **"), ffi.new("size_t *")
        with self._guard:
            check(lib.OgaTokenizerGetTokenBytes(self._pointer, value, out, count))
            return bytes(ffi.buffer(out[0], count[0])) if count[0] else b""

    @property
    def bos_token_id(self) -> int | None:
        """The token that begins a sequence; None when the folder names none, as with the other roles."""
        return self._role(lib.OgaTokenizerGetBosTokenId)

    @property
    def eos_token_ids(self) -> list[int]:
        """The tokens that end a turn, perhaps none."""
        out, count = ffi.new("const int32_t **"), ffi.new("size_t *")
        with self._guard:
            check(lib.OgaTokenizerGetEosTokenIds(self._pointer, out, count))
            return [int(out[0][index]) for index in range(count[0])]

    @property
    def pad_token_id(self) -> int | None:
        """The token that fills up short sequences."""
        return self._role(lib.OgaTokenizerGetPadTokenId)

    @property
    def bot_token_id(self) -> int | None:
        """The token that begins a tool call."""
        return self._role(lib.OgaTokenizerGetBotTokenId)

    @property
    def eot_token_id(self) -> int | None:
        """The token that ends a tool call."""
        return self._role(lib.OgaTokenizerGetEotTokenId)

    @property
    def bor_token_id(self) -> int | None:
        """The token that begins the reasoning of an answer."""
        return self._role(lib.OgaTokenizerGetBorTokenId)

    @property
    def eor_token_id(self) -> int | None:
        """The token that ends the reasoning of an answer."""
        return self._role(lib.OgaTokenizerGetEorTokenId)

    @cached_property
    def prefix_ids(self) -> list[int]:
        """The ids that the tokenizer itself puts before every text, often one BOS or none."""
        plain = self.encode("a", add_special_tokens=False).tolist()
        whole = self.encode("a", add_special_tokens=True).tolist()
        starts = [at for at in range(len(whole)) if whole[at : at + len(plain)] == plain]
        return whole[: starts[-1]] if starts else []

    def _role(self, getter: Any) -> int | None:
        out = ffi.new("int32_t *")
        try:
            self._call(getter, out)
        except NotFoundError:
            return None
        return int(out[0])

    def _set_option(self, key: str, value: bool) -> None:
        name, text = ffi.new("char[]", key.encode()), ffi.new("char[]", b"true" if value else b"false")
        check(
            lib.OgaUpdateTokenizerOptions(
                self._pointer, ffi.new("const char *[]", [name]), ffi.new("const char *[]", [text]), 1
            )
        )

    def _encode_natively(self, text: str, add_special_tokens: bool) -> npt.NDArray[np.int32]:
        given = arguments.c_text(text, "text")
        with Sequences() as sequences, self._guard, called(str="text"):
            self._set_option("add_special_tokens", add_special_tokens)
            check(lib.OgaTokenizerEncode(self._pointer, given, sequences._pointer))
            return sequences[0]

    def _optional_core(self) -> tokenizers.Tokenizer | None:
        """The tokenizer of the package ``tokenizers``; None when that is not installed."""
        try:
            return self._core
        except _MissingPackageError:
            return None

    @property
    def _core(self) -> tokenizers.Tokenizer:
        with self._core_lock:
            if self._loaded_core is None:
                self._loaded_core = _load_core(self._folder)
            return self._loaded_core

    def __repr__(self) -> str:
        return f"<oga.Tokenizer {str(self._folder)!r}{' closed' if self.closed else ''}>"


class TokenizerStream(Handle):
    """Decodes tokens one by one; the pieces add up to what :meth:`Tokenizer.decode` gives for all of them.

    A piece never ends inside a character: text is held back while its last bytes may still become one. Made by
    :meth:`Tokenizer.create_stream`; one thread at a time. Outlives its tokenizer.
    """

    _destroy = "OgaDestroyTokenizerStream"

    @classmethod
    def _take(cls, pointer: Any) -> TokenizerStream:
        stream = cls.__new__(cls)
        Handle.__init__(stream, pointer)
        return stream

    def __init__(self) -> None:
        raise ArgumentTypeError("A TokenizerStream is made by Tokenizer.create_stream.")

    def decode(self, token: int) -> str:
        """The text that ``token`` completes, often none."""
        return self._decode(as_int32([token], "token"))

    def finish(self) -> str:
        """What is still held back; bytes that never became a character give U+FFFD. The stream starts afresh."""
        return self._text(lib.OgaTokenizerStreamFinish)

    def _decode(self, tokens: TokenArray) -> str:
        return self._text(lib.OgaTokenizerStreamDecodeTokens, tokens.pointer, tokens.length)

    def _text(self, function: Any, *given: Any) -> str:
        out, count = ffi.new("const char **"), ffi.new("size_t *")
        with self._guard:
            check(function(self._pointer, *given, out, count))
            return str(ffi.buffer(out[0], count[0])[:], "utf-8")


class _MissingPackageError(MissingFileError):
    """The package ``tokenizers`` is not installed."""


def encode(core: tokenizers.Tokenizer, text: str, add_special_tokens: bool) -> list[int]:
    """Ids by a tokenizer of the package ``tokenizers``."""
    try:
        return core.encode(text, add_special_tokens=add_special_tokens).ids
    except (TypeError, UnicodeEncodeError):
        raise InvalidArgumentError(
            "text is not valid Unicode: it comes from bytes that are no UTF-8, or holds half of a surrogate pair.",
            field="text",
        ) from None


def _load_core(folder: Path) -> tokenizers.Tokenizer:
    try:
        import tokenizers
    except ImportError:
        raise _MissingPackageError(
            "This needs the Python package 'tokenizers', which is not installed: pip install tokenizers. "
            "Token ids work without it."
        ) from None
    path = folder / "tokenizer.json"
    try:
        core = tokenizers.Tokenizer.from_buffer(read_bytes(path))
    except OgaError:
        raise
    except Exception as error:
        _refuse_unknown_components(path)
        raise InvalidArgumentError(f"{path} cannot be read as a tokenizer: {error}", field=str(path)) from error
    # A length that some training run wanted must neither cut nor fill up what a program encodes.
    core.no_truncation()
    core.no_padding()
    _add_named_tokens(core, folder)
    return core


def _refuse_unknown_components(path: Path) -> None:
    for member, known in COMPONENTS.items():
        waiting = [read_optional_json(path).get(member)]
        while waiting:
            component = waiting.pop()
            if isinstance(component, list):
                waiting += component
            elif isinstance(component, dict) and isinstance(component.get("type"), str):
                if component["type"] not in known.split():
                    raise UnsupportedError(
                        f"{path}: the {member} {component['type']!r} is not supported.", field=str(path)
                    )
                waiting += [value for value in component.values() if isinstance(value, list)]


def _add_named_tokens(core: tokenizers.Tokenizer, folder: Path) -> None:
    """Adds the tokens that only ``tokenizer_config.json`` or ``added_tokens.json`` name, as the native side does."""
    import tokenizers

    settings = read_optional_json(folder / "tokenizer_config.json")
    named: dict[str, tuple[int, dict[str, Any]]] = {
        entry["content"]: (int(number), entry) for number, entry in (settings.get("added_tokens_decoder") or {}).items()
    }
    roles = [settings.get(role) for role in SPECIAL_ROLES]
    specials = {role["content"] if isinstance(role, dict) else role for role in roles if role}
    for content, number in read_optional_json(folder / "added_tokens.json").items():
        named.setdefault(content, (number, {"content": content, "special": content in specials}))
    known = {token.content for token in core.get_added_tokens_decoder().values()}
    for content, (_, entry) in sorted(named.items(), key=lambda item: item[1][0]):
        if content in known or not content:
            continue
        flags = {name: bool(entry.get(name, False)) for name in ("special", "lstrip", "rstrip", "single_word")}
        token = tokenizers.AddedToken(content, normalized=bool(entry.get("normalized", not flags["special"])), **flags)
        (core.add_special_tokens if flags["special"] else core.add_tokens)([token])


def from_json(value: Any, name: str) -> Any:
    """A value given as JSON text or as itself."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except json.JSONDecodeError as error:
        raise InvalidArgumentError(f"{name} is not valid JSON: {error}.", field=name) from None


def to_json(value: Any) -> str:
    """A value as JSON text; text is taken to be that already."""
    if isinstance(value, str):
        return value
    return json.dumps([dict(item) if isinstance(item, Mapping) else item for item in value], ensure_ascii=False)


def read_bytes(path: Path) -> bytes:
    """The content of a file of a model folder."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise MissingFileError(
            f"{path} does not exist. Text needs it; token ids work without. Convert the model again with "
            "`oga convert`, or copy the file from where the model came from.",
            field=str(path),
        ) from None
    except OSError as error:
        raise FileAccessError(f"{path} cannot be read: {error.strerror or error}.", field=str(path)) from error


def read_text(path: Path) -> str:
    """The content of a text file of a model folder, a byte order mark left out."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"{path} is not UTF-8 text ({error}).", field=str(path)) from None


def read_optional_json(path: Path) -> dict[str, Any]:
    """A JSON object of a model folder; empty when there is no such file."""
    if not path.exists() and not path.is_symlink():
        return {}
    try:
        value = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InvalidArgumentError(f"{path} is not valid JSON: {error}.", field=str(path)) from None
    if not isinstance(value, dict):
        raise InvalidArgumentError(f"{path} must hold a JSON object, not {type(value).__name__}.", field=str(path))
    return value
