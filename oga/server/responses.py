"""``/v1/responses``: answers that are stored, and can be continued from any of them."""

from __future__ import annotations

import dataclasses
import time
import uuid
from collections import OrderedDict
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import APIRouter, Depends, Request
from fastapi.responses import JSONResponse, Response

from oga.server import formats, prompts
from oga.server.auth import Caller, caller
from oga.server.body import read
from oga.server.chat import Collected
from oga.server.choices import REASONS, Choices
from oga.server.documents import answers, generates
from oga.server.errors import ApiError, refused
from oga.server.response_items import as_message, as_tool, as_tool_choice, output_of, response_object
from oga.server.response_stream import ResponseStream
from oga.server.schemas.responses import InputMessage, ResponseRequest
from oga.server.sse import EventStream, unless_gone
from oga.server.tools import tool_use

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from oga.aio import AsyncEngine, Conversation
    from oga.server.settings import ServerSettings
    from oga.server.tools import Reader

router = APIRouter()


@dataclasses.dataclass
class Stored:
    """A response that can be continued: a turn of a conversation."""

    owner: str
    model: str
    engine: AsyncEngine
    conversation: Conversation
    turn: int
    answer: dict[str, Any]


class Responses:
    """Stored responses, the oldest of which make room. Several may be turns of one conversation."""

    def __init__(self, settings: ServerSettings) -> None:
        self._most = settings.max_responses
        self._stored: OrderedDict[str, Stored] = OrderedDict()

    def __len__(self) -> int:
        return len(self._stored)

    def take(self, identity: str, who: Caller, param: str | None = None) -> Stored:
        """A response of the caller. Raises 404, also for somebody else's."""
        stored = self._stored.get(identity)
        if stored is None or stored.owner != who.name:
            raise ApiError(404, f"There is no stored response {identity!r}.", param=param, code="response_not_found")
        self._stored.move_to_end(identity)
        return stored

    async def add(self, identity: str, stored: Stored) -> None:
        """Stores a response."""
        self._stored[identity] = stored
        while len(self._stored) > self._most:
            await self.remove(next(iter(self._stored)))

    async def remove(self, identity: str) -> None:
        """Forgets a response; its conversation is closed with the last one that needs it."""
        gone = self._stored.pop(identity)
        if all(stored.conversation is not gone.conversation for stored in self._stored.values()):
            await gone.conversation.close()

    async def continued(self, stored: Stored) -> Conversation:
        """A conversation that ends with a response: its own when nothing came after, else a fork of it."""
        if stored.conversation.is_busy:
            raise ApiError(409, "That response is being continued by another request.", code="response_busy")
        if len(stored.conversation.turns) == stored.turn:
            return stored.conversation
        forked = await stored.conversation.fork()
        await forked.rewind(stored.turn + 1)
        return forked


@dataclasses.dataclass
class Responding:
    """A request on its way to an answer."""

    body: ResponseRequest
    who: Caller
    model: str
    engine: AsyncEngine
    conversation: Conversation
    turns_before: int | None
    """How many turns the conversation had; None when nobody else needs it."""
    choices: Choices
    reader: Reader
    store: Responses
    message: Collected = dataclasses.field(default_factory=Collected)
    identity: str = dataclasses.field(default_factory=lambda: f"resp_{uuid.uuid4().hex}")
    created: int = dataclasses.field(default_factory=lambda: int(time.time()))

    async def finish(self, reason: str) -> dict[str, Any]:
        """The complete answer, stored unless the request says otherwise."""
        is_cut = reason == "length"
        output = output_of(self.message, self.identity, is_cut=is_cut)
        answer = response_object(
            self.body, self.identity, self.created, self.model, "incomplete" if is_cut else "completed", output
        )
        answer["usage"] = self._usage()
        if is_cut:
            answer["incomplete_details"] = {"reason": "max_output_tokens"}
        if self.message.calls:
            self.conversation.replace_answer(self.message.for_template())
        if self.body.store is False:
            await self.forget()
        else:
            turn = len(self.conversation.turns)
            kept = Stored(self.who.name, self.model, self.engine, self.conversation, turn, answer)
            await self.store.add(self.identity, kept)
        return answer

    async def forget(self) -> None:
        """Leaves nothing of this turn: takes it back from a conversation that others need, or closes its own."""
        await self.choices.close()
        if self.turns_before is None:
            await self.conversation.close()
        elif len(self.conversation.turns) > self.turns_before:
            await self.conversation.rewind(self.turns_before + 1)

    def _usage(self) -> dict[str, Any]:
        usage = self.choices.usage(self.choices.turn_tokens)
        return {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": usage["prompt_tokens_details"],
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage["total_tokens"],
        }


