"""Text to token ids and back, by the ``tokenizer.json`` of a model folder."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from oga._native.arguments import path_bytes
from oga.errors import ArgumentTypeError, FileAccessError, InvalidArgumentError, MissingFileError, OgaError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import tokenizers

    from oga._native.tokens import Tokens
    from oga.config import Config
    from oga.model import Model

__all__ = ["Tokenizer", "TokenizerStream"]

REPLACEMENT = "\ufffd"
SPECIAL_ROLES = ("bos_token", "eos_token", "pad_token", "unk_token", "sep_token", "cls_token", "mask_token")


class Tokenizer:
    """The tokenizer of a model folder. Any thread; one call at a time.

    Needs the ``tokenizers`` package. Raises :class:`oga.MissingFileError` (a ``FileNotFoundError``) or
    :class:`oga.FileAccessError` (an ``OSError``) naming the file, and :class:`oga.InvalidArgumentError` for a file that
    is no tokenizer.
    """

    def __init__(self, source: Model | Config | str | bytes | os.PathLike[str] | os.PathLike[bytes]) -> None:
        """Loads ``tokenizer.json`` from the folder of a model or config, or from a folder's path."""
        folder: Any = source if isinstance(source, str | bytes | os.PathLike) else getattr(source, "path", source)
        self._folder = Path(os.fsdecode(path_bytes(folder, "source")))
        self._core = _load_tokenizer(self._folder / "tokenizer.json")

    @property
    def path(self) -> Path:
        """The model folder, as it was given."""
        return self._folder

    @cached_property
    def settings(self) -> dict[str, Any]:
        """``tokenizer_config.json`` of the folder; empty when there is none."""
        path = self._folder / "tokenizer_config.json"
        return read_json(path) if path.exists() or path.is_symlink() else {}

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

    def encode(self, text: str, *, add_special_tokens: bool = True) -> npt.NDArray[np.int32]:
        """Token ids of ``text``, int32 of shape [tokens].

        ``add_special_tokens`` adds what the tokenizer puts around a text (often one BOS). Special tokens written in the
        text are recognised; :class:`oga.ChatTemplate` keeps those of a user apart.
        """
        import numpy as np

        if not isinstance(text, str):
            raise ArgumentTypeError(f"text must be a str, not {type(text).__name__}.")
        return np.array(self._encode(self._core, text, add_special_tokens), dtype=np.int32)

    def decode(self, tokens: Tokens, *, skip_special_tokens: bool = True) -> str:
        """The text of ``tokens``, any one-dimensional array or iterable of integers.

        Ids that the tokenizer does not know give nothing. Bytes that are no character give U+FFFD.
        """
        from oga._native.tokens import as_int32

        values = as_int32(tokens)
        ids = [token for token in values.pointer[0 : values.length] if token >= 0]
        return self._core.decode(ids, skip_special_tokens=skip_special_tokens)

    def create_stream(self, *, skip_special_tokens: bool = True) -> TokenizerStream:
        """A decoder for tokens that arrive one by one."""
        return TokenizerStream(self, skip_special_tokens)

    def to_token_id(self, token: str) -> int:
        """The id of a token by its exact text; -1 when there is none."""
        found = self._core.token_to_id(token)
        return -1 if found is None else found

    @cached_property
    def bos_id(self) -> int | None:
        """The id that the tokenizer itself puts before every text; None when it adds none."""
        plain = self._encode(self._core, "a", False)
        whole = self._encode(self._core, "a", True)
        at = len(whole) - len(plain)
        return whole[0] if at > 0 and whole[0] != plain[0] else None

    @staticmethod
    def _encode(core: tokenizers.Tokenizer, text: str, add_special_tokens: bool) -> list[int]:
        try:
            return core.encode(text, add_special_tokens=add_special_tokens).ids
        except (TypeError, UnicodeEncodeError):
            raise InvalidArgumentError(
                "text is not valid Unicode: it comes from bytes that are no UTF-8, or holds half of a surrogate pair."
            ) from None

    def __repr__(self) -> str:
        return f"<oga.Tokenizer {str(self._folder)!r}>"


class TokenizerStream:
    """Decodes tokens one by one; the pieces add up to what :meth:`Tokenizer.decode` gives for all of them.

    A piece never ends inside a character: text is held back while its last bytes may still become one. Made by
    :meth:`Tokenizer.create_stream`; one thread at a time.
    """

    # S1: ids[:_known] are decoded and handed out; ids[_start:] is decoded again for each token, which gives decoders
    #     that look at neighbours (leading spaces) the same view as decoding everything.
    # S2: _known is never inside a run of byte tokens: such a run is decoded as a whole or not at all. A token without
    #     text (a special one) does not end a run.
    def __init__(self, tokenizer: Tokenizer, skip_special_tokens: bool) -> None:
        self._core = tokenizer._core
        self._skip_special_tokens = skip_special_tokens
        self._ids: list[int] = []
        self._start = 0
        self._known = 0
        self._in_byte_run = False

    def decode(self, token: int) -> str:
        """The text that ``token`` completes, often none."""
        from oga._native.arguments import int32

        if (value := int32(token, "token")) < 0:
            return ""
        self._ids.append(value)
        if re.fullmatch(r"<0x[0-9A-Fa-f]{2}>", self._core.id_to_token(value) or ""):
            self._in_byte_run = True
        elif self._in_byte_run and self._text([value]):
            self._in_byte_run = False
        if self._in_byte_run:
            return ""
        before, after = self._window()
        if after.endswith(REPLACEMENT) or len(after) <= len(before):
            return ""
        return self._hand_out(before, after)

    def finish(self) -> str:
        """What is still held back; bytes that never became a character give U+FFFD. The stream starts afresh."""
        piece = self._hand_out(*self._window())
        self._ids.clear()
        self._start = self._known = 0
        self._in_byte_run = False
        return piece

    def _window(self) -> tuple[str, str]:
        """The text of the window without and with what is not handed out yet."""
        return self._text(self._ids[self._start : self._known]), self._text(self._ids[self._start :])

    def _hand_out(self, before: str, after: str) -> str:
        self._start, self._known = self._known, len(self._ids)
        return after[len(before) :]

    def _text(self, ids: Sequence[int]) -> str:
        return self._core.decode(ids, skip_special_tokens=self._skip_special_tokens)


def _load_tokenizer(path: Path) -> tokenizers.Tokenizer:
    try:
        import tokenizers
    except ImportError:
        raise MissingFileError(
            "Text needs the Python package 'tokenizers', which is not installed: pip install tokenizers. "
            "Token ids work without it."
        ) from None
    try:
        return tokenizers.Tokenizer.from_buffer(read_bytes(path))
    except OgaError:
        raise
    except Exception as error:
        raise InvalidArgumentError(f"{path} cannot be read as a tokenizer: {error}") from error


def read_bytes(path: Path) -> bytes:
    """The content of a file of a model folder."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise MissingFileError(
            f"{path} does not exist. Text needs it; token ids work without. Convert the model again with "
            "`oga convert`, or copy the file from where the model came from."
        ) from None
    except OSError as error:
        raise FileAccessError(f"{path} cannot be read: {error.strerror or error}.") from error


def read_text(path: Path) -> str:
    """The content of a text file of a model folder, a byte order mark left out."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"{path} is not UTF-8 text ({error}).") from None


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object of a model folder."""
    try:
        value = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise InvalidArgumentError(f"{path} is not valid JSON: {error}.") from None
    if not isinstance(value, dict):
        raise InvalidArgumentError(f"{path} must hold a JSON object, not {type(value).__name__}.")
    return value
