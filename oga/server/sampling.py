"""From the fields of a request to the options of a turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from oga.server.errors import refused
from oga.server.schemas.sampler import SamplerFields

if TYPE_CHECKING:
    from oga.server.schemas.common import Sampling

SEED_STRIDE = 0x9E3779B97F4A7C15  # an odd number far from small ones: the seeds of choices never meet
SEEDS = 2**64


def options(body: Sampling, max_tokens: int | None) -> dict[str, Any]:
    """Keywords of :meth:`oga.AsyncEngine.stream` for all choices of a request."""
    found: dict[str, Any] = {name: getattr(body, name) for name in SamplerFields.__annotations__}
    found["max_new_tokens"] = max_tokens
    found["min_new_tokens"] = body.min_tokens
    found["stop_strings"] = stop_strings(body)
    found["stop_tokens"] = body.stop_token_ids or None
    if body.logit_bias:
        found["logit_bias"] = _logit_bias(body.logit_bias)
    return {name: value for name, value in found.items() if value is not None}


def stop_strings(body: Sampling) -> list[str] | None:
    """The stop strings of a request; None for none."""
    return ([body.stop] if isinstance(body.stop, str) else body.stop) or None


def seed(given: int | None, choice: int) -> int | None:
    """The seed of a choice: the first one has the seed given, the others differ from it and from one another."""
    return None if given is None else (given + choice * SEED_STRIDE) % SEEDS


def _logit_bias(given: dict[str, float]) -> dict[int, float]:
    biases = {}
    for token, bias in given.items():
        if not token.isascii() or not token.isdigit() or token != str(int(token)):
            raise refused(f'logit_bias has the key {token!r}; keys are token ids, such as "15".', param="logit_bias")
        biases[int(token)] = bias
    return biases
