"""How one turn generates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from oga._native import arguments
from oga._native.check import create
from oga._native.handle import Handle, borrowed
from oga._native.loader import lib
from oga.request import Request

__all__ = ["TurnOptions"]


class TurnOptions(Handle):
    """The options of one request's turns, reusable for any number of them. Everything unset takes the model's default.

    Bound to the request, which it does not keep alive, and to the thread that owns the engine. A setter that refuses a
    value raises :class:`oga.InvalidArgumentError` and keeps the previous one.
    """

    _destroy = "OgaDestroyTurnOptions"

    def __init__(
        self,
        request: Request,
        *,
        max_generated_tokens: int | None = None,
        min_generated_tokens: int | None = None,
        do_sample: bool | None = None,
        temperature: float | None = None,
        top_k: int | None = None,
        top_p: float | None = None,
        repetition_penalty: float | None = None,
        seed: int | None = None,
    ) -> None:
        """Creates an option set for ``request``; keywords are the setters of the same name, None leaves one unset.

        Raises :class:`oga.InvalidStateError` on a closed request.
        """
        with borrowed(arguments.kind(request, Request, "request")) as owner:
            super().__init__(create("OgaTurnOptions", lib.OgaRequestCreateTurnOptions, owner))
        given: tuple[tuple[Callable[[Any], None], object], ...] = (
            (self.set_max_generated_tokens, max_generated_tokens),
            (self.set_min_generated_tokens, min_generated_tokens),
            (self.set_do_sample, do_sample),
            (self.set_temperature, temperature),
            (self.set_top_k, top_k),
            (self.set_top_p, top_p),
            (self.set_repetition_penalty, repetition_penalty),
            (self.set_seed, seed),
        )
        for setter, value in given:
            if value is not None:
                setter(value)

    def reset(self) -> None:
        """Unsets every option; the binding to the request stays."""
        self._call(lib.OgaTurnOptionsReset)

    def set_max_generated_tokens(self, max_generated_tokens: int) -> None:
        """Ends the turn after this many output tokens; 0 unsets (no limit but the session's)."""
        value = arguments.uint64(max_generated_tokens, "max_generated_tokens")
        self._call(lib.OgaTurnOptionsSetMaxGeneratedTokens, value)

    def set_min_generated_tokens(self, min_generated_tokens: int) -> None:
        """Keeps every EOS id from being chosen before this many output tokens; 0 unsets."""
        value = arguments.uint64(min_generated_tokens, "min_generated_tokens")
        self._call(lib.OgaTurnOptionsSetMinGeneratedTokens, value)

    def set_do_sample(self, do_sample: bool) -> None:
        """Draws tokens at random (True) or takes the most likely one (False)."""
        self._call(lib.OgaTurnOptionsSetDoSample, arguments.boolean(do_sample, "do_sample"))

    def set_temperature(self, temperature: float) -> None:
        """Divides the logits before drawing; finite and >= 0, where 0 means the most likely token."""
        self._call(lib.OgaTurnOptionsSetTemperature, arguments.number(temperature, "temperature"))

    def set_top_k(self, top_k: int) -> None:
        """Draws among the k most likely tokens; >= 0, where 0 and anything from the vocabulary size up are off."""
        self._call(lib.OgaTurnOptionsSetTopK, arguments.int32(top_k, "top_k"))

    def set_top_p(self, top_p: float) -> None:
        """Draws among the smallest set of tokens whose probability reaches p; in [0, 1], where 0 and 1 are off."""
        self._call(lib.OgaTurnOptionsSetTopP, arguments.number(top_p, "top_p"))

    def set_repetition_penalty(self, repetition_penalty: float) -> None:
        """Makes tokens of the prompt and the output less likely; finite and > 0, where 1 is off.

        A positive logit is divided by the penalty, any other multiplied.
        """
        value = arguments.number(repetition_penalty, "repetition_penalty")
        self._call(lib.OgaTurnOptionsSetRepetitionPenalty, value)

    def set_seed(self, seed: int) -> None:
        """Makes the turn's draws reproducible; every value in [0, 2**64), 0 too, is a seed.

        A later unseeded turn continues from it.
        """
        self._call(lib.OgaTurnOptionsSetSeed, arguments.uint64(seed, "seed"))

    def clear_seed(self) -> None:
        """Unsets the seed."""
        self._call(lib.OgaTurnOptionsClearSeed)
