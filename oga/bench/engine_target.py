"""An engine in this process as the target of a measurement."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from oga.errors import EngineUnhealthyError, OgaError

if TYPE_CHECKING:
    from oga.aio import AsyncEngine
    from oga.bench.samples import Sample
    from oga.bench.workload import Question
    from oga.statistics import EngineStatistics


class EngineTarget:
    """Requests go to an :class:`oga.AsyncEngine` as token ids."""

    def __init__(self, engine: AsyncEngine, *, ignores_eos: bool) -> None:
        self._engine = engine
        self._ignores_eos = ignores_eos
        self._before: EngineStatistics | None = None

    async def begin(self) -> None:
        """Remembers the engine's counters."""
        self._before = await self._engine.get_statistics()

    async def facts(self) -> dict[str, float]:
        """What the engine did since then."""
        now, before = await self._engine.get_statistics(), self._before
        assert before is not None
        steps = now.steps - before.steps
        return {
            "steps": steps,
            "rows_per_step": (now.rows - before.rows) / steps if steps else 0.0,
            "prefix_tokens_saved": now.prefix_tokens_saved - before.prefix_tokens_saved,
            "preemptions": now.preemptions - before.preemptions,
        }

    async def ask(self, question: Question, sample: Sample, note_piece: Callable[[], None]) -> None:
        """Answers one request. Raises only when the engine is over."""
        assert question.tokens is not None
        stream = self._engine.stream(
            question.tokens, max_new_tokens=question.output_tokens, ignore_eos=self._ignores_eos
        )
        try:
            async for delta in stream:
                if delta.token_ids:
                    note_piece()
                    sample.output_tokens += len(delta.token_ids)
                if delta.usage is not None:
                    sample.prompt_tokens = delta.usage.prompt_tokens
        except EngineUnhealthyError:
            raise
        except OgaError as error:
            sample.fail(type(error).__name__, str(error))
