"""What the OpenAPI document says about the routes, whose bodies are checked by :mod:`oga.server.body`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic.json_schema import models_json_schema

if TYPE_CHECKING:
    from fastapi import FastAPI
    from pydantic import BaseModel

REFERENCES = "#/components/schemas/{model}"
TEXTS = {
    200: "Done.",
    201: "Made.",
    400: "The request is not valid, or its turn failed by what it asks for; `error.param` names the field.",
    401: "A valid API key is needed.",
    403: "The administrator's key is needed.",
    404: "What the request names is not there.",
    409: "A turn is going on.",
    413: "The body is too large.",
    429: "Too much is waiting or kept; `Retry-After` says when to try again.",
    500: "The turn failed, or the model cannot be loaded; `error.code` says why.",
    503: "The model is not loaded, its engine failed, or the server is shutting down.",
}
ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}
_bodies: set[type[BaseModel]] = set()


def answers(
    body: type[BaseModel] | None, kind: str, *statuses: int, streams: bool = False, asks_key: bool = True
) -> dict[str, Any]:
    """Keywords of a route: its body, the ``object`` of its answer, and every status that it may have.

    401 goes without saying where a caller ``asks_key``.
    """
    success = {"type": "object", "required": ["object"], "properties": {"object": {"const": kind}}}
    responses: dict[int | str, dict[str, Any]] = {}
    for status in sorted({*statuses, 401} if asks_key else statuses):
        content: dict[str, Any] = {"application/json": {"schema": success if status < 300 else ERROR}}
        if status == 200 and streams:
            content["text/event-stream"] = {}  # events one by one have no schema that all readers agree on
        responses[status] = {"description": TEXTS[status], "content": content}
    extra: dict[str, Any] = {}
    if body is not None:
        _bodies.add(body)
        schema = {"$ref": REFERENCES.format(model=body.__name__)}
        extra["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return {"responses": responses, "openapi_extra": extra}


def generates(body: type[BaseModel], *statuses: int) -> dict[str, Any]:
    """Keywords of a route that generates, whole or as a stream; ``statuses`` beside those that all of them have."""
    kind = {"ChatRequest": "chat.completion", "CompletionRequest": "text_completion", "ResponseRequest": "response"}
    return answers(body, kind[body.__name__], 200, 400, 404, 413, 429, 500, 503, *statuses, streams=True)


def install(app: FastAPI) -> None:
    """Adds the schemas of all bodies to the document, and takes FastAPI's own error out."""
    original = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            document = original()
            _, definitions = models_json_schema(
                [(body, "validation") for body in sorted(_bodies, key=lambda body: body.__name__)],
                ref_template=REFERENCES,
            )
            schemas = document.setdefault("components", {}).setdefault("schemas", {})
            schemas |= definitions["$defs"]
            schemas.pop("HTTPValidationError", None)
            schemas.pop("ValidationError", None)
            for path in document["paths"].values():
                for operation in path.values():
                    operation["responses"].pop("422", None)
            app.openapi_schema = document
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
