"""A server with OpenAI's API that answers as a script says, with delays that are known."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

SECONDS = 20


@dataclasses.dataclass
class Asked:
    """A request as the server saw it."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    number: int


class Answer:
    """Writes one answer."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.writer = writer

    async def whole(self, status: int, value: Any) -> None:
        content = value if isinstance(value, bytes) else json.dumps(value).encode()
        head = f"HTTP/1.1 {status} Said\r\nContent-Length: {len(content)}\r\n\r\n"
        self.writer.write(head.encode() + content)
        await self.writer.drain()

    async def begin(self) -> None:
        self.writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        await self.writer.drain()

    async def data(self, content: bytes) -> None:
        self.writer.write(b"%x\r\n%s\r\n" % (len(content), content))
        await self.writer.drain()

    async def event(self, value: Any) -> None:
        await self.data(b"data: " + json.dumps(value).encode() + b"\n\n")

    async def end(self) -> None:
        await self.data(b"data: [DONE]\n\n")
        self.writer.write(b"0\r\n\r\n")
        await self.writer.drain()

    async def tokens(self, asked: Asked, first: float, gap: float, *, counts: bool = True) -> None:
        """As many tokens as were asked for: the first after ``first`` seconds, each other ``gap`` after it."""
        await self.begin()
        await self.event({"choices": [{"delta": {"role": "assistant", "content": ""}}]})
        count = asked.body["max_tokens"]
        for number in range(count):
            await asyncio.sleep(gap if number else first)
            piece = {"text": "x"} if asked.path.endswith("/v1/completions") else {"delta": {"content": "x"}}
            await self.event({"choices": [{**piece, "finish_reason": "length" if number == count - 1 else None}]})
        if counts:
            await self.event({"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": count}})
        await self.end()


Script = Callable[[Asked, Answer], Awaitable[None]]


class FakeServer:
    """What a test knows about the server that runs."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[Asked] = []
        self.connections = 0
        self.most_open = 0
        self._open = 0

    async def serve(self, script: Script, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(OSError, EOFError, asyncio.CancelledError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
                headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
                content = await reader.readexactly(int(headers["content-length"]))
                method, path, _ = head[0].split()
                if method == "GET":
                    await Answer(writer).whole(200, {"data": [{"id": "the-model"}]})
                    continue
                asked = Asked(path, headers, json.loads(content), len(self.asked))
                self.asked.append(asked)
                self._open += 1
                self.most_open = max(self.most_open, self._open)
                try:
                    await script(asked, Answer(writer))
                finally:
                    self._open -= 1
        writer.close()


@contextlib.contextmanager
def fake_server(script: Script) -> Iterator[FakeServer]:
    """Serves on a free port until the block ends."""
    fake, ready = FakeServer(), threading.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        server = await asyncio.start_server(lambda *streams: fake.serve(script, *streams), "127.0.0.1", 0)
        fake.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        ready.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        server.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    task = loop.create_task(serve())
    thread = threading.Thread(target=lambda: loop.run_until_complete(task))
    thread.start()
    try:
        assert ready.wait(SECONDS)
        yield fake
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(SECONDS)
        assert not thread.is_alive()
        loop.close()
