"""HTTP/1.1 for a load generator: kept connections, streamed bodies, and as little work per byte as there can be."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Mapping
from typing import Any
from urllib.parse import urlsplit

from oga.errors import InvalidArgumentError

LARGEST_LINE_BYTES = 1 << 24
Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class BrokenReplyError(Exception):
    """The connection ended, or what came is no HTTP."""


class Reply:
    """The head of an answer, and its body while it comes."""

    def __init__(self, client: Client, connection: Connection, status: int, headers: Mapping[str, str]) -> None:
        self.status = status
        self._client = client
        self._connection = connection
        self._headers = headers
        self._is_whole = False

    async def lines(self) -> AsyncIterator[bytes]:
        """The body line by line, without line ends."""
        rest = b""
        async for piece in self._pieces():
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole:
                yield line.rstrip(b"\r")
        if rest:
            yield rest

    async def read(self) -> bytes:
        """The whole body."""
        return b"".join([piece async for piece in self._pieces()])

    async def _pieces(self) -> AsyncIterator[bytes]:
        reader = self._connection[0]
        try:
            if "chunked" in self._headers.get("transfer-encoding", "").lower():
                while size := int((await reader.readuntil(b"\n")).split(b";")[0], 16):
                    yield await reader.readexactly(size)
                    await reader.readuntil(b"\n")
                while (await reader.readuntil(b"\n")).strip():
                    pass
                self._is_whole = True
            elif (length := self._headers.get("content-length")) is not None:
                if int(length):
                    yield await reader.readexactly(int(length))
                self._is_whole = True
            else:
                while piece := await reader.read(65536):
                    yield piece
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as error:
            raise BrokenReplyError(f"the answer was cut off: {error!r}") from None

    async def __aenter__(self) -> Reply:
        return self

    async def __aexit__(self, *exception: object) -> None:
        is_kept = self._is_whole and self._headers.get("connection", "").lower() != "close"
        self._client.give_back(self._connection, is_kept)


class Client:
    """Requests to one server. A connection serves one request at a time and is kept for the next."""

    def __init__(self, base: str, headers: Mapping[str, str]) -> None:
        """``base`` is the address that paths are added to. Raises :class:`oga.InvalidArgumentError` for no address."""
        parts = urlsplit(base)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidArgumentError(f"{base} is no address such as http://127.0.0.1:8000.")
        self._host = parts.hostname
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._port = parts.port or (443 if self._tls else 80)
        self._path = parts.path.rstrip("/")
        self._headers = {"Host": parts.netloc.rpartition("@")[2], "Accept": "*/*", "User-Agent": "oga-bench", **headers}
        self._idle: list[Connection] = []

    async def request(self, method: str, path: str, body: Any = None) -> Reply:
        """Sends a request, with ``body`` as JSON. Raises :class:`BrokenReplyError` or ``OSError``."""
        content = b"" if body is None else json.dumps(body).encode()
        headers = self._headers | ({"Content-Type": "application/json"} if content else {})
        lines = [f"{method} {self._path}{path} HTTP/1.1", f"Content-Length: {len(content)}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        message = "\r\n".join([*lines, "", ""]).encode("latin-1") + content
        while self._idle:  # the server may have closed one that was kept
            connection = self._idle.pop()
            try:
                return await self._exchange(connection, message)
            except (BrokenReplyError, OSError):
                continue
        return await self._exchange(await self._connect(), message)

    async def close(self) -> None:
        """Closes what is idle."""
        while self._idle:
            self._idle.pop()[1].close()
        await asyncio.sleep(0)

    def give_back(self, connection: Connection, is_kept: bool) -> None:
        """Keeps a connection whose answer was read to its end, closes any other."""
        if is_kept:
            self._idle.append(connection)
        else:
            connection[1].close()

    async def _connect(self) -> Connection:
        return await asyncio.open_connection(self._host, self._port, ssl=self._tls, limit=LARGEST_LINE_BYTES)

    async def _exchange(self, connection: Connection, message: bytes) -> Reply:
        reader, writer = connection
        try:
            writer.write(message)
            await writer.drain()
            first = (await reader.readuntil(b"\n")).split(None, 2)
            headers = {}
            while line := (await reader.readuntil(b"\n")).strip():
                name, _, value = line.decode("latin-1").partition(":")
                headers[name.lower()] = value.strip()
            return Reply(self, connection, int(first[1]), headers)
        except (EOFError, ValueError, IndexError, asyncio.LimitOverrunError) as error:
            writer.close()
            raise BrokenReplyError(f"no answer came: {error!r}") from None
        except BaseException:
            writer.close()
            raise
