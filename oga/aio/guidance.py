"""Grammars compiled beside the engine's thread, so that one that takes long holds up nobody's tokens."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from oga.aio.owner import OVER
from oga.errors import EngineClosedError, about

if TYPE_CHECKING:
    from collections.abc import Mapping

    from oga.engine import Engine


class GuidanceCompiler:
    """Compiles on a thread of its own, one grammar at a time: prompts do not wait for grammars either."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._is_closed = False
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="oga-grammar")

    async def prepare(self, settings: Mapping[str, Any]) -> None:
        """Returns when a turn with these settings can begin without compiling anything.

        Raises what :meth:`oga.Engine.prepare_guidance` raises, with the keyword as its ``field``.
        """
        grammar = _grammar_of(settings)
        if grammar is None:
            return
        keyword, kind, text = grammar
        try:
            compiled = asyncio.get_running_loop().run_in_executor(self._thread, self._compile, kind, text)
        except RuntimeError:  # the thread takes nothing after close()
            raise EngineClosedError(OVER) from None
        with about(keyword):
            await compiled

    def close(self) -> None:
        """Ends the thread with what it is compiling; whoever waits for another grammar is answered."""
        self._is_closed = True
        self._thread.shutdown(wait=False)

    def _compile(self, kind: str, text: Any) -> None:
        if self._is_closed:
            raise EngineClosedError(OVER)
        self._engine.prepare_guidance(kind, text)


def _grammar_of(settings: Mapping[str, Any]) -> tuple[str, str, Any] | None:
    """Keyword, type and text; None without a grammar, and for values that only a turn's options can refuse."""
    whole, delimited = settings.get("guidance"), settings.get("delimited_guidance")
    if isinstance(whole, tuple | list) and len(whole) == 2:
        return "guidance", whole[0], whole[1]
    if isinstance(delimited, tuple | list) and len(delimited) == 3:
        return "delimited_guidance", "lark_grammar", delimited[2]
    return None
