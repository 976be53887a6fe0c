"""What a turn gives back, piece by piece or whole, and how prompts become token ids."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from oga.event import FinishReason

if TYPE_CHECKING:
    from oga._native.tokens import Tokens
    from oga.chat import Message
    from oga.errors import OgaError
    from oga.logprobs import TokenLogprobs
    from oga.model import Model
    from oga.usage import TurnUsage

__all__ = ["Delta", "Prompt", "Result", "Timings"]

Prompt: TypeAlias = "str | Sequence[Message] | Tokens"
"""Text (encoded by the folder's tokenizer), chat messages (by its chat template), or token ids."""


@dataclasses.dataclass(slots=True)
class Timings:
    """When a turn went through its stations, in seconds of :func:`time.monotonic`; 0 for what has not happened."""

    submitted: float = dataclasses.field(default_factory=time.monotonic)
    """The program asked for it."""
    accepted: float = 0.0
    """The engine took it and queued it."""
    first_token: float = 0.0
    """Its first token was there."""
    finished: float = 0.0
    """It ended."""


@dataclasses.dataclass(slots=True)
class Delta:
    """What a turn has produced since the piece before. The pieces of a turn add up to its :class:`oga.Result`.

    ``text`` never ends inside a character, is never taken back, and leaves out the text of stop strings. A reader that
    comes late gets everything since its last visit in one piece.
    """

    token_ids: list[int] = dataclasses.field(default_factory=list)
    pieces: list[str] = dataclasses.field(default_factory=list)
    """The text that each token made visible, then perhaps what the end of the turn did; often empty."""
    logprobs: list[TokenLogprobs] = dataclasses.field(default_factory=list)
    """One per token id when the turn was asked for log-probabilities, otherwise empty."""
    prompt_logprobs: list[TokenLogprobs | None] | None = None
    """One per prompt token, in the turn's first piece, when the turn was asked for them."""
    finish_reason: FinishReason = FinishReason.NONE
    """NONE on every piece but the last."""
    stop_string: int | None = None
    """The index of the stop string that ended the turn."""
    usage: TurnUsage | None = None
    """The turn's token counts, on the last piece."""

    @property
    def text(self) -> str:
        """All of it as one text."""
        return "".join(self.pieces)

    @property
    def last(self) -> bool:
        """Whether the turn is over with this piece."""
        return self.finish_reason is not FinishReason.NONE


class Pending:
    """Pieces of a turn that nobody has read yet, merged into one: as large as the turn's own output, no more."""

    __slots__ = ("_merged",)

    def __init__(self) -> None:
        self._merged: Delta | None = None

    def __bool__(self) -> bool:
        return self._merged is not None

    def add(self, delta: Delta) -> None:
        """Merges a piece; the object given belongs to this one from then on."""
        if self._merged is None:
            self._merged = delta
            return
        merged = self._merged
        merged.token_ids += delta.token_ids
        merged.pieces += delta.pieces
        merged.logprobs += delta.logprobs
        merged.prompt_logprobs = merged.prompt_logprobs or delta.prompt_logprobs
        merged.finish_reason = delta.finish_reason
        merged.stop_string = delta.stop_string
        merged.usage = delta.usage

    def take(self) -> Delta | None:
        """What has come since the last call; None when nothing has."""
        merged, self._merged = self._merged, None
        return merged


@dataclasses.dataclass(frozen=True, slots=True)
class Result:
    """The whole output of a turn."""

    text: str
    """Without special tokens and without the stop string that ended it; empty when the folder has no tokenizer."""
    token_ids: list[int]
    finish_reason: FinishReason
    usage: TurnUsage | None
    """None for a turn that never began."""
    timings: Timings
    logprobs: list[TokenLogprobs] = dataclasses.field(default_factory=list)
    prompt_logprobs: list[TokenLogprobs | None] | None = None
    stop_string: int | None = None
    error: OgaError | None = None
    """Why it failed; always None where failures are raised."""

    @classmethod
    def of(cls, delta: Delta, timings: Timings, error: OgaError | None = None) -> Result:
        """The result of a turn whose whole output is one piece."""
        return cls(
            text=delta.text,
            token_ids=delta.token_ids,
            finish_reason=delta.finish_reason,
            usage=delta.usage,
            timings=timings,
            logprobs=delta.logprobs,
            prompt_logprobs=delta.prompt_logprobs,
            stop_string=delta.stop_string,
            error=error,
        )


def is_chat(prompt: Any) -> bool:
    """Whether a prompt is a list of messages."""
    return isinstance(prompt, list | tuple) and len(prompt) > 0 and isinstance(prompt[0], Mapping)


def encode_prompt(model: Model, prompt: Any) -> Tokens:
    """Token ids of a prompt; those of a caller are passed on as they are. Any thread."""
    if is_chat(prompt):
        return model.chat_template.encode(prompt)
    if isinstance(prompt, str):
        return model.tokenizer.encode_prompt(prompt)
    tokens: Tokens = prompt
    return tokens
