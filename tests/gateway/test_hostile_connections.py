"""Connections of an attacker: they are bounded for each address, and on the operator's port."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack
from dataclasses import replace

from websockets.frames import Frame, Opcode

from dealer.gateway import server
from tests.gateway.conftest import EAGER
from tests.gateway.guest import Guest, eventually

FLOOD = 8
"""Times `connections_per_address` that one address may have, requests or not."""


async def test_connections_that_ask_nothing_are_bounded_for_each_address(open_gateway) -> None:
    """One address must not have all files that the process may open; another one gets in."""
    gateway = await open_gateway(limits=replace(EAGER, connections_per_address=3))
    most = FLOOD * 3
    with ExitStack() as stack:
        for _ in range(most + 20):
            sock = stack.enter_context(socket.socket())
            sock.bind(("127.0.0.2", 0))
            sock.connect(("127.0.0.1", gateway.port))
        await eventually(lambda: gateway.metrics.turned_away["flood"] == 20)
        await eventually(lambda: len(gateway.door.connections) == most)
        other = await Guest.arrive(gateway.port)
        await other.ask("ping")
        await other.leave()


async def test_frames_behind_a_request_for_a_page_are_not_kept(gateway) -> None:
    """A page may take long to make or to read: 600 MB of frames would be in memory by then."""
    asked, never = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def answer(connection, request):
        asked.set()
        await never

    gateway._pages.answer = answer
    _, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(b"GET /tables/x/history.txt HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await asked.wait()
    frame = Frame(Opcode.TEXT, b"a" * 16_000).serialize(mask=True)
    received = 0
    (connection,) = gateway.door.connections
    receive = connection.data_received

    def count(data: bytes) -> None:
        nonlocal received
        received += len(data)
        receive(data)

    connection.data_received = count
    connection.transport.set_protocol(connection)
    writer.write(frame * 200)
    await eventually(lambda: received >= 190 * len(frame) or connection.transport.is_closing())
    assert len(connection.recv_messages.frames) < 20
    never.cancel()
    writer.transport.abort()


async def test_a_proxy_brings_as_many_connections_as_it_has_clients(open_gateway) -> None:
    gateway = await open_gateway(
        limits=replace(EAGER, connections_per_address=1), trusted_proxies=["127.0.0.2"]
    )
    with ExitStack() as stack:
        for _ in range(2 * FLOOD):
            sock = stack.enter_context(socket.socket())
            sock.bind(("127.0.0.2", 0))
            sock.connect(("127.0.0.1", gateway.port))
        await eventually(lambda: len(gateway.door.connections) == 2 * FLOOD)
    assert not gateway.metrics.turned_away


async def test_silence_on_the_operators_port_has_an_end(open_gateway, monkeypatch) -> None:
    monkeypatch.setattr(server, "OPERATOR_SECONDS", 0.1)
    gateway = await open_gateway(ops_port=0)
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.ops_port)
    async with asyncio.timeout(10):
        assert await reader.read() == b""
    writer.close()
