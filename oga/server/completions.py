"""``POST /v1/completions``."""

from __future__ import annotations

import dataclasses
import time
import uuid
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response

from oga.errors import PromptTooLongError
from oga.server import formats, sampling
from oga.server.auth import Caller, caller
from oga.server.body import read
from oga.server.choices import REASONS, Choices
from oga.server.documents import generates
from oga.server.errors import refused
from oga.server.logprobs import Entry, ForCompletions, spelled
from oga.server.schemas.completions import CompletionRequest
from oga.server.sse import DONE, EventStream, event, unless_gone

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from oga.aio import AsyncEngine
    from oga.generation import Delta

router = APIRouter()
DEFAULT_MAX_TOKENS = 16


@dataclasses.dataclass
class Completing:
    """A request on its way to an answer; choice ``i`` continues prompt ``i // n``."""

    body: CompletionRequest
    model: str
    engine: AsyncEngine
    prompts: list[list[int]]
    pieces: list[list[str]]
    """What each token of a prompt adds to the text that is echoed; the whole text where nothing is said of tokens."""
    choices: Choices
    reports: list[ForCompletions | None]
    identity: str = dataclasses.field(default_factory=lambda: f"cmpl-{uuid.uuid4().hex}")
    created: int = dataclasses.field(default_factory=lambda: int(time.time()))

    @property
    def only_scores(self) -> bool:
        """Whether the prompt is echoed and nothing generated: the engine's one token is thrown away."""
        return self.body.max_tokens == 0

    def head(self) -> dict[str, Any]:
        """What every object of the answer begins with."""
        return {"id": self.identity, "object": "text_completion", "created": self.created, "model": self.model}

    def usage(self) -> dict[str, Any]:
        """The usage object."""
        tokens = sum(map(len, self.prompts))
        return self.choices.usage(tokens, counts_completion=not self.only_scores)

    def prompt_of(self, index: int) -> int:
        """Which prompt a choice continues."""
        return index // (self.body.n or 1)


@router.post("/v1/completions", **generates(CompletionRequest))
async def create_completion(request: Request, who: Annotated[Caller, Depends(caller)]) -> Response:
    """Continues text."""
    body = await read(request, CompletionRequest)
    completing = await _prepare(request, body, who)
    if body.stream:
        await completing.choices.__aenter__()
        return EventStream(request, _chunks(completing), DONE)
    return await unless_gone(request, _whole(completing))


async def _prepare(request: Request, body: CompletionRequest, who: Caller) -> Completing:
    state = request.app.state
    request.state.note["caller"] = who.name
    given = body.prompt if isinstance(body.prompt, list) and not isinstance(body.prompt[0], int) else [body.prompt]
    count = len(given) * (body.n or 1)
    if count > state.settings.max_choices:
        raise refused(
            f"{len(given)} prompts times n are {count} choices; this server takes at most "
            f"{state.settings.max_choices} in a request.",
            param="n" if len(given) <= state.settings.max_choices else "prompt",
        )
    if body.max_tokens == 0 and not body.echo:
        raise refused("max_tokens is 0; it must be at least 1, except with echo.", param="max_tokens")
    request.state.fields = {"tokens": "prompt", "guidance": "response_format", "prompt_logprobs": "logprobs"}
    model, engine = state.registry.find(body.model)
    tokenizer = engine.model.tokenizer
    encoded = [await _encoded(engine, prompt) for prompt in given]
    pieces: list[list[str]] = []
    if body.echo:
        pieces = [await _pieces(engine, body, *each) for each in zip(given, encoded, strict=True)]
    limit = DEFAULT_MAX_TOKENS if body.max_tokens is None else max(1, body.max_tokens)
    settings = sampling.options(body, limit) | formats.settings_of(body.response_format)
    if body.logprobs is not None:
        settings["logprobs"] = body.logprobs
        if body.echo:
            settings["prompt_logprobs"] = body.logprobs
    streams = [
        engine.stream(
            tokens, priority=body.priority, cache_salt=who.cache_salt, **settings, seed=sampling.seed(body.seed, index)
        )
        for tokens in encoded
        for index in range(body.n or 1)
    ]
    reports = [None if body.logprobs is None else ForCompletions(tokenizer, body.logprobs) for _ in streams]
    choices = Choices(streams, model, state.metrics, request.state.note)
    return Completing(body, model, engine, encoded, pieces, choices, reports)


