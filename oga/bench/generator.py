"""Sends requests to a target, in a closed or an open loop, and times what comes back."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from oga.bench.samples import Sample
from oga.bench.workload import Load, Question, Questions


class Target(Protocol):
    """Whoever answers."""

    async def begin(self) -> None:
        """The warm-up is over; what is counted from now on belongs to the measurement."""

    async def ask(self, question: Question, sample: Sample, note_piece: Callable[[], None]) -> None:
        """Answers one request: ``note_piece()`` at each piece of output, token counts and a failure in ``sample``."""


class Generator:
    """One measurement of one target."""

    def __init__(
        self,
        target: Target,
        questions: Questions,
        load: Load,
        seed: int,
        timeout_seconds: float,
        note_end: Callable[[Sample], None],
    ) -> None:
        """``note_end(sample)`` after each measured request, for a display."""
        self._target = target
        self._questions = questions
        self._load = load
        self._dice = random.Random(seed)
        self._timeout_seconds = timeout_seconds
        self._note_end = note_end
        self._samples: list[Sample] = []
        self._epoch = 0.0

    async def run(self) -> list[Sample]:
        """Warms the target up, then measures. Every request that began is awaited."""
        self._epoch = time.perf_counter()
        if self._load.warmup:
            warming = iter(range(self._load.warmup))
            await self._workers(min(self._load.warmup, self._load.concurrency or self._load.warmup), warming, [])
        await self._target.begin()
        self._epoch = time.perf_counter()
        if self._load.concurrency is not None:
            await self._workers(self._load.concurrency, self._numbers(), self._samples)
        else:
            await self._open_loop()
        return self._samples

    def _now(self) -> float:
        return time.perf_counter() - self._epoch

    def _numbers(self) -> Iterator[int]:
        """One per request until there were enough of them, or the time is over."""
        number = 0
        while self._load.requests is None or number < self._load.requests:
            if self._load.seconds is not None and self._now() >= self._load.seconds:
                return
            yield number
            number += 1

    async def _workers(self, count: int, numbers: Iterator[int], samples: list[Sample]) -> None:
        """A new request as soon as one of ``count`` has ended."""

        async def work() -> None:
            for _ in numbers:
                await self._one(self._questions.next(), self._now(), samples)

        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(work())

    async def _open_loop(self) -> None:
        async with asyncio.TaskGroup() as group:
            for number, due in enumerate(self._load.moments(self._dice)):
                if self._load.requests is not None and number >= self._load.requests:
                    return
                if self._load.seconds is not None and due >= self._load.seconds:
                    return
                question = self._questions.next()
                await asyncio.sleep(max(0.0, due - self._now()))
                group.create_task(self._one(question, due, self._samples))

    async def _one(self, question: Question, due: float, samples: list[Sample]) -> None:
        sample = Sample(due)
        samples.append(sample)
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await self._target.ask(question, sample, lambda: sample.pieces.append(self._now()))
        except TimeoutError:
            sample.fail("timeout", f"no end of the answer in {self._timeout_seconds:g} s")
        sample.end = self._now()
        if sample.error is None and not sample.pieces and not sample.output_tokens:
            sample.fail("empty answer", "the answer had no output at all")
        if samples is self._samples:
            self._note_end(sample)
