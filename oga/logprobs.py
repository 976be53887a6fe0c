"""Log-probabilities of tokens."""

from __future__ import annotations

from typing import Any, NamedTuple

from oga._native.check import check
from oga._native.loader import ffi

__all__ = ["TokenLogprob", "TokenLogprobs"]


class TokenLogprob(NamedTuple):
    """One token under the distribution of its place."""

    token: int
    logprob: float
    """Natural logarithm; -inf for a token that could not have been chosen."""
    rank: int
    """1 is the most likely token."""


class TokenLogprobs(NamedTuple):
    """A token and what else was likely in its place. A copy, valid for ever."""

    token: int
    logprob: float
    """Natural logarithm; -inf for a token that could not have been chosen."""
    rank: int
    """1 is the most likely token."""
    alternatives: tuple[TokenLogprob, ...]
    """The most likely tokens, most likely first, as many as asked for; then the tokens that were asked for by id. The
    token itself may be among them."""


def read_logprobs(getter: Any, event: Any, *index: int) -> TokenLogprobs | None:
    """Copies what a native getter of parallel arrays gives; None for empty ones."""
    tokens, logprobs = ffi.new("const int32_t **"), ffi.new("const float **")
    ranks, count = ffi.new("const int32_t **"), ffi.new("size_t *")
    check(getter(event, *index, tokens, logprobs, ranks, count))
    size = count[0]
    if size == 0:
        return None
    rows = zip(ffi.unpack(tokens[0], size), ffi.unpack(logprobs[0], size), ffi.unpack(ranks[0], size), strict=True)
    first, *others = (TokenLogprob(*row) for row in rows)
    return TokenLogprobs(*first, tuple(others))
