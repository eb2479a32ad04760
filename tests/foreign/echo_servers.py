"""Two echo servers: the gateway's WebSocket connection, and the library's own.

A service has no echo, so the dispatcher is replaced by one that sends each message back. Three
limits that refuse messages on purpose are lifted: the size of a message, the number of its
fragments, and binary messages, which are echoed.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import pytest
from websockets.asyncio.server import Server, ServerConnection
from websockets.asyncio.server import serve as serve_websockets
from websockets.exceptions import ConnectionClosed
from websockets.frames import Frame, Opcode

from dealer.gateway.close_codes import CloseCode
from dealer.gateway.limits import Limits
from dealer.gateway.ports import open_port, port_of
from dealer.gateway.rate_limit.budgets import ClientBudget
from dealer.gateway.ws import connection as ws
from dealer.gateway.ws.connection import ConnectionCallbacks, PlayerConnection

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

    def close(self) -> None:
        """There is no session to end."""


class _EchoConnection(PlayerConnection):
    _binary: list[bytes]

    def echo(self, data: bytes, opcode: Opcode) -> None:
        self.write(Frame(opcode, data).serialize(mask=False))

    def process_event(self, event: Any) -> None:
        """Echo binary messages; everything else is the gateway's."""
        if self.dispatcher is None or not isinstance(event, Frame):
            super().process_event(event)
        elif event.opcode is Opcode.BINARY and event.fin:
            self.echo(bytes(event.data), Opcode.BINARY)
        elif event.opcode is Opcode.BINARY:
            self._binary = [bytes(event.data)]
        elif event.opcode is Opcode.CONT and getattr(self, "_binary", None):
            self._binary.append(bytes(event.data))
            if event.fin:
                self.echo(b"".join(self._binary), Opcode.BINARY)
                self._binary = []
        else:
            super().process_event(event)


@asynccontextmanager
async def gateway_echo(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[int]:
    """The port of an echo server with the gateway's connections."""
    monkeypatch.setattr(ws, "MAX_FRAGMENTS", MESSAGE)
    limits = Limits(message=MESSAGE)

    def connected(connection: PlayerConnection) -> None:
        connection.budget = ClientBudget(limits, 0.0)

    async def run(connection: _EchoConnection) -> None:
        connection.handshake_done(_Echo(connection))  # type: ignore[arg-type]
        await connection.wait_closed()

    async def handshake(*_: Any) -> None:
        """Every request is one."""

    def nothing(*_: Any) -> Any:
        return None

    callbacks = ConnectionCallbacks(connected, nothing, nothing, nothing)
    server = await open_port(
        "127.0.0.1",
        0,
        run,
        handshake,
        limits=limits,
        create_connection=partial(_EchoConnection, callbacks, limits),
        open_timeout=None,
    )
    async with _closing(server) as port:
        yield port


@asynccontextmanager
async def library_echo() -> AsyncIterator[int]:
    """The port of an echo server of websockets as it is, without compression."""

    async def run(connection: ServerConnection) -> None:
        with suppress(ConnectionClosed):
            async for message in connection:
                await connection.send(message)

    server = await serve_websockets(run, "127.0.0.1", 0, compression=None, max_size=MESSAGE)
    async with _closing(server) as port:
        yield port


@asynccontextmanager
async def _closing(server: Server) -> AsyncIterator[int]:
    try:
        yield port_of(server)
    finally:
        server.close()
        await server.wait_closed()
