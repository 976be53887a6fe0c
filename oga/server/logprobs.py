"""Log-probabilities in OpenAI's two shapes. Always valid JSON: minus infinity is written as -9999."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from oga.logprobs import TokenLogprobs
    from oga.tokenizer import Tokenizer

FLOOR = -9999.0


def floored(value: float) -> float:
    """A log-probability that JSON can carry."""
    return FLOOR if math.isnan(value) or value < FLOOR else min(value, 0.0)


def for_chat(found: Sequence[TokenLogprobs], tokenizer: Tokenizer, top: int) -> list[dict[str, Any]]:
    """``logprobs.content`` of a chat completion; ``bytes`` are the token's own."""
    return [
        {
            **_entry(tokenizer, each.token, each.logprob),
            "top_logprobs": [_entry(tokenizer, other.token, other.logprob) for other in each.alternatives[:top]],
        }
        for each in found
    ]


class Entry(NamedTuple):
    """A token as a completion reports it."""

    text: str
    logprobs: TokenLogprobs | None
    """None for a token whose probability is not known, as that of the very first."""
    offset: int


class ForCompletions:
    """``logprobs`` of a completion, built up piece by piece."""

    def __init__(self, tokenizer: Tokenizer, top: int) -> None:
        self._tokenizer = tokenizer
        self._top = top
        self._offset = 0
        self._decoder = tokenizer.create_stream(skip_special_tokens=True)

    def of_prompt(
        self, tokens: Sequence[int], found: Sequence[TokenLogprobs | None], pieces: Sequence[str]
    ) -> list[Entry]:
        """The entries of an echoed prompt; ``pieces`` are what each token adds to its text."""
        return [self._entry(*each) for each in zip(tokens, found, pieces, strict=True)]

    def of_output(self, found: Sequence[TokenLogprobs]) -> list[Entry]:
        """The entries of tokens that were generated."""
        return [self._entry(each.token, each, self._decoder.decode(each.token)) for each in found]

    def arrays(self, entries: Sequence[Entry]) -> dict[str, Any]:
        """The parallel arrays for some tokens."""
        found = [each.logprobs for each in entries]
        return {
            "tokens": [each.text for each in entries],
            "token_logprobs": [None if each is None else floored(each.logprob) for each in found],
            "top_logprobs": [None if each is None else self._tops(each) for each in found] if self._top else None,
            "text_offset": [each.offset for each in entries],
        }

    def _entry(self, token: int, found: TokenLogprobs | None, piece: str) -> Entry:
        """A token, and where what it adds to the text begins; a part of a character adds nothing yet."""
        offset, self._offset = self._offset, self._offset + len(piece)
        return Entry(_text(self._tokenizer.token_bytes(token)), found, offset)

    def _tops(self, each: TokenLogprobs) -> dict[str, float]:
        """The most likely tokens and the chosen one. Tokens that are written alike keep the higher value."""
        tops: dict[str, float] = {}
        values = [(other.token, other.logprob) for other in each.alternatives[: self._top]]
        for token, value in [*values, (each.token, each.logprob)]:
            text = _text(self._tokenizer.token_bytes(token))
            tops[text] = max(tops.get(text, FLOOR), floored(value))
        return tops


def spelled(tokenizer: Tokenizer, prompt: str | Sequence[int], tokens: Sequence[int]) -> list[str]:
    """What each token of a prompt adds to its text: nothing those that the tokenizer put around it."""
    own = range(len(tokens))
    if isinstance(prompt, str):
        plain = tokenizer.encode(prompt, add_special_tokens=False).tolist()
        starts = range(len(tokens) - len(plain) + 1)
        start = next((at for at in starts if tokens[at : at + len(plain)] == plain), 0)
        own = range(start, start + len(plain))
    with tokenizer.create_stream(skip_special_tokens=False) as stream:
        pieces = [stream.decode(token) if at in own else "" for at, token in enumerate(tokens)]
        if rest := stream.finish():
            pieces[-1] += rest
    return pieces


def _entry(tokenizer: Tokenizer, token: int, value: float) -> dict[str, Any]:
    content = tokenizer.token_bytes(token)
    return {"token": _text(content), "logprob": floored(value), "bytes": list(content)}


def _text(content: bytes) -> str:
    return content.decode("utf-8", "backslashreplace")
