"""Two echo servers: the gateway's WebSocket connection, and the library's own.

A service has no echo, so the dispatcher is replaced by one that sends each message back. Three
limits that refuse messages on purpose are lifted: the size of a message, the number of its
fragments, and binary messages, which are echoed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial

import pytest
from websockets.asyncio.server import ServerConnection
from websockets.asyncio.server import serve as serve_websockets
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode
from websockets.http11 import Request, Response

from dealer.gateway.close_codes import CloseCode
from dealer.gateway.limits import Limits
from dealer.gateway.net import websocket
from dealer.gateway.net.connection import Connection
from dealer.gateway.net.listener import Listener, listening_sockets
from dealer.gateway.net.websocket import FrameReader

MESSAGE = 32 * 1024 * 1024
"""Bytes of the longest message; the cases' longest has 16 MiB."""


class _Echo:
    """In place of a `Dispatcher`."""

    request_seen = True

    def __init__(self, connection: _EchoConnection) -> None:
        self._connection = connection

    def receive(self, data: bytes) -> None:
        try:
            data.decode()
        except UnicodeDecodeError:
            self._connection.close_with(CloseCode.INVALID_DATA, "not UTF-8")
            return
        self._connection.echo(data, Opcode.TEXT)

    def on_ping(self) -> bool:
        return True

    def finish(self) -> None:
        """There is no drain."""

    def close(self) -> None:
        """There is no session to end."""


class _EchoConnection(Connection):
    _binary: list[bytes]

    def check(self, request: Request) -> Response | None:
        """Every request is a handshake."""
        return None

    def run(self, request: Request, body: bytes) -> None:
        if self.upgrade(request):
            self.open(_Echo(self))

    def echo(self, data: bytes, opcode: Opcode) -> None:
        self.write(Frame(opcode, data).serialize(mask=False))

    def frame_received(self, reader: FrameReader, frame: Frame) -> None:
        """Echo binary messages; everything else is the gateway's."""
        if frame.opcode is Opcode.BINARY and frame.fin:
            self.echo(bytes(frame.data), Opcode.BINARY)
        elif frame.opcode is Opcode.BINARY:
            self._binary = [bytes(frame.data)]
        elif frame.opcode is Opcode.CONT and getattr(self, "_binary", None):
            self._binary.append(bytes(frame.data))
            if frame.fin:
                self.echo(b"".join(self._binary), Opcode.BINARY)
                self._binary = []
        else:
            super().frame_received(reader, frame)


@asynccontextmanager
async def gateway_echo(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    """The port of an echo server with the gateway's connections."""
    monkeypatch.setattr(websocket, "MAX_FRAGMENTS", MESSAGE)
    connection = partial(_EchoConnection, Limits(message=MESSAGE))
    listener = Listener(await listening_sockets("127.0.0.1", 0), connection)
    try:
        yield listener.port
    finally:
        listener.close()
        await listener.wait_closed()


@asynccontextmanager
async def library_echo() -> AsyncIterator[int]:
    """The port of an echo server of websockets as it is, without compression."""

    async def run(connection: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            async for message in connection:
                await connection.send(message)

    server = await serve_websockets(run, "127.0.0.1", 0, compression=None, max_size=MESSAGE)
    try:
        yield next(iter(server.sockets)).getsockname()[1]
    finally:
        server.close()
        await server.wait_closed()
