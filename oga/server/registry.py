"""The models of a server: which may be served, which are loaded."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from oga.aio import AsyncEngine
from oga.server.errors import ApiError

if TYPE_CHECKING:
    from oga.server.settings import ModelSource, ServerSettings


class Served:
    """A model that may be served, loaded or not."""

    def __init__(self, source: ModelSource) -> None:
        self.source = source
        self.engine: AsyncEngine | None = None
        self.loaded_at = 0
        self.changing = asyncio.Lock()

    @property
    def state(self) -> str:
        """``unloaded``, ``loading``, ``loaded`` or ``failed``."""
        if self.engine is None:
            return "loading" if self.changing.locked() else "unloaded"
        return "loaded" if self.engine.error is None else "failed"


class Registry:
    """All models of a server, by name."""

    def __init__(self, settings: ServerSettings) -> None:
        self._settings = settings
        self.models = {source.name: Served(source) for source in settings.models}
        self.is_draining = False

    @property
    def loaded(self) -> list[tuple[str, AsyncEngine]]:
        """The models that are loaded."""
        return [(name, served.engine) for name, served in self.models.items() if served.engine is not None]

    def find(self, name: str | None) -> tuple[str, AsyncEngine]:
        """The engine of a model; of the first one that is loaded when no name is given. Raises 404 and 503."""
        if self.is_draining:
            raise ApiError(503, "The server is shutting down.", code="shutting_down", headers={"Retry-After": "5"})
        if name is None:
            name = next((each for each, _ in self.loaded), next(iter(self.models)))
        engine = self.named(name).engine
        if engine is None:
            raise ApiError(
                503, f"The model {name!r} is not loaded.", param="model", code="model_not_loaded",
                headers={"Retry-After": "5"},
            )  # fmt: skip
        return name, engine

    def named(self, name: str) -> Served:
        """A model by name. Raises 404."""
        served = self.models.get(name)
        if served is None:
            known = ", ".join(sorted(self.models))
            raise ApiError(
                404, f"There is no model {name[:80]!r}; there is {known}.", param="model", code="model_not_found"
            )
        return served

    async def load(self, name: str) -> None:
        """Loads a model unless it is loaded; replaces one whose engine failed."""
        served = self.named(name)
        async with served.changing:
            if served.engine is not None and served.engine.error is not None:
                failed, served.engine = served.engine, None
                await failed.close()
            if served.engine is None:
                engine = AsyncEngine(
                    served.source.folder, config=served.source.config, max_waiting=self._settings.max_waiting
                )
                served.engine = await engine.open()
                served.loaded_at = int(time.time())

    async def unload(self, name: str) -> None:
        """Takes a model out of service; its open turns may end first."""
        served = self.named(name)
        async with served.changing:
            engine, served.engine = served.engine, None
            if engine is not None:
                await engine.close(drain=True, timeout=self._settings.drain_seconds)

    async def open(self) -> None:
        """Loads every model."""
        for name in self.models:
            await self.load(name)

    async def close(self) -> None:
        """Lets open turns end and unloads everything."""
        self.is_draining = True
        await asyncio.gather(*(self.unload(name) for name in self.models))
