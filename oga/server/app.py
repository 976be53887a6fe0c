"""The application: routes, and what lives as long as the server does."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from fastapi import FastAPI

import oga
from oga.server import chat, completions, documents, errors, models, page, responses, sessions, status, text
from oga.server.asgi import Frame
from oga.server.metrics import Metrics
from oga.server.registry import Registry
from oga.server.settings import ServerSettings

EXPIRE_SECONDS = 30.0
ROUTERS = (chat, completions, responses, sessions, models, text, status)


def create_app(settings: ServerSettings) -> FastAPI:
    """An ASGI application that serves ``settings.models``; they are loaded when it starts."""
    app = FastAPI(
        title="oga",
        version=oga.__version__,
        description="An OpenAI-compatible server over oga's continuous batching engine.",
        lifespan=_lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/openapi.json",
    )
    app.router.redirect_slashes = False
    app.state.settings = settings
    app.state.registry = Registry(settings)
    app.state.metrics = Metrics(settings.metrics_prefix)
    app.state.sessions = sessions.Sessions(settings)
    app.state.responses = responses.Responses(settings)
    for module in ROUTERS:
        app.include_router(module.router)
    if settings.has_page:
        app.include_router(page.router)
    errors.install(app)
    documents.install(app)
    app.add_middleware(Frame, settings=settings, metrics=app.state.metrics)
    return app


@contextlib.asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    await app.state.registry.open()
    expiring = asyncio.create_task(_expire(app))
    try:
        yield
    finally:
        expiring.cancel()
        await asyncio.gather(expiring, return_exceptions=True)
        await app.state.registry.close()


async def _expire(app: FastAPI) -> None:
    while True:
        await asyncio.sleep(EXPIRE_SECONDS)
        await app.state.sessions.expire()
