"""The turns behind one request: started together, read as they come, and gone when nobody wants them any more."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

from oga.errors import OgaError
from oga.event import FinishReason

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from oga.aio import AsyncStream
    from oga.generation import Delta
    from oga.server.metrics import Metrics
    from oga.usage import TurnUsage

REASONS = {
    FinishReason.EOS: "stop",
    FinishReason.STOP_STRING: "stop",
    FinishReason.MAX_GENERATED_TOKENS: "length",
    FinishReason.MAX_SESSION_TOKENS: "length",
    FinishReason.CANCELLED: "abort",
    FinishReason.FAILED: "error",
}


class Choices:
    """A context manager around the turns of a request."""

    def __init__(
        self,
        streams: Sequence[AsyncStream],
        model: str,
        metrics: Metrics,
        note: dict[str, Any],
    ) -> None:
        """``note`` gets what the log should say."""
        self._streams = streams
        self._model = model
        self._metrics = metrics
        self._note = note
        self._is_closed = False
        self._reasons = ["abort"] * len(streams)
        self._usages: list[TurnUsage | None] = [None] * len(streams)
        self._last_token_at = [0.0] * len(streams)

    async def __aenter__(self) -> Choices:
        """Queues all turns; when one is refused, none stays."""
        self._note["model"] = self._model
        try:
            for stream in self._streams:
                await stream.start()
        except BaseException:
            await self.close()
            raise
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Ends the turns that are open, and counts all of them. Idempotent."""
        if self._is_closed:
            return
        self._is_closed = True
        for stream in self._streams:
            await asyncio.shield(stream.aclose())
        for stream, reason, usage in zip(self._streams, self._reasons, self._usages, strict=True):
            if stream.timings.accepted:
                self._metrics.turn(self._model, reason, stream.timings, usage)
        first = min((at - s.timings.submitted for s in self._streams if (at := s.timings.first_token)), default=None)
        self._note |= {"completion_tokens": self.completion_tokens, "finish": ",".join(self._reasons)}
        if first is not None:
            self._note["first_token_seconds"] = round(first, 4)

    @property
    def completion_tokens(self) -> int:
        """Generated tokens of the turns that ended."""
        return sum(usage.generated_tokens for usage in self._usages if usage is not None)

    def usage(self, prompt_tokens: int, *, counts_completion: bool = True) -> dict[str, Any]:
        """OpenAI's usage object. The prompt of several choices counts once."""
        completion = self.completion_tokens if counts_completion else 0
        cached = max((usage.cached_prompt_tokens for usage in self._usages[:1] if usage is not None), default=0)
        self._note["prompt_tokens"] = prompt_tokens
        return {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": prompt_tokens + completion,
            "prompt_tokens_details": {"cached_tokens": cached},
        }

    @property
    def turn_tokens(self) -> int:
        """Input tokens of the first turn."""
        return 0 if self._usages[0] is None else self._usages[0].prompt_tokens

    async def deltas(self) -> AsyncGenerator[tuple[int, Delta], None]:
        """The output of all turns as it comes. A reader that is slow gets larger pieces."""
        reading: dict[asyncio.Task[Delta | None], int] = {
            asyncio.create_task(_next(stream)): index for index, stream in enumerate(self._streams)
        }
        try:
            while reading:
                done, _ = await asyncio.wait(reading, return_when=asyncio.FIRST_COMPLETED)
                for task in sorted(done, key=reading.__getitem__):
                    index = reading.pop(task)
                    delta = self._result(index, task)
                    if delta is None:
                        continue
                    self._observe(index, delta)
                    if not delta.last:
                        reading[asyncio.create_task(_next(self._streams[index]))] = index
                    yield index, delta
        finally:
            for task in reading:
                task.cancel()
            await asyncio.gather(*reading, return_exceptions=True)

    def _result(self, index: int, task: asyncio.Task[Delta | None]) -> Delta | None:
        """What a turn has produced; notes one that failed."""
        try:
            return task.result()
        except OgaError as error:
            if error.failure is not None:
                self._reasons[index] = REASONS[FinishReason.FAILED]
            raise

    def _observe(self, index: int, delta: Delta) -> None:
        now = time.monotonic()
        if delta.token_ids:
            if self._last_token_at[index]:
                self._metrics.token_gap(self._model, now - self._last_token_at[index], len(delta.token_ids))
            self._last_token_at[index] = now
        if delta.last:
            self._reasons[index] = REASONS[delta.finish_reason]
            self._usages[index] = delta.usage


async def _next(stream: AsyncStream) -> Delta | None:
    return await anext(stream, None)
