"""Any server with OpenAI's API as the target of a measurement."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from oga.bench.choices import Endpoint
from oga.bench.http import BrokenReplyError, Client
from oga.errors import InvalidArgumentError, NotFoundError

if TYPE_CHECKING:
    from oga.bench.samples import Sample
    from oga.bench.workload import Question

DATA, DONE = b"data:", b"[DONE]"
OUTPUT_FIELDS = ("content", "reasoning_content", "reasoning", "tool_calls")


class ServerTarget:
    """Requests are streamed, so that the first token and each one after it can be timed."""

    def __init__(self, client: Client, model: str, endpoint: Endpoint, *, ignores_eos: bool) -> None:
        self._client = client
        self._model = model
        self._is_chat = endpoint is Endpoint.CHAT
        self._path = "/chat/completions" if self._is_chat else "/completions"
        self._ignores_eos = ignores_eos

    async def begin(self) -> None:
        """A server counts for itself."""

    async def ask(self, question: Question, sample: Sample, note_piece: Callable[[], None]) -> None:
        """Answers one request; a failure of any kind is noted in the sample."""
        try:
            async with await self._client.request("POST", self._path, self._body(question)) as reply:
                if reply.status != 200:
                    sample.fail(f"status {reply.status}", _message(await reply.read()))
                    return
                await self._read(reply.lines(), sample, note_piece)
        except BrokenReplyError as error:
            sample.fail("connection", str(error))
        except OSError as error:
            sample.fail("connection", error.strerror or str(error))

    def _body(self, question: Question) -> dict[str, Any]:
        text = (question.text or "").strip()
        asked: dict[str, Any] = {"prompt": text}
        if self._is_chat:
            asked = {"messages": [{"role": "user", "content": text}]}
        body = {
            "model": self._model,
            **asked,
            "max_tokens": question.output_tokens,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        return body | {"ignore_eos": True} if self._ignores_eos else body

    async def _read(self, lines: Any, sample: Sample, note_piece: Callable[[], None]) -> None:
        is_over = False
        usage: dict[str, Any] | None = None
        async for line in lines:
            if not line.startswith(DATA):
                continue
            data = line[len(DATA) :].strip()
            if data == DONE:
                is_over = True
                continue
            try:
                chunk = json.loads(data)
            except ValueError:
                sample.fail("no JSON in the stream", data[:200].decode("utf-8", "replace"))
                return
            if "error" in chunk:
                sample.fail("error in the stream", _message(data))
                return
            usage = chunk.get("usage") or usage
            for choice in chunk.get("choices") or []:
                if _has_output(choice):
                    note_piece()
                is_over = is_over or choice.get("finish_reason") is not None
        if not is_over:
            sample.fail("cut off", "the stream ended before the answer did")
        # A server that does not count its tokens nearly always sends one per piece.
        sample.output_tokens = int((usage or {}).get("completion_tokens", len(sample.pieces)))
        sample.prompt_tokens = int((usage or {}).get("prompt_tokens", 0))


async def find_model(client: Client) -> str:
    """The first model that a server lists. Raises :class:`oga.NotFoundError` saying what to do when there is none."""
    advice = "Name the model: --model NAME."
    try:
        async with await client.request("GET", "/models") as reply:
            content = await reply.read()
    except (BrokenReplyError, OSError) as error:
        raise NotFoundError(f"The server does not answer: {error}. Check the address, and that it runs.") from None
    if reply.status in (401, 403):
        raise InvalidArgumentError(f"The server refuses: {_message(content)} Give a key: --api-key KEY.")
    try:
        return str(json.loads(content)["data"][0]["id"])
    except (ValueError, LookupError, TypeError):
        raise NotFoundError(f"The server lists no model (status {reply.status}). {advice}") from None


def _has_output(choice: dict[str, Any]) -> bool:
    delta = choice.get("delta") or {}
    return bool(choice.get("text")) or any(delta.get(field) for field in OUTPUT_FIELDS)


def _message(content: bytes) -> str:
    """What an error answer says, in OpenAI's shape or any other."""
    text = content.decode("utf-8", "replace")
    try:
        found = json.loads(text)
        error = found.get("error", found)
        return str(error["message"] if isinstance(error, dict) else error)
    except (ValueError, LookupError, AttributeError):
        return text[:200]