@router.post("/v1/responses", **generates(ResponseRequest, 409))
async def create_response(request: Request, who: Annotated[Caller, Depends(caller)]) -> Response:
    """Answers input, perhaps as the continuation of a stored response."""
    body = await read(request, ResponseRequest)
    responding = await _prepare(request, body, who)
    if body.stream:
        try:
            await responding.choices.__aenter__()
        except BaseException:
            await responding.forget()
            raise
        return EventStream(request, _events(responding))
    return await unless_gone(request, _whole(responding))


@router.get("/v1/responses/{response_id}", **answers(None, "response", 200, 404))
async def get_response(request: Request, response_id: str, who: Annotated[Caller, Depends(caller)]) -> Response:
    """A stored response."""
    return JSONResponse(request.app.state.responses.take(response_id, who).answer)


@router.delete("/v1/responses/{response_id}", **answers(None, "response.deleted", 200, 404))
async def delete_response(request: Request, response_id: str, who: Annotated[Caller, Depends(caller)]) -> Response:
    """Forgets a stored response."""
    request.app.state.responses.take(response_id, who)
    await request.app.state.responses.remove(response_id)
    return JSONResponse({"id": response_id, "object": "response.deleted", "deleted": True})


async def _prepare(request: Request, body: ResponseRequest, who: Caller) -> Responding:
    state = request.app.state
    request.state.note["caller"] = who.name
    previous = None
    if body.previous_response_id is not None:
        previous = state.responses.take(body.previous_response_id, who, "previous_response_id")
        if body.model not in (None, previous.model):
            raise refused(f"The previous response is of the model {previous.model!r}.", param="model")
    model, engine = state.registry.find(body.model if previous is None else previous.model)
    items = [InputMessage(role="user", content=body.input)] if isinstance(body.input, str) else body.input
    messages = [as_message(item) for item in items]
    prompts.check_answerable(messages)
    tools = None if body.tools is None else [as_tool(tool) for tool in body.tools]
    choice, is_parallel = as_tool_choice(body.tool_choice), body.parallel_tool_calls is not False
    use = tool_use(engine, tools, choice, is_parallel, schema_field="parameters")
    settings = _settings(body)
    guided_by = use.guided_by(settings, "text.format")
    request.state.fields = {
        "tokens": "input",
        "messages": "input",
        "guidance": guided_by or "text.format",
        "max_new_tokens": "max_output_tokens",
    }
    encode = prompts.encoder(engine, tools, None)
    first = [] if body.instructions is None else [{"role": "system", "content": body.instructions}]
    if previous is None:
        prompts.check_calls(messages)
        conversation = engine.open_conversation(cache_salt=who.cache_salt)
    else:
        prompts.check_calls([*_with_calls(previous.answer), *messages])
        conversation = await state.responses.continued(previous)
    shared = previous is not None and conversation is previous.conversation
    before = len(conversation.turns) if shared else None
    stream = conversation.stream_encoded(messages, lambda whole: encode([*first, *whole]), **(settings | use.settings))
    choices = Choices([stream], model, state.metrics, request.state.note)
    reader = use.reader(engine.model.tokenizer)
    return Responding(body, who, model, engine, conversation, before, choices, reader, state.responses)


def _settings(body: ResponseRequest) -> dict[str, Any]:
    settings = {
        "temperature": body.temperature,
        "top_p": body.top_p,
        "max_new_tokens": body.max_output_tokens,
    }
    return {name: value for name, value in settings.items() if value is not None} | formats.of_text(body.text)


def _with_calls(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The calls of an answer as a message, for checking what answers them."""
    calls = [{"id": item["call_id"]} for item in answer["output"] if item["type"] == "function_call"]
    return [{"role": "assistant", "tool_calls": calls}]


async def _whole(responding: Responding) -> Response:
    try:
        async with responding.choices as choices:
            async for _, delta in choices.deltas():
                responding.message.add(responding.reader.feed(delta))
                if delta.last:
                    reason = REASONS[delta.finish_reason]
        return JSONResponse(await responding.finish(reason))
    except BaseException:
        await responding.forget()
        raise


async def _events(responding: Responding) -> AsyncGenerator[bytes, None]:
    begun = response_object(
        responding.body, responding.identity, responding.created, responding.model, "in_progress", []
    )
    stream = ResponseStream(responding.identity, begun)
    is_finished = False
    try:
        for each in stream.begin():
            yield each
        async for _, delta in responding.choices.deltas():
            parts = responding.reader.feed(delta)
            responding.message.add(parts)
            for each in stream.parts(parts):
                yield each
            if delta.last:
                reason = REASONS[delta.finish_reason]
        answer = await responding.finish(reason)
        is_finished = True
        for each in stream.end(answer):
            yield each
    finally:
        await responding.choices.close()
        if not is_finished:
            await responding.forget()
