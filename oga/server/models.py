"""``/v1/models``, and loading and unloading for operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Request, Response
from fastapi.responses import JSONResponse

from oga.errors import OgaError
from oga.server.auth import Caller, administrator, caller
from oga.server.documents import answers
from oga.server.errors import ApiError

if TYPE_CHECKING:
    from oga.server.registry import Served

router = APIRouter()


def _describe(name: str, served: Served) -> dict[str, Any]:
    longest = None if served.engine is None else served.engine.capabilities.max_request_length
    return {
        "id": name,
        "object": "model",
        "created": served.loaded_at,
        "owned_by": "oga",
        "state": served.state,
        "max_model_len": longest,
    }


@router.get("/v1/models", **answers(None, "list", 200))
async def list_models(request: Request, _: Annotated[Caller, Depends(caller)]) -> Response:
    """The models that may be served; ``state`` says whether one is loaded."""
    models = request.app.state.registry.models
    return JSONResponse({"object": "list", "data": [_describe(name, served) for name, served in models.items()]})


@router.get("/v1/models/{model}", **answers(None, "model", 200, 404))
async def get_model(request: Request, model: str, _: Annotated[Caller, Depends(caller)]) -> Response:
    """A model."""
    return JSONResponse(_describe(model, request.app.state.registry.named(model)))


@router.post("/admin/models/{model}/load", **answers(None, "model", 200, 403, 404, 500, 503, asks_key=False))
async def load_model(request: Request, model: str, _: Annotated[None, Depends(administrator)]) -> Response:
    """Loads a model that the server was started with, and answers when it is ready."""
    registry = request.app.state.registry
    if registry.is_draining:
        raise ApiError(503, "The server is shutting down.", code="shutting_down")
    try:
        await registry.load(model)
    except OgaError as error:
        raise ApiError(500, f"The model {model!r} cannot be loaded. {error}", code="load_failed") from error
    return JSONResponse(_describe(model, registry.named(model)))


@router.post("/admin/models/{model}/unload", **answers(None, "model", 200, 403, 404, asks_key=False))
async def unload_model(request: Request, model: str, _: Annotated[None, Depends(administrator)]) -> Response:
    """Takes a model out of service; turns that are open come to their end first."""
    registry = request.app.state.registry
    await registry.unload(model)
    await request.app.state.sessions.expire()
    return JSONResponse(_describe(model, registry.named(model)))


@router.post("/v1/embeddings", status_code=400, **answers(None, "list", 400))
async def create_embedding(_: Annotated[Caller, Depends(caller)]) -> Response:
    """Refused: this version serves models that generate."""
    raise ApiError(400, "Embeddings are not supported: this version serves models that generate.", code="unsupported")
