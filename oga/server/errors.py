"""Errors in OpenAI's shape: what was found, what was wanted, and the field. Never longer than a few lines."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from oga.errors import (
    EngineClosedError,
    EngineUnhealthyError,
    FileAccessError,
    InternalError,
    InvalidArgumentError,
    InvalidStateError,
    MissingFileError,
    ModelError,
    NotFoundError,
    OgaError,
    OutOfMemoryError,
    PromptTooLongError,
    QueueFullError,
    ResourceExhaustedError,
    UnsupportedError,
)
from oga.event import FailureKind

LONGEST_MESSAGE = 600
RETRY_SECONDS = 1
TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
# What the engine calls otherwise than requests do; None for what no request has. A route names its own for what is
# called differently there, in `request.state.fields`.
FIELDS: dict[str, str | None] = {
    "stop_tokens": "stop_token_ids",
    "stop_strings": "stop",
    "max_new_tokens": "max_tokens",
    "min_new_tokens": "min_tokens",
    "delimited_guidance": "tools",
    "do_sample": None,
    "tokens": None,
}


@dataclasses.dataclass(frozen=True)
class Meaning:
    """What an error of the engine is over HTTP."""

    status: int
    code: str | None
    """``error.code``; None for a value that is not acceptable, of which ``error.param`` says enough."""
    is_passing: bool = False
    """Whether the same request may do later."""


MEANINGS: dict[type[OgaError], Meaning] = {
    PromptTooLongError: Meaning(400, "context_length_exceeded"),
    InvalidArgumentError: Meaning(400, None),
    UnsupportedError: Meaning(400, "unsupported"),
    MissingFileError: Meaning(400, "unsupported"),
    NotFoundError: Meaning(404, "not_found"),
    InvalidStateError: Meaning(409, "busy"),
    QueueFullError: Meaning(429, "queue_full", is_passing=True),
    EngineClosedError: Meaning(503, "shutting_down", is_passing=True),
    ResourceExhaustedError: Meaning(503, "out_of_capacity", is_passing=True),
    OutOfMemoryError: Meaning(500, "out_of_memory"),
    FileAccessError: Meaning(500, "io_error"),
    ModelError: Meaning(500, "model_error"),
    EngineUnhealthyError: Meaning(500, "engine_unhealthy"),
    InternalError: Meaning(500, "internal"),
    OgaError: Meaning(500, "internal"),
}
"""By class; a class that is not here means what its nearest base does."""

FAILURES: dict[FailureKind, Meaning] = {
    FailureKind.BAD_LOGITS: Meaning(500, "bad_logits"),
    FailureKind.NO_ALLOWED_TOKEN: Meaning(400, "no_allowed_token"),
    FailureKind.GRAMMAR_FAILED: Meaning(400, "grammar_failed"),
    FailureKind.NEVER_FITS: Meaning(400, "never_fits"),
    FailureKind.EXECUTION: Meaning(500, "execution"),
    FailureKind.CONTRACT: Meaning(500, "contract"),
}
"""Of a turn that began and failed: 400 where the request is the cause, 500 where the model or the engine is."""

log = logging.getLogger("oga.server")


class ApiError(Exception):
    """A refusal, or a failure, that the client is told."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.param = param
        self.code = code
        self.headers = headers or {}

    @property
    def body(self) -> dict[str, Any]:
        """The error object."""
        message = str(self)
        if len(message) > LONGEST_MESSAGE:
            message = message[:LONGEST_MESSAGE] + " ..."
        kind = TYPES.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        if self.status == 429:
            kind = "rate_limit_error"
        return {"error": {"message": message, "type": kind, "param": self.param, "code": self.code}}

    def response(self) -> JSONResponse:
        """The whole answer."""
        return JSONResponse(self.body, self.status, self.headers)


def refused(message: str, param: str | None = None, code: str | None = None) -> ApiError:
    """A request that cannot be carried out as it is."""
    return ApiError(400, message, param=param, code=code)


def of_oga(error: OgaError, fields: Mapping[str, str] | None = None) -> ApiError:
    """What an error of the engine means to a client; ``fields`` are what a route calls the engine's options."""
    meaning = meaning_of(error)
    param = _param(error.field, fields or {}) if meaning.status < 500 else None
    # The engine's sentence goes as it is. Where the request has another name for what it is about, that one leads.
    message = str(error) if param in (None, error.field) else f"{param}: {error}"
    headers = {"Retry-After": str(RETRY_SECONDS)} if meaning.is_passing else None
    return ApiError(meaning.status, message, param=param, code=meaning.code, headers=headers)


def meaning_of(error: OgaError) -> Meaning:
    """The status and the code: by why a turn failed, else by class."""
    if error.failure is not None:
        return FAILURES[error.failure]
    return next(MEANINGS[kind] for kind in type(error).__mro__ if kind in MEANINGS)


def _param(field: str | None, fields: Mapping[str, str]) -> str | None:
    """The field of the request for one of the engine's; one that neither table has keeps its name.

    Fields of requests are words in lower case: a file of the server, a key of its config or one of its variables is
    nothing that a client can mend.
    """
    if field is None or not (field.isidentifier() and field.islower()):
        return None
    return fields.get(field, FIELDS.get(field, field))


def install(app: FastAPI) -> None:
    """Gives every failure of a route the one shape."""

    async def on_api_error(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, ApiError)
        return error.response()

    async def on_oga_error(request: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, OgaError)
        return of_oga(error, getattr(request.state, "fields", None)).response()

    async def on_http_error(_: Request, error: Exception) -> JSONResponse:
        assert isinstance(error, HTTPException)
        answer = ApiError(error.status_code, str(error.detail), headers=dict(error.headers or {}))
        return answer.response()

    async def on_any_error(_: Request, error: Exception) -> JSONResponse:
        log.exception("a request failed", exc_info=error)
        return ApiError(500, "The server failed. Its log says why.", code="internal").response()

    app.add_exception_handler(ApiError, on_api_error)
    app.add_exception_handler(OgaError, on_oga_error)
    app.add_exception_handler(HTTPException, on_http_error)
    app.add_exception_handler(Exception, on_any_error)
