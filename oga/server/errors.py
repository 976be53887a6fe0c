"""Errors in OpenAI's shape: what was found, what was wanted, and the field. Never longer than a few lines."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from oga._native.blame import OPTIONS
from oga.errors import (
    EngineClosedError,
    InvalidArgumentError,
    InvalidStateError,
    MissingFileError,
    NotFoundError,
    OgaError,
    PromptTooLongError,
    QueueFullError,
    ResourceExhaustedError,
    UnsupportedError,
)

LONGEST_MESSAGE = 600
RETRY_SECONDS = 1
TYPES = {400: "invalid_request_error", 401: "authentication_error", 403: "permission_error", 404: "not_found_error"}
# The engine's words for fields of requests, where they differ; None for what no request has. A route names its own for
# what is called differently there, in `request.state.fields`.
FIELDS: dict[str, str | None] = {
    "stop_tokens": "stop_token_ids",
    "stop_strings": "stop",
    "max_generated_tokens": "max_tokens",
    "min_generated_tokens": "min_tokens",
    "delimited_guidance": "tools",
    "do_sample": None,
    "tokens": None,
}
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
    message, param = _in_words_of_requests(error, fields or {})
    if isinstance(error, QueueFullError):
        return ApiError(429, message, code="queue_full", headers={"Retry-After": str(RETRY_SECONDS)})
    if isinstance(error, EngineClosedError):
        return ApiError(503, message, code="shutting_down", headers={"Retry-After": str(RETRY_SECONDS)})
    if isinstance(error, InvalidArgumentError):
        return refused(message, param, "context_length_exceeded" if isinstance(error, PromptTooLongError) else None)
    if isinstance(error, UnsupportedError | MissingFileError):
        return refused(message, param, code="unsupported")
    if isinstance(error, InvalidStateError):
        return ApiError(409, message, code="busy")
    if isinstance(error, NotFoundError):
        return ApiError(404, message, code="not_found")
    if isinstance(error, ResourceExhaustedError):
        return ApiError(503, message, code="out_of_capacity", headers={"Retry-After": str(RETRY_SECONDS)})
    return ApiError(500, message, code=error.code.name.lower())


def _in_words_of_requests(error: OgaError, fields: Mapping[str, str]) -> tuple[str, str | None]:
    """The message and the field that it is about.

    Options are called by the names that requests have only in messages that begin with one: those are the engine's own
    words to the end, while others may quote what the client gave.
    """
    message, names = str(error), FIELDS | dict(fields)
    param = None if error.field is None else names.get(error.field, error.field)
    if param is not None and message.startswith(f"{error.field} ") and error.field in OPTIONS:
        message = re.sub(r"\w+", lambda word: (word[0] in OPTIONS and names.get(word[0])) or word[0], message)
    return message, param


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
