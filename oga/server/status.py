"""How the server is: ``/health``, ``/ready``, ``/metrics``, ``/v1/resources``. Nothing here waits for an engine."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response

import oga
from oga.server.auth import Caller, caller
from oga.server.documents import answers

router = APIRouter()


@router.get("/health", **answers(None, "health", 200, 503, asks_key=False))
async def health(request: Request) -> Response:
    """200 while the process and every loaded engine are well; 503 says which engine failed and why."""
    failed = {name: str(engine.error) for name, engine in request.app.state.registry.loaded if engine.error}
    if failed:
        name, reason = next(iter(failed.items()))
        return _unwell(f"The engine of {name!r} failed: {reason}", "engine_failed")
    return JSONResponse({"object": "health", "status": "ok"})


@router.get("/ready", **answers(None, "ready", 200, 503, asks_key=False))
async def ready(request: Request) -> Response:
    """200 when requests can be answered; 503 while models load and while the server drains."""
    registry = request.app.state.registry
    if registry.is_draining:
        return _unwell("The server is shutting down.", "shutting_down")
    if not any(engine.error is None for _, engine in registry.loaded):
        return _unwell("No model is loaded.", "model_not_loaded")
    return JSONResponse({"object": "ready", "status": "ready"})


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(request: Request) -> Response:
    """Counters in Prometheus' text form."""
    text = request.app.state.metrics.text(request.app.state.registry)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


@router.get("/v1/resources", **answers(None, "resources", 200))
async def resources(request: Request, _: Annotated[Caller, Depends(caller)]) -> Response:
    """What each engine holds and has done, and what is kept for later."""
    state = request.app.state
    engines: dict[str, Any] = {}
    for name, engine in state.registry.loaded:
        statistics = engine.statistics
        engines[name] = dataclasses.asdict(statistics) | {
            "open_turns": engine.open_turns,
            "max_batch_size": engine.capabilities.configured_max_batch_size,
            "cache_bytes": statistics.total_blocks * statistics.block_bytes,
            "used_cache_bytes": (statistics.total_blocks - statistics.free_blocks) * statistics.block_bytes,
        }
    return JSONResponse(
        {
            "object": "resources",
            "version": oga.__version__,
            "models": engines,
            "tasks": len(asyncio.all_tasks()),
            "sessions": len(state.sessions),
            "responses": len(state.responses),
        }
    )


def _unwell(message: str, code: str) -> Response:
    error = {"message": message[:600], "type": "server_error", "param": None, "code": code}
    return JSONResponse({"error": error}, 503, {"Retry-After": "5"})
