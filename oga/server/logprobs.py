"""Log-probabilities in OpenAI's two shapes. Always valid JSON: minus infinity is written as -9999."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

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


class ForCompletions:
    """``logprobs`` of a completion, built up piece by piece."""

    def __init__(self, tokenizer: Tokenizer, top: int) -> None:
        self._tokenizer = tokenizer
        self._top = top
        self._offset = 0

    def of(self, found: Sequence[tuple[int, TokenLogprobs | None]]) -> dict[str, Any]:
        """The arrays for some tokens; None for one whose probability is not known, as that of the very first."""
        texts = [_text(self._tokenizer.token_bytes(token)) for token, _ in found]
        offsets = []
        for text in texts:
            offsets.append(self._offset)
            self._offset += len(text)
        return {
            "tokens": texts,
            "token_logprobs": [None if each is None else floored(each.logprob) for _, each in found],
            "top_logprobs": [None if each is None else self._tops(each) for _, each in found] if self._top else None,
            "text_offset": offsets,
        }

    def _tops(self, each: TokenLogprobs) -> dict[str, float]:
        """The most likely tokens and the chosen one. Tokens that are written alike keep the higher value."""
        tops: dict[str, float] = {}
        values = [(other.token, other.logprob) for other in each.alternatives[: self._top]]
        for token, value in [*values, (each.token, each.logprob)]:
            text = _text(self._tokenizer.token_bytes(token))
            tops[text] = max(tops.get(text, FLOOR), floored(value))
        return tops


def _entry(tokenizer: Tokenizer, token: int, value: float) -> dict[str, Any]:
    content = tokenizer.token_bytes(token)
    return {"token": _text(content), "logprob": floored(value), "bytes": list(content)}


def _text(content: bytes) -> str:
    return content.decode("utf-8", "backslashreplace")
