"""Clients that read slowly or not at all: they delay no other, and are disconnected in the end."""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import replace

import pytest
from websockets.asyncio.client import connect as open_socket

from dealer.gateway.clients import ClientConnection
from dealer.gateway.limits import Limits
from tests.gateway.conftest import TEST_LIMITS
from tests.gateway.rpc_client import RpcClient, eventually, open_websocket
from tests.gateway.tables import SeatedTable, seat_players

SHOE = {"decks": 8}


async def slow_client(port: int) -> RpcClient:
    """A client with a small receive buffer."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
    url = f"ws://127.0.0.1:{port}/ws"
    return RpcClient(
        await open_socket(
            url, sock=sock, compression=None, ping_interval=None, max_size=None, close_timeout=1
        )
    )


async def watched_table(gateway, connect) -> tuple[SeatedTable, RpcClient]:
    """A table with a large shoe, and a spectator that has stopped reading."""
    table = await seat_players(connect, gateway, players=1)
    await table.host.call("round.open", entropy="house", deck=SHOE)
    slow = await slow_client(gateway.port)
    await slow.call("table.watch", table=table.id, after=0)
    await slow.until(lambda: slow.notices("resumed"))
    slow.socket.transport.pause_reading()
    return table, slow


async def shuffle_until(gateway, table: SeatedTable, condition) -> int:
    version = 0
    async with asyncio.timeout(60):
        while not condition():
            version = (await table.host.call("deck.shuffle"))["version"]
    return version


async def test_a_slow_client_catches_up_and_misses_no_event(gateway, connect) -> None:
    table, slow = await watched_table(gateway, connect)
    await shuffle_until(gateway, table, lambda: gateway.metrics.slowed > 0)
    last = (await table.players[0].call("deck.draw"))["version"]
    await table.players[0].until_version(last)
    assert not slow.closed.done()
    slow.socket.transport.resume_reading()
    await slow.until_version(last)
    last = (await table.players[0].call("deck.draw"))["version"]
    await slow.until_version(last)
    assert slow.versions == list(range(1, last + 1))
    await slow.close()


async def test_a_lagging_client_that_lost_its_seat_sees_no_card_of_the_next_player(
    gateway, connect
) -> None:
    table = await seat_players(connect, gateway, players=1)
    await table.host.call("round.open", entropy="house", deck=SHOE)
    slow = await slow_client(gateway.port)
    joined = await slow.call("table.join", table=table.id, name="slow")
    slow.socket.transport.pause_reading()
    await shuffle_until(gateway, table, lambda: gateway.metrics.slowed > 0)
    other = await connect(gateway)
    await other.call("table.leave", table=table.id, token=joined["token"])
    assert (await other.call("table.join", table=table.id, name="next"))["seat"] == 2
    last = (await other.call("deck.draw"))["version"]
    await other.until_version(last)
    assert "private" in other.events[-1]
    slow.socket.transport.resume_reading()
    await slow.until_version(last)
    assert not [event for event in slow.events if "private" in event]
    await slow.close()


async def test_a_client_that_does_not_read_is_disconnected(open_gateway, connect) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, sending=1.0, closing=0.1))
    table, slow = await watched_table(gateway, connect)
    before = len(gateway.registry.connections)
    # The timeout may pass before the next event finds the client slow.
    metrics = gateway.metrics
    await shuffle_until(gateway, table, lambda: metrics.slowed > 0 or metrics.closed[4508] > 0)
    await eventually(lambda: len(gateway.registry.connections) < before)
    assert gateway.metrics.closed[4508] == 1
    last = (await table.players[0].call("deck.draw"))["version"]
    await table.players[0].until_version(last)
    versions = table.players[0].versions
    assert versions == list(range(versions[0], last + 1))
    slow.socket.transport.abort()
    await slow.wait_closed()


def reads(connection: ClientConnection) -> bool:
    """Whether the server reads what this client sends."""
    return not connection.paused or connection.transport.is_reading()


@pytest.mark.slow
async def test_requests_of_a_client_that_does_not_read_are_not_read(open_gateway, connect) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, sending=1.0, closing=0.1, buffer=4096))
    other = await connect(gateway)
    await other.call("ping")
    greedy = await slow_client(gateway.port)
    await greedy.call("ping")
    greedy.socket.transport.pause_reading()
    request = {"jsonrpc": "2.0", "id": 1, "method": "rpc.discover"}  # a long answer

    async def send_requests() -> None:
        while True:
            await greedy.send_raw(json.dumps(request))

    sending = asyncio.create_task(send_requests())
    await eventually(lambda: any(not reads(one) for one in gateway.registry.connections))
    (full,) = (one for one in gateway.registry.connections if not reads(one))
    assert full.transport.get_write_buffer_size() < 300_000
    await eventually(lambda: gateway.metrics.closed[4508])
    sending.cancel()
    await other.call("ping")
    greedy.socket.transport.abort()
    await greedy.wait_closed()


async def test_a_client_without_pongs_is_disconnected(open_gateway, connect) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, keepalive=0.5, closing=0.1))
    speaking = await connect(gateway)
    await speaking.call("ping")
    silent = await slow_client(gateway.port)
    await silent.call("ping")
    silent.socket.transport.pause_reading()
    await eventually(lambda: gateway.metrics.closed[4508])
    await eventually(lambda: len(gateway.registry.connections) == 1)
    await speaking.call("ping")
    silent.socket.transport.abort()
    await silent.wait_closed()


async def test_a_connection_whose_close_is_not_answered_is_aborted(open_gateway, connect) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, closing=0.1))
    reader, writer = await open_websocket(gateway.port)
    writer.write(b"\x82\x80\x00\x00\x00\x00")
    assert (await reader.readexactly(4))[2:] == (1003).to_bytes(2, "big")
    await eventually(lambda: not gateway.registry.connections)
    writer.close()


def test_a_lost_connection_is_noticed_within_twelve_seconds() -> None:
    """A client is closed at the beat after the second ping that it did not answer."""
    assert 3 * Limits().keepalive <= 12
