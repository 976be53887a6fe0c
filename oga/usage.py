"""The token counts of a turn."""

from __future__ import annotations

from typing import Any, NamedTuple

from oga._native.check import check
from oga._native.loader import ffi, lib

__all__ = ["TurnUsage"]


class TurnUsage(NamedTuple):
    """How many tokens a turn took and made; all zero on events that do not end a turn. A copy, valid for ever."""

    prompt_tokens: int
    """Input tokens of this turn (not of earlier ones)."""
    generated_tokens: int
    """Tokens this turn appended as output; an EOS that ended it is not among them."""
    cached_prompt_tokens: int
    """Input tokens that were taken from the prefix cache instead of being computed."""


def read_usage(usage: Any, out: Any) -> None:
    """Writes the three counts of a native usage to ``out[0]``, ``out[1]`` and ``out[2]`` (``uint64_t *``)."""
    check(lib.OgaTurnUsageGetPromptTokens(usage, out))
    check(lib.OgaTurnUsageGetGeneratedTokens(usage, out + 1))
    check(lib.OgaTurnUsageGetCachedPromptTokens(usage, out + 2))


def copy_usage(usage: Any) -> TurnUsage:
    """Copies a native usage."""
    out = ffi.new("uint64_t[3]")
    read_usage(usage, out)
    return TurnUsage(*out)
