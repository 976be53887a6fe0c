"""An engine for asyncio programs."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack

from oga.aio.conversation import Conversation
from oga.aio.guidance import GuidanceCompiler
from oga.aio.owner import Owner
from oga.aio.prompts import PromptEncoder
from oga.aio.stream import AsyncStream, SingleTurn
from oga.capabilities import EngineCapabilities
from oga.config import Config
from oga.engine import Engine
from oga.errors import InvalidStateError, OgaError
from oga.model import Model
from oga.request import RequestOptions
from oga.stream import Generation, in_words_of_streams, turn_settings
from oga.turn_options import TurnOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from oga._native.tokens import Tokens
    from oga.generation import Prompt, Result
    from oga.statistics import EngineStatistics

__all__ = ["AsyncEngine"]

T = TypeVar("T")
Source = Model | Config | str | os.PathLike[str]
DEFAULT_MAX_WAITING = 256


class AsyncEngine:
    """Runs any number of asyncio tasks over one engine, which a thread of its own owns and steps.

    ::

        async with oga.AsyncEngine("folder") as engine:
            result = await engine.generate("Once upon a time", max_new_tokens=64)
            async for delta in engine.stream([{"role": "user", "content": "Hello!"}]):
                print(delta.text, end="", flush=True)

    Methods may be called from any event loop of the process. Nothing here blocks a loop: prompts are encoded and
    grammars compiled on threads of their own, and the step never waits for a reader.

    At most ``max_waiting`` turns wait beyond the largest batch; one more is refused with :class:`oga.QueueFullError`.
    When the engine fails for good, every call and every open stream raises the cause
    (:class:`oga.EngineUnhealthyError`).
    """

    def __init__(
        self,
        source: Source,
        *,
        config: str | Mapping[str, Any] | None = None,
        max_waiting: int | None = DEFAULT_MAX_WAITING,
    ) -> None:
        """Prepares an engine; ``async with`` or :meth:`open` loads it.

        ``source`` is a model folder, a :class:`oga.Config`, or a loaded model, which then stays the caller's.
        ``config`` is merged over the folder's config, as by :meth:`oga.Config.overlay`. ``max_waiting`` None refuses
        nobody.
        """
        if config is not None and isinstance(source, Model):
            raise InvalidStateError(
                "config cannot change a model that is loaded; give the model's folder instead.", field="config"
            )
        self._is_own_model = not isinstance(source, Model)
        self._owner = Owner(partial(_open, source, config), max_waiting)
        self._engine: Engine | None = None
        self._has_started = False
        self._closing: asyncio.Task[None] | None = None

    async def open(self) -> Self:
        """Loads the model and starts the engine. Raises what :class:`oga.Model` and :class:`oga.Engine` raise."""
        if self._has_started:
            raise InvalidStateError("An AsyncEngine is opened once. Create another one.")
        self._has_started = True
        self._engine = await asyncio.shield(asyncio.wrap_future(self._owner.start()))
        self._capabilities = await self._call(self._engine.get_capabilities)
        self._prompts = PromptEncoder(self._engine.model, self._capabilities.max_request_length)
        self._grammars = GuidanceCompiler(self._engine)
        return self

    async def __aenter__(self) -> Self:
        return await self.open()

    async def __aexit__(self, kind: type[BaseException] | None, *exception: object) -> None:
        await self.close(drain=kind is None)

    @property
    def model(self) -> Model:
        """The loaded model."""
        return self._opened.model

    @property
    def capabilities(self) -> EngineCapabilities:
        """The engine's fixed limits."""
        self._opened  # noqa: B018 (raises before the engine is open)
        return self._capabilities

    @property
    def statistics(self) -> EngineStatistics:
        """The engine's counters, a few milliseconds old while it works. Never waits; works on an unhealthy engine."""
        self._opened  # noqa: B018
        found = self._owner.statistics
        assert found is not None
        return found

    @property
    def open_turns(self) -> int:
        """Turns that were taken and have not ended: running or waiting. Never waits."""
        return self._owner.admitted

    @property
    def error(self) -> OgaError | None:
        """Why the engine failed for good; None while it is healthy. Never waits."""
        return self._owner.failure

    @property
    def is_alive(self) -> bool:
        """Whether the engine is open and its thread runs. Never waits."""
        return self._engine is not None and self._owner.is_running

    def stream(
        self,
        prompt: Prompt,
        *,
        priority: int | None = None,
        max_session_tokens: int | None = None,
        cache_salt: int | None = None,
        **generation: Unpack[Generation],
    ) -> AsyncStream:
        """The output of a turn on a sequence of its own, piece by piece.

        ``prompt`` is text, chat messages or token ids. ``priority``, ``max_session_tokens`` and ``cache_salt`` are
        those of :class:`oga.RequestOptions`, the other keywords those of :meth:`oga.Engine.stream`.
        """
        settings = turn_settings(generation)
        options = partial(_request_options, max_session_tokens, priority, cache_salt)

        async def prepare() -> tuple[SingleTurn, dict[str, Any]]:
            turn = SingleTurn(await self._prompts.encode(prompt), options)
            await self._grammars.prepare(settings)
            return turn, settings

        self._opened  # noqa: B018
        return AsyncStream(self._owner, prepare)

    async def generate(
        self,
        prompt: Prompt,
        *,
        priority: int | None = None,
        max_session_tokens: int | None = None,
        cache_salt: int | None = None,
        **generation: Unpack[Generation],
    ) -> Result:
        """The whole output of a turn on a sequence of its own; as :meth:`stream`."""
        stream = self.stream(
            prompt, priority=priority, max_session_tokens=max_session_tokens, cache_salt=cache_salt, **generation
        )
        return await stream.result()

    def open_conversation(
        self, *, priority: int | None = None, max_session_tokens: int | None = None, cache_salt: int | None = None
    ) -> Conversation:
        """A sequence that is kept between turns, to be continued, rewound and forked."""
        self._opened  # noqa: B018
        options = partial(_request_options, max_session_tokens, priority, cache_salt)
        return Conversation(self._owner, self._prompts, self._grammars, self.model, options)

    async def check_settings(self, **generation: Unpack[Generation]) -> None:
        """Raises what a turn with these keywords would raise for a value that is out of range."""
        await self._call(partial(_check_settings, self._opened, turn_settings(generation)))

    async def encode(
        self, prompt: Prompt, encode: Callable[[Any], Sequence[int]] | None = None
    ) -> Sequence[int] | Tokens:
        """Token ids of a prompt, made on the thread for that; by ``encode`` when it is given.

        Raises as :meth:`stream` for a text that is too long to fit.
        """
        self._opened  # noqa: B018
        return await self._prompts.encode(prompt, encode)

    async def run_on_text_thread(self, function: Callable[[], T]) -> T:
        """Calls ``function`` where prompts are encoded: one call at a time, beside the event loop."""
        self._opened  # noqa: B018
        found: T = await self._prompts.run(function)
        return found

    async def get_statistics(self) -> EngineStatistics:
        """The engine's counters as they are now, between two steps."""
        return await self._call(self._opened.get_statistics)

    async def drop_prefix_cache(self) -> None:
        """As :meth:`oga.Engine.drop_prefix_cache`."""
        await self._call(self._opened.drop_prefix_cache)

    async def close(self, *, drain: bool = False, timeout: float | None = None) -> None:
        """Takes no more turns and ends the engine. Idempotent.

        With ``drain`` the open turns first come to their end, for at most ``timeout`` seconds; what is open then, or
        without ``drain``, fails with :class:`oga.EngineClosedError`. A model that the engine loaded is closed too.
        """
        if not self._has_started:
            self._has_started = True
            return
        if self._closing is None or self._closing.get_loop() is not asyncio.get_running_loop():
            self._closing = asyncio.create_task(self._close(drain, timeout))
        elif not drain:
            self._owner.close(drain=False)
        await asyncio.shield(self._closing)

    async def _close(self, drain: bool, timeout: float | None) -> None:
        self._owner.close(drain=drain)
        if drain and timeout is not None and not await asyncio.to_thread(self._owner.join, timeout):
            self._owner.close(drain=False)
        if self._engine is not None:
            self._grammars.close()
        await asyncio.to_thread(self._owner.join)
        if self._engine is not None:
            self._prompts.close()
            if self._is_own_model:
                self._engine.model.close()

    def __del__(self) -> None:
        with contextlib.suppress(AttributeError):  # the constructor failed
            self._owner.close(drain=False)

    @property
    def _opened(self) -> Engine:
        if self._engine is None:
            raise InvalidStateError("The AsyncEngine is not open: use it in `async with`, or await engine.open().")
        return self._engine

    async def _call(self, function: Callable[[], T]) -> T:
        return await asyncio.shield(asyncio.wrap_future(self._owner.submit(function)))


def _open(source: Source, config: str | Mapping[str, Any] | None) -> Engine:
    """On the owner thread: loads what is not loaded and creates the engine."""
    if isinstance(source, Model):
        return Engine(source)
    if isinstance(source, Config):
        if config is not None:
            source.overlay(config)
        model = Model(source)
    else:
        with Config(source) as read:
            if config is not None:
                read.overlay(config)
            model = Model(read)
    try:
        return Engine(model)
    except BaseException:
        model.close()
        raise


def _check_settings(engine: Engine, settings: dict[str, Any]) -> None:
    with engine.create_request() as request, in_words_of_streams():
        TurnOptions(request, **settings).close()


def _request_options(
    max_session_tokens: int | None, priority: int | None, cache_salt: int | None
) -> RequestOptions | None:
    if max_session_tokens is None and priority is None and cache_salt is None:
        return None
    return RequestOptions(max_session_tokens=max_session_tokens, priority=priority, cache_salt=cache_salt)
