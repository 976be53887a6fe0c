"""``POST /v1/chat/completions``."""

from __future__ import annotations

import dataclasses
import time
import uuid
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response

from oga.server import formats, logprobs, prompts, sampling
from oga.server.auth import Caller, caller
from oga.server.body import read
from oga.server.choices import REASONS, Choices
from oga.server.documents import generates
from oga.server.errors import refused
from oga.server.schemas.chat import ChatRequest
from oga.server.sse import DONE, EventStream, event, unless_gone
from oga.server.tools import CallArguments, CallStart, Content, Part, Reader, ToolUse, tool_use

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from oga.aio import AsyncEngine
    from oga.generation import Delta
    from oga.server.sessions import Session

router = APIRouter()


@dataclasses.dataclass
class Answering:
    """A request on its way to an answer."""

    body: ChatRequest
    model: str
    engine: AsyncEngine
    use: ToolUse
    choices: Choices
    readers: list[Reader]
    prompt_tokens: int
    session: Session | None = None
    identity: str = dataclasses.field(default_factory=lambda: f"chatcmpl-{uuid.uuid4().hex}")
    created: int = dataclasses.field(default_factory=lambda: int(time.time()))

    def usage(self) -> dict[str, Any]:
        """The usage object. A session's prompt is what this turn fed to the model."""
        return self.choices.usage(self.prompt_tokens if self.session is None else self.choices.turn_tokens)


@router.post("/v1/chat/completions", **generates(ChatRequest, 409))
async def create_chat_completion(request: Request, who: Annotated[Caller, Depends(caller)]) -> Response:
    """Answers a conversation."""
    body = await read(request, ChatRequest)
    answering = await prepare(request, body, who)
    if body.stream:
        await answering.choices.__aenter__()
        return EventStream(request, _chunks(answering), DONE)
    return await unless_gone(request, _whole(answering))


async def prepare(request: Request, body: ChatRequest, who: Caller) -> Answering:
    """Checks everything that can be checked, and encodes the prompt."""
    state = request.app.state
    request.state.note["caller"] = who.name
    count = body.n or 1
    if count > state.settings.max_choices:
        raise refused(f"n is {count}; this server takes at most {state.settings.max_choices}.", param="n")
    if body.top_logprobs is not None and not body.logprobs:
        raise refused("top_logprobs needs logprobs to be true.", param="top_logprobs")
    session = None if body.session_id is None else state.sessions.take(body.session_id, who)
    if session is not None:
        _check_of_session(session, body)
    model, engine = state.registry.find(body.model if session is None else session.model)
    messages = prompts.messages_of(body.messages)
    prompts.check_answerable(messages)
    settings, use, guided_by = _settings(engine, body)
    request.state.fields = {"tokens": "messages", "guidance": guided_by or "response_format"}
    encode = prompts.encoder(engine, body.tools, body.chat_template_kwargs)
    if session is not None:
        session.check_free()
        streams = [session.stream(messages, encode, settings, body.seed)]
        tokens = []
    else:
        prompts.check_calls(messages)
        tokens = await engine.encode(messages, encode)
        streams = [
            engine.stream(
                tokens,
                priority=body.priority,
                cache_salt=who.cache_salt,
                **settings,
                seed=sampling.seed(body.seed, index),
            )
            for index in range(count)
        ]
    choices = Choices(streams, model, state.metrics, request.state.note)
    readers = [use.reader(engine.model.tokenizer) for _ in streams]
    return Answering(body, model, engine, use, choices, readers, len(tokens), session)


def _check_of_session(session: Session, body: ChatRequest) -> None:
    """Raises 400 for what a turn of a session cannot have of its own."""
    if body.model not in (None, session.model):
        raise refused(
            f"The session is of the model {session.model!r}, not {body.model!r}. Leave out model, or open another "
            "session.",
            param="model",
        )
    if body.priority is not None:
        raise refused(
            "priority is the session's: give it to POST /v1/sessions when the session is opened.", param="priority"
        )
    if (body.n or 1) > 1:
        raise refused(f"n is {body.n}; a session answers once at a time. Leave out n, or fork the session.", param="n")


def _settings(engine: AsyncEngine, body: ChatRequest) -> tuple[dict[str, Any], ToolUse, str | None]:
    """Keywords of the turns, what tools change about them, and the field whose grammar rules them."""
    settings = sampling.options(body, body.max_completion_tokens or body.max_tokens)
    settings |= formats.settings_of(body.response_format)
    use = tool_use(engine, body.tools, body.tool_choice, body.parallel_tool_calls is not False)
    guided_by = use.guided_by(settings, "response_format")
    for name, value in use.settings.items():
        settings[name] = [*settings.get(name, []), *value] if name == "stop_tokens" else value
    if body.logprobs:
        settings["logprobs"] = body.top_logprobs or 0
    return settings, use, guided_by