async def _encoded(engine: AsyncEngine, prompt: str | list[int]) -> list[int]:
    """Token ids of a prompt. Raises 400 for more than fit, before anything is done with them."""
    found: Any = await engine.encode(prompt)
    tokens = [int(token) for token in found]
    most = engine.capabilities.max_request_length
    if len(tokens) >= most:
        raise PromptTooLongError(
            f"The prompt has {len(tokens)} tokens; it must leave room for one generated token within the limit of "
            f"{most}. Shorten the prompt."
        )
    return tokens


async def _pieces(
    engine: AsyncEngine, body: CompletionRequest, prompt: str | list[int], tokens: list[int]
) -> list[str]:
    """The text of a prompt that is echoed, by tokens when something is said of each."""
    if body.logprobs is None and isinstance(prompt, str):
        return [prompt]
    return await engine.run_on_text_thread(partial(spelled, engine.model.tokenizer, prompt, tokens))


def _piece(completing: Completing, index: int, delta: Delta, is_first: bool) -> dict[str, Any]:
    """The choice object that a piece of output becomes."""
    prompt = completing.prompt_of(index)
    echoes = bool(completing.body.echo) and is_first
    text = "".join(completing.pieces[prompt]) if echoes else ""
    if not completing.only_scores:
        text += delta.text
    reason = REASONS[delta.finish_reason] if delta.last else None
    return {
        "index": index,
        "text": text,
        "logprobs": _logprobs(completing, index, delta, echoes),
        "finish_reason": "length" if completing.only_scores and delta.last else reason,
    }


def _logprobs(completing: Completing, index: int, delta: Delta, echoes: bool) -> dict[str, Any] | None:
    report = completing.reports[index]
    if report is None:
        return None
    entries: list[Entry] = []
    if echoes:
        prompt = completing.prompt_of(index)
        tokens = completing.prompts[prompt]
        scores = delta.prompt_logprobs or [None] * len(tokens)
        entries += report.of_prompt(tokens, scores, completing.pieces[prompt])
    if not completing.only_scores:
        entries += report.of_output(delta.logprobs)
    return report.arrays(entries)


async def _chunks(completing: Completing) -> AsyncGenerator[bytes, None]:
    options = completing.body.stream_options
    asks_usage = options is not None and options.include_usage
    head = completing.head() | ({"usage": None} if asks_usage else {})
    seen: set[int] = set()
    try:
        async for index, delta in completing.choices.deltas():
            piece = _piece(completing, index, delta, index not in seen)
            seen.add(index)
            yield event(head | {"choices": [piece]})
        if asks_usage:
            yield event(head | {"choices": [], "usage": completing.usage()})
    finally:
        await completing.choices.close()


async def _whole(completing: Completing) -> Response:
    pieces: dict[int, list[dict[str, Any]]] = {}
    async with completing.choices as choices:
        async for index, delta in choices.deltas():
            listed = pieces.setdefault(index, [])
            listed.append(_piece(completing, index, delta, not listed))
    answer = completing.head() | {
        "choices": [_joined(pieces[index]) for index in sorted(pieces)],
        "usage": completing.usage(),
    }
    return JSONResponse(answer)


def _joined(pieces: list[dict[str, Any]]) -> dict[str, Any]:
    """The choice that streamed pieces add up to."""
    whole = dict(pieces[-1])
    whole["text"] = "".join(piece["text"] for piece in pieces)
    if whole["logprobs"] is not None:
        whole["logprobs"] = {
            name: None
            if pieces[0]["logprobs"][name] is None
            else [value for piece in pieces for value in piece["logprobs"][name]]
            for name in whole["logprobs"]
        }
    return whole
