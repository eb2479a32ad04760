"""Accepting connections: a few in one step, refused ones closed, the rest served."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import ExitStack

import pytest

from dealer.errors import ConfigurationError
from dealer.gateway.net import listener as module
from dealer.gateway.net.listener import ACCEPTED_AT_ONCE, Listener, listening_sockets
from tests.gateway.rpc_client import eventually


class Greeter(asyncio.Protocol):
    """Counts the connections made, and greets each."""

    made = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        Greeter.made += 1
        assert isinstance(transport, asyncio.Transport)
        transport.write(b"hello")
        transport.close()


async def receive_from(address: tuple[str, int], *, own_address: str) -> bytes:
    with socket.socket() as client:
        client.bind((own_address, 0))
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, address)
        return await loop.sock_recv(client, 1)


@pytest.fixture
async def listening():
    Greeter.made = 0
    sockets = await listening_sockets("127.0.0.1", 0)
    yield sockets
    for one in sockets:
        one.close()


async def test_an_accepted_connection_is_served_and_a_refused_one_closed(listening) -> None:
    server = Listener(listening, Greeter, lambda address: address == "127.0.0.1")
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    assert await reader.read() == b"hello"
    writer.close()
    with pytest.raises(ConnectionResetError):
        await receive_from(("127.0.0.1", port), own_address="127.0.0.2")
    assert Greeter.made == 1
    server.close()


async def test_one_step_of_the_loop_accepts_a_few_connections(listening) -> None:
    asked: list[str] = []

    def refuse(address: str) -> bool:
        asked.append(address)
        return False

    server = Listener(listening, Greeter, refuse)
    address = server.sockets[0].getsockname()
    with ExitStack() as stack:
        for _ in range(3 * ACCEPTED_AT_ONCE):
            stack.enter_context(socket.create_connection(address))
        server._accept(server.sockets[0])
        assert len(asked) == ACCEPTED_AT_ONCE
        await eventually(lambda: len(asked) == 3 * ACCEPTED_AT_ONCE)
    server.close()


async def test_nothing_is_accepted_after_closing(listening) -> None:
    server = Listener(listening, Greeter, lambda address: True)
    address = server.sockets[0].getsockname()
    assert server.port == address[1]
    server.close()
    await server.wait_closed()
    with pytest.raises(ConfigurationError, match="not open"):
        _ = server.port
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection(*address)


async def test_accepting_goes_on_after_the_process_had_no_file_descriptors(
    listening, monkeypatch, caplog
) -> None:
    """Without the pause the event loop would try again and again, and write a line each time."""
    monkeypatch.setattr(module, "RETRY_SECONDS", 0.01)
    (one,) = listening

    class Exhausted(socket.socket):
        """The listening socket of a process with too many open files, for one attempt."""

        attempts = 0

        def accept(self):
            Exhausted.attempts += 1
            if Exhausted.attempts == 1:
                raise OSError(24, "Too many open files")
            return super().accept()

    exhausted = Exhausted(fileno=os.dup(one.fileno()))
    server = Listener([exhausted], Greeter, lambda address: True)
    reader, writer = await asyncio.open_connection(*one.getsockname())
    assert await reader.read() == b"hello"
    assert [record.message for record in caplog.records] == ["cannot accept connections"]
    writer.close()
    server.close()
