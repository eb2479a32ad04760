"""Connections of an attacker: they are bounded for each address, and on the operator's port."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack
from dataclasses import replace

from websockets.frames import Frame, Opcode

from dealer.gateway import ops
from dealer.gateway.net.connection import State
from dealer.gateway.net.listener import ACCEPTED_AT_ONCE
from tests.gateway.conftest import TEST_LIMITS
from tests.gateway.rpc_client import RpcClient, eventually

FLOOD_FACTOR = 8
"""An address may have this multiple of `connections_per_address`, with or without requests."""


async def test_connections_without_requests_are_bounded_for_each_address(open_gateway) -> None:
    """One address must not use up all files that the process may open; another one connects."""
    gateway = await open_gateway(limits=replace(TEST_LIMITS, connections_per_address=3))
    most = FLOOD_FACTOR * 3
    with ExitStack() as stack:
        for _ in range(most + 20):
            sock = stack.enter_context(socket.socket())
            sock.bind(("127.0.0.2", 0))
            sock.connect(("127.0.0.1", gateway.port))
        refused, accepted = gateway.metrics.refused, gateway.registry.connections
        await eventually(lambda: refused["flood"] + len(accepted) == most + 20)
        # An accepted connection counts some steps of the event loop later.
        assert most <= len(accepted) < most + 5 * ACCEPTED_AT_ONCE
        other = await RpcClient.connect(gateway.port)
        await other.call("ping")
        await other.close()


async def test_an_address_that_connects_too_often_is_not_accepted(open_gateway) -> None:
    """Connections that are closed at once are a flood too, though few are open at any time."""
    limits = replace(TEST_LIMITS, address_rate=0.001, address_burst=5.0)
    gateway = await open_gateway(limits=limits)
    for _ in range(8):
        with socket.socket() as sock:
            sock.bind(("127.0.0.2", 0))
            sock.connect(("127.0.0.1", gateway.port))
    await eventually(lambda: gateway.metrics.refused["flood"] == 3)
    await eventually(lambda: not gateway.registry.connections)
    assert gateway.registry.arrivals == 5
    other = await RpcClient.connect(gateway.port)
    await other.call("ping")
    await other.close()


async def test_frames_after_a_request_for_a_page_are_dropped(gateway) -> None:
    """A page may take long to make or to send: 600 MB of frames could be in memory by then."""
    requested, never = asyncio.Event(), asyncio.get_running_loop().create_future()

    async def never_answer(connection, request):
        requested.set()
        await never

    gateway._router.answer = never_answer
    _, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(b"GET /tables/x/history.txt HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await requested.wait()
    frame = Frame(Opcode.TEXT, b"a" * 16_000).serialize(mask=True)
    received = 0
    (connection,) = gateway.registry.connections
    receive = connection.data_received

    def count(data: bytes) -> None:
        nonlocal received
        received += len(data)
        receive(data)

    connection.data_received = count
    connection.transport.set_protocol(connection)
    writer.write(frame * 200)
    await eventually(lambda: received >= 190 * len(frame) or connection.transport.is_closing())
    assert connection.state is State.ANSWERING
    assert len(connection.exchange.left) < 20 * len(frame)
    never.cancel()
    writer.transport.abort()


async def test_connections_of_a_trusted_proxy_are_not_bounded(open_gateway) -> None:
    gateway = await open_gateway(
        limits=replace(TEST_LIMITS, connections_per_address=1), trusted_proxies=["127.0.0.2"]
    )
    with ExitStack() as stack:
        for _ in range(2 * FLOOD_FACTOR):
            sock = stack.enter_context(socket.socket())
            sock.bind(("127.0.0.2", 0))
            sock.connect(("127.0.0.1", gateway.port))
        await eventually(lambda: len(gateway.registry.connections) == 2 * FLOOD_FACTOR)
    assert not gateway.metrics.refused


async def test_a_silent_connection_to_the_operators_port_is_closed(
    open_gateway, monkeypatch
) -> None:
    monkeypatch.setattr(ops, "OPENING_SECONDS", 0.1)
    gateway = await open_gateway(ops_port=0)
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.ops_port)
    async with asyncio.timeout(30):
        assert await reader.read() == b""
    writer.close()