async def _chunks(answering: Answering) -> AsyncGenerator[bytes, None]:
    body = answering.body
    asks_usage = body.stream_options is not None and body.stream_options.include_usage
    count = len(answering.readers)

    def chunk(choices: list[dict[str, Any]], usage: dict[str, Any] | None = None) -> bytes:
        value = _head(answering, "chat.completion.chunk") | {"choices": choices}
        return event(value | ({"usage": usage} if asks_usage else {}))

    try:
        for index in range(count):
            yield chunk([_choice(index, {"role": "assistant", "content": ""}, None, None)])
        message = [Collected() for _ in range(count)]
        async for index, delta in answering.choices.deltas():
            parts = answering.readers[index].feed(delta)
            message[index].add(parts)
            found = _logprobs(answering, delta)
            for part in parts:
                yield chunk([_choice(index, _delta(part), None, found)])
                found = None if not body.logprobs else {"content": [], "refusal": None}
            if delta.last:
                has_late = not parts and found is not None and found["content"]
                last = _choice(index, {}, _reason(answering, index, delta), found if has_late else None)
                _remember(answering, message[index])
                yield chunk([last])
            elif not parts and found is not None and found["content"]:
                yield chunk([_choice(index, {"content": ""}, None, found)])
        if asks_usage:
            yield chunk([], answering.usage())
    finally:
        await answering.choices.close()


async def _whole(answering: Answering) -> Response:
    count = len(answering.readers)
    messages = [Collected() for _ in range(count)]
    reasons = [""] * count
    found: list[list[Any]] = [[] for _ in range(count)]
    async with answering.choices as choices:
        async for index, delta in choices.deltas():
            messages[index].add(answering.readers[index].feed(delta))
            if each := _logprobs(answering, delta):
                found[index] += each["content"]
            if delta.last:
                reasons[index] = _reason(answering, index, delta)
                _remember(answering, messages[index])
    has_logprobs = bool(answering.body.logprobs)
    answer = _head(answering, "chat.completion") | {
        "choices": [
            {
                "index": index,
                "message": messages[index].message(),
                "logprobs": {"content": found[index], "refusal": None} if has_logprobs else None,
                "finish_reason": reasons[index],
            }
            for index in range(count)
        ],
        "usage": answering.usage(),
    }
    return JSONResponse(answer)


class Collected:
    """The message that the parts of an answer add up to."""

    def __init__(self) -> None:
        self._texts: list[str] = []
        self._calls: list[dict[str, Any]] = []

    def add(self, parts: list[Part]) -> None:
        """Adds what has come."""
        for part in parts:
            if isinstance(part, Content):
                self._texts.append(part.text)
            elif isinstance(part, CallStart):
                function = {"name": part.name, "arguments": ""}
                self._calls.append({"id": part.identity, "type": "function", "function": function})
            else:
                self._calls[part.index]["function"]["arguments"] += part.text

    @property
    def text(self) -> str:
        """The text outside of calls."""
        return "".join(self._texts)

    @property
    def calls(self) -> list[dict[str, Any]]:
        """The calls, perhaps cut off."""
        return self._calls

    def message(self) -> dict[str, Any]:
        """The assistant's message."""
        content = self.text
        message: dict[str, Any] = {"role": "assistant", "content": content, "refusal": None}
        if self._calls:
            message |= {"content": content or None, "tool_calls": self._calls}
        return message

    def for_template(self) -> dict[str, Any]:
        """The message as a chat template takes it."""
        message: dict[str, Any] = {"role": "assistant", "content": self.text}
        if self._calls:
            message["tool_calls"] = [
                {
                    **call,
                    "function": {
                        "name": call["function"]["name"],
                        "arguments": prompts.arguments_of(call["function"]["arguments"]),
                    },
                }
                for call in self._calls
            ]
        return message


def _head(answering: Answering, kind: str) -> dict[str, Any]:
    head: dict[str, Any] = {
        "id": answering.identity,
        "object": kind,
        "created": answering.created,
        "model": answering.model,
        "system_fingerprint": None,
    }
    return head if answering.session is None else head | {"session_id": answering.session.identity}


def _choice(index: int, delta: dict[str, Any], reason: str | None, found: dict[str, Any] | None) -> dict[str, Any]:
    return {"index": index, "delta": delta, "logprobs": found, "finish_reason": reason}


def _delta(part: Part) -> dict[str, Any]:
    if isinstance(part, Content):
        return {"content": part.text}
    if isinstance(part, CallStart):
        call = {"id": part.identity, "type": "function", "function": {"name": part.name, "arguments": ""}}
        return {"tool_calls": [{"index": part.index, **call}]}
    assert isinstance(part, CallArguments)
    return {"tool_calls": [{"index": part.index, "function": {"arguments": part.text}}]}


def _reason(answering: Answering, index: int, delta: Delta) -> str:
    reason = REASONS[delta.finish_reason]
    return "tool_calls" if reason == "stop" and answering.readers[index].has_called else reason


def _logprobs(answering: Answering, delta: Delta) -> dict[str, Any] | None:
    if not answering.body.logprobs:
        return None
    top = answering.body.top_logprobs or 0
    return {"content": logprobs.for_chat(delta.logprobs, answering.engine.model.tokenizer, top), "refusal": None}


def _remember(answering: Answering, message: Collected) -> None:
    """A session's answer is the message, which for calls is not the text that the model wrote."""
    if answering.session is not None and message.calls:
        answering.session.conversation.replace_answer(message.for_template())
