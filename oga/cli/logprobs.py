"""What the model thought of the tokens of an answer: for programs and for people."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from oga.logprobs import TokenLogprob, TokenLogprobs
from oga.tokenizer import Tokenizer


class TokenTable:
    """Log-probabilities with the texts of the tokens."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer

    def entries(self, logprobs: Sequence[TokenLogprobs]) -> list[dict[str, Any]]:
        """For JSON: a token that could not have been chosen has the log-probability null; ``bytes`` are its own."""
        return [
            self._entry(chosen) | {"top": [self._entry(other) for other in chosen.alternatives]} for chosen in logprobs
        ]

    def lines(self, logprobs: Sequence[TokenLogprobs]) -> list[str]:
        """One line per token: its log-probability, its text, and what else was likely."""
        return [
            f"{self._pair(chosen)}   of " + "  ".join(self._pair(other) for other in chosen.alternatives)
            if chosen.alternatives
            else self._pair(chosen)
            for chosen in logprobs
        ]

    def _entry(self, scored: TokenLogprob | TokenLogprobs) -> dict[str, Any]:
        content = self._tokenizer.token_bytes(scored.token)
        return {
            "token": scored.token,
            "text": content.decode("utf-8", "replace"),
            "bytes": list(content),
            "logprob": scored.logprob if math.isfinite(scored.logprob) else None,
            "rank": scored.rank,
        }

    def _pair(self, scored: TokenLogprob | TokenLogprobs) -> str:
        text = self._tokenizer.token_bytes(scored.token).decode("utf-8", "surrogateescape")
        quoted = json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogateescape")
        return f"{scored.logprob:9.4f} {quoted.decode('utf-8', 'backslashreplace')}"
