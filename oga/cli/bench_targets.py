"""What a load generator measures: an engine in this process, or a server over HTTP."""

from __future__ import annotations

import asyncio
import contextlib
import json
import urllib.parse
from collections.abc import AsyncIterator
from typing import Any, NamedTuple, Protocol, Self

from oga.aio import AsyncEngine
from oga.cli.models import find_model
from oga.errors import InvalidArgumentError, ModelError

PATH = "/v1/completions"


class Piece(NamedTuple):
    """More of an answer."""

    tokens: int
    prompt_tokens: int = 0
    """On the last piece, when the target says it."""


class Target(Protocol):
    """Whatever generates."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(self, *exception: object) -> None: ...

    def generate(self, prompt: str, tokens: int) -> AsyncIterator[Piece]:
        """An answer of exactly so many tokens, as far as the target can promise that."""
        ...


class InProcessTarget:
    """An engine in this process."""

    def __init__(self, model: str, overlay: str | None) -> None:
        self._engine = AsyncEngine(find_model(model), config=overlay, max_waiting=None)

    async def __aenter__(self) -> Self:
        await self._engine.open()
        await self._engine.generate("a", max_new_tokens=2)
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self._engine.close()

    async def generate(self, prompt: str, tokens: int) -> AsyncIterator[Piece]:
        """Greedy, and not ended by the model before its time."""
        async for delta in self._engine.stream(prompt, max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False):
            yield Piece(len(delta.token_ids), 0 if delta.usage is None else delta.usage.prompt_tokens)


class HttpTarget:
    """A server that streams ``/v1/completions``, over plain HTTP/1.1 without any package."""

    def __init__(self, url: str, model: str | None, key: str | None) -> None:
        parts = urllib.parse.urlsplit(url)
        if not parts.hostname:
            raise InvalidArgumentError(f"{url!r} names no host; it must be like http://127.0.0.1:8000.")
        self._host = parts.hostname
        self._is_tls = parts.scheme == "https"
        self._port = parts.port or (443 if self._is_tls else 80)
        self._path = parts.path.rstrip("/").removesuffix("/v1") + PATH
        self._model = model
        self._key = key

    async def __aenter__(self) -> Self:
        async for _ in self.generate("a", 2):
            pass
        return self

    async def __aexit__(self, *exception: object) -> None:
        """Connections end with their requests."""

    async def generate(self, prompt: str, tokens: int) -> AsyncIterator[Piece]:
        """Greedy; ``ignore_eos`` and ``min_tokens`` keep servers that know them from ending early."""
        body: dict[str, Any] = {
            "prompt": prompt,
            "max_tokens": tokens,
            "min_tokens": tokens,
            "ignore_eos": True,
            "temperature": 0,
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self._model is not None:
            body["model"] = self._model
        seen = 0
        async for event in self._events(json.dumps(body).encode()):
            if "error" in event:
                raise ModelError(str(event["error"].get("message", event["error"])))
            if event.get("choices") and event["choices"][0].get("text"):
                seen += 1
                yield Piece(1)
            if usage := event.get("usage"):
                # A chunk may hold several tokens; what the server counted is what was generated.
                yield Piece(max(0, usage["completion_tokens"] - seen), usage["prompt_tokens"])

    async def _events(self, body: bytes) -> AsyncIterator[dict[str, Any]]:
        reader, writer = await asyncio.open_connection(self._host, self._port, ssl=self._is_tls or None)
        try:
            head = f"POST {self._path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Type: application/json\r\n"
            head += f"Connection: close\r\nContent-Length: {len(body)}\r\n"
            if self._key is not None:
                head += f"Authorization: Bearer {self._key}\r\n"
            writer.write(head.encode() + b"\r\n" + body)
            await writer.drain()
            status = int((await reader.readline()).split()[1])
            while (await reader.readline()).strip():
                pass
            if status != 200:
                raise ModelError(f"the server answered {status}: {(await reader.read(500)).decode(errors='replace')}")
            while line := await reader.readline():
                # Lengths of HTTP chunks stand on lines of their own; nothing of an event looks like one.
                if line.startswith(b"data: ") and not line.startswith(b"data: [DONE]"):
                    yield json.loads(line[len(b"data: ") :])
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
