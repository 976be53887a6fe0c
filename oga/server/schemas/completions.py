"""``POST /v1/completions``."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from oga.server.schemas.common import INT64_MAX, MAX_LOGPROBS, ResponseFormat, Sampling, StreamOptions

TokenIds = Annotated[
    list[Annotated[int, Field(ge=0, le=2**31 - 1)]], Field(min_length=1, max_length=2**20, fail_fast=True)
]
Text = Annotated[str, Field(min_length=1)]
MAX_PROMPTS = 128


class CompletionRequest(Sampling):
    """Text to go on with. Special tokens that it spells are recognised as such."""

    prompt: (
        Text
        | Annotated[list[Text], Field(min_length=1, max_length=MAX_PROMPTS, fail_fast=True)]
        | TokenIds
        | Annotated[list[TokenIds], Field(min_length=1, max_length=MAX_PROMPTS, fail_fast=True)]
    )
    n: int | None = Field(None, ge=1, le=128)
    best_of: int | None = Field(None, ge=1, le=1, description="Only 1: choices are not ranked.")
    max_tokens: int | None = Field(None, ge=0, le=INT64_MAX, description="16 when it is not given; 0 needs `echo`.")
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    logprobs: int | None = Field(None, ge=0, le=MAX_LOGPROBS)
    echo: bool | None = None
    suffix: None = Field(None, description="Not supported.")
    response_format: ResponseFormat | None = None
