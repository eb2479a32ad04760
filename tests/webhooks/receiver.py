"""A receiver of webhooks for the tests, with the answers that a test chooses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Self

Respond = Callable[["Received", asyncio.StreamWriter], Awaitable[None]]


class Received(NamedTuple):
    """A request: its first line, its headers by lower-case name, and its body."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def event(self) -> dict[str, Any]:
        return dict(json.loads(self.body))


def answer(status: int = 204, *, more: str = "", body: bytes = b"") -> Respond:
    """Answers with this status; `more` are header lines."""

    async def respond(_: Received, writer: asyncio.StreamWriter) -> None:
        length = "" if status == 204 else f"Content-Length: {len(body)}\r\n"
        writer.write(f"HTTP/1.1 {status} Status\r\n{length}{more}\r\n".encode() + body)
        await writer.drain()

    return respond


def raw(text: bytes) -> Respond:
    """Answers with these bytes."""

    async def respond(_: Received, writer: asyncio.StreamWriter) -> None:
        writer.write(text)
        await writer.drain()

    return respond


chunked = raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
early_hints = raw(
    b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n"
)
not_http = raw(b"SSH-2.0-OpenSSH\r\n\r\n")


async def hang(_: Received, writer: asyncio.StreamWriter) -> None:
    """Never answers."""
    await asyncio.Event().wait()


async def flood(_: Received, writer: asyncio.StreamWriter) -> None:
    """Answers with a gigabyte, if it is read."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n")
    for _block in range(16384):
        writer.write(bytes(65536))
        await writer.drain()


async def endless_head(_: Received, writer: asyncio.StreamWriter) -> None:
    """Answers with a head without an end."""
    writer.write(b"HTTP/1.1 200 OK\r\n")
    while True:
        writer.write(b"X-More: " + b"x" * 1000 + b"\r\n")
        await writer.drain()


async def cut(_: Received, writer: asyncio.StreamWriter) -> None:
    """Closes the connection without an answer."""
    writer.transport.abort()


class Receiver:
    """An HTTP server on this machine; `respond` answers, `requests` are those so far.

    `connections` counts those that were accepted.
    """

    def __init__(self, respond: Respond | None = None) -> None:
        self.respond = respond or answer()
        self.requests: list[Received] = []
        self.connections = 0
        self._port = 0
        self._server: asyncio.Server | None = None
        self._open: dict[asyncio.StreamWriter, asyncio.Task[Any]] = {}

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        """Listen, after `stop` on the same port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Break all connections, like SIGKILL."""
        if self._server is not None:
            self._server.close()
        tasks = tuple(self._open.values())
        for writer, task in tuple(self._open.items()):
            writer.transport.abort()
            task.cancel()
        await asyncio.gather(*tasks)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/hook?x=1"

    @property
    def events(self) -> list[dict[str, Any]]:
        """The CloudEvents received, also those that were refused."""
        return [request.event for request in self.requests]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._open[writer] = task
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                line, *lines = head.strip().split("\r\n")
                pairs = (each.partition(": ") for each in lines)
                headers = {name.lower(): value for name, _, value in pairs}
                body = await reader.readexactly(int(headers["content-length"]))
                request = Received(line, headers, body)
                self.requests.append(request)
                await self.respond(request, writer)
        except (EOFError, OSError, asyncio.CancelledError):
            pass
        finally:
            del self._open[writer]
            writer.transport.abort()
