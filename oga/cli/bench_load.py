"""What a load generator sends, and when: closed loops, open loops with random arrivals, mixes of lengths."""

from __future__ import annotations

import asyncio
import dataclasses
import random
import time
from typing import TYPE_CHECKING

from oga.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from oga.cli.bench_targets import Target

WORDS = ("the", "sea", "a", "lamp", "of", "stones", "river", "and", "under", "glass", "seven", "wind", "old", "who")


@dataclasses.dataclass(frozen=True)
class Load:
    """A load. The same numbers give the same requests at the same moments."""

    requests: int = 64
    concurrency: int = 8
    """Requests that are open at a time; in an open loop the most."""
    rate: float | None = None
    """Arrivals per second, at random moments; None is a closed loop, where an answer makes room for a request."""
    prompt_words: str = "32:128"
    output_tokens: str = "64"
    shared_prefix_words: int = 0
    """Words that all prompts begin with."""
    seed: int = 0


@dataclasses.dataclass(frozen=True)
class Request:
    """One request."""

    prompt: str
    output_tokens: int
    at: float
    """Seconds after the start; 0 in a closed loop."""


@dataclasses.dataclass
class Sample:
    """What came of a request. Times are seconds."""

    begun: float
    """After the start of the load."""
    first: float = 0.0
    whole: float = 0.0
    tokens: int = 0
    prompt_tokens: int = 0
    gaps: list[float] = dataclasses.field(default_factory=list)
    """Between tokens; pieces of several tokens count as so many equal gaps."""
    error: str | None = None


def lengths(text: str, name: str) -> list[tuple[int, int]]:
    """Ranges of a mix: ``64``, ``32:128``, or several of equal weight, ``16,512:1024``."""
    found = []
    for part in text.split(","):
        low, _, high = part.partition(":")
        if not low.isdecimal() or (high and not high.isdecimal()) or not 1 <= int(low) <= int(high or low):
            raise InvalidArgumentError(f"{name} is {text!r}; it must be like 64, 32:128 or 16,512:1024.")
        found.append((int(low), int(high or low)))
    return found


def requests_of(load: Load) -> list[Request]:
    """All requests of a load."""
    chance = random.Random(load.seed)
    prompts = lengths(load.prompt_words, "--prompt-words")
    outputs = lengths(load.output_tokens, "--output-tokens")
    prefix = chance.choices(WORDS, k=load.shared_prefix_words)
    at = 0.0
    found = []
    for _ in range(load.requests):
        if load.rate is not None:
            at += chance.expovariate(load.rate)
        words = [*prefix, *chance.choices(WORDS, k=chance.randint(*chance.choice(prompts)))]
        found.append(Request(" ".join(words), chance.randint(*chance.choice(outputs)), at))
    return found


async def run_load(target: Target, load: Load) -> tuple[list[Sample], float]:
    """Sends a load; what came of each request, in the order of the requests, and how long it all took."""
    requests = requests_of(load)
    rows = asyncio.Semaphore(load.concurrency)
    start = time.perf_counter()

    async def one(request: Request) -> Sample:
        await asyncio.sleep(max(0.0, start + request.at - time.perf_counter()))
        async with rows:
            # In an open loop, waiting for a place counts: whoever arrives does not know of the queue.
            begun = start + request.at if load.rate is not None else time.perf_counter()
            return await _measured(target, request, begun, start)

    samples = list(await asyncio.gather(*map(one, requests)))
    return samples, time.perf_counter() - start


async def _measured(target: Target, request: Request, begun: float, start: float) -> Sample:
    sample = Sample(begun - start)
    last = begun
    try:
        async for tokens in _pieces(target, request, sample):
            now = time.perf_counter()
            if sample.tokens:
                sample.gaps += [(now - last) / tokens] * tokens
            else:
                sample.first = now - begun
            sample.tokens += tokens
            last = now
    except Exception as error:  # whatever a target raises is a failed request, and the load goes on
        sample.error = f"{type(error).__name__}: {error}"[:200]
    sample.whole = time.perf_counter() - begun
    if sample.error is None and not sample.tokens:
        sample.error = "the answer had no token"
    return sample


async def _pieces(target: Target, request: Request, sample: Sample) -> AsyncIterator[int]:
    async for piece in target.generate(request.prompt, request.output_tokens):
        sample.prompt_tokens = piece.prompt_tokens or sample.prompt_tokens
        if piece.tokens:
            yield piece.tokens
