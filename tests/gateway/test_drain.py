"""Drain: clients are notified, commands in flight are finished, and every connection is closed."""

from __future__ import annotations

import asyncio
import json
import socket
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from dealer.errors import ConfigurationError
from dealer.eventlog.keys import HouseKeys
from dealer.gateway import Gateway, serve
from dealer.gateway import clients as module
from dealer.service.service import Service
from tests.gateway.conftest import TEST_LIMITS
from tests.gateway.rpc_client import HANDSHAKE, eventually, reason_of, refused_status
from tests.gateway.tables import commit_entropy, seat_and_shuffle, seat_players


async def test_every_client_is_notified_when_to_reconnect(gateway, connect) -> None:
    table = await seat_and_shuffle(connect, gateway, players=3)
    clients, port = [table.host, *table.players], gateway.port
    await gateway.drain()
    for client in clients:
        assert await client.wait_closed() == 1012
    notices = [notice for client in clients for notice in client.notices("session.drain")]
    times = [notice["reconnect_in_ms"] for notice in notices]
    assert len(set(times)) == len(clients)
    assert sorted(times) == [0, 2, 4, 6]
    with pytest.raises(OSError, match="Connect call failed"):
        await asyncio.open_connection("127.0.0.1", port)
    with pytest.raises(ConfigurationError, match="not open"):
        _ = gateway.port


async def test_commands_in_flight_are_finished(gateway, connect, monkeypatch) -> None:
    table = await seat_and_shuffle(connect, gateway, players=2)
    service = gateway.context.service
    submit, waiting = service.processor.submit, []

    def submit_later(*arguments) -> None:
        waiting.append(lambda: submit(*arguments))

    monkeypatch.setattr(service.processor, "submit", submit_later)
    drawing = [client.send("deck.draw", cmd="last") for client in table.players]
    await eventually(lambda: len(waiting) == 2)
    draining = asyncio.create_task(gateway.drain())
    await eventually(lambda: gateway.context.draining)
    for submit_now in waiting:
        submit_now()
    drawn = await asyncio.gather(*drawing)
    await draining
    live_table = await service.lifecycle.load(table.id)
    assert live_table.committed == max(answer["version"] for answer in drawn)
    assert gateway.context.in_flight == 0


HEAD = b"POST /rpc HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
PAGE = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
CALL = HEAD + b"Content-Length: 40\r\n\r\n" + b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


@pytest.mark.parametrize(
    ("sent", "begun"),
    [
        (b"", b""),
        (PAGE[:9], b""),
        (PAGE[:-2], b""),
        (HEAD + b"Content-Length: 40\r\n\r\n{", b""),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n9\r\n{", b""),
        (HEAD + b"Expect: 100-continue\r\nContent-Length: 40\r\n\r\n", b"HTTP/1.1 100 "),
        (PAGE, b"HTTP/1.1 200 "),
        (CALL, b"HTTP/1.1 200 "),
        (CALL + CALL[:-9], b"HTTP/1.1 200 "),
        (PAGE + b"more", b"HTTP/1.1 200 "),
        (HANDSHAKE[:-2], b""),
        (HANDSHAKE, b"HTTP/1.1 101 "),
        (HANDSHAKE + b"\x81\xa8\0\0\0\0{", b"HTTP/1.1 101 "),
        (HANDSHAKE + b"\x01\x81\0\0\0\0{", b"HTTP/1.1 101 "),
        (HANDSHAKE + b"\x81", b"HTTP/1.1 101 "),
    ],
)
async def test_who_has_nothing_to_be_answered_does_not_delay_the_drain(
    open_gateway, sent: bytes, begun: bytes
) -> None:
    """A client that neither sends nor closes anything more."""
    patient = replace(TEST_LIMITS, opening=300.0, closing=90.0, idle=300.0, drain=300.0)
    gateway = await open_gateway(limits=patient)
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(sent)
    got = await reader.readexactly(len(begun))
    assert got == begun
    await eventually(lambda: gateway.registry.connections and not gateway.context.in_flight)
    (connection,) = gateway.registry.connections
    if sent and not begun:
        await eventually(lambda: connection.exchange.request or connection.exchange._head)
    async with asyncio.timeout(30):
        await gateway.drain()
        rest = await reader.read()
    assert not gateway.registry.connections
    if sent.endswith(b"\r\n\r\n{"):
        assert rest.startswith(b"HTTP/1.1 503 ")
    if begun.startswith(b"HTTP/1.1 101"):
        assert b"\x03\xf4" in rest  # 1012
    writer.close()


async def test_a_page_that_is_never_answered_does_not_delay_the_drain(
    open_gateway, monkeypatch
) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, drain=1.6, closing=0.3))
    requested = asyncio.Event()

    async def never_answer(*_) -> None:
        requested.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(gateway._router, "answer", never_answer)
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await requested.wait()
    async with asyncio.timeout(20):
        await gateway.drain()
    with suppress(ConnectionResetError):
        assert await reader.read() == b""
    writer.close()


async def test_each_client_plays_on_until_its_own_time(gateway, connect, monkeypatch) -> None:
    """The drain waits, between two of its disconnections, until the test lets it go on."""
    waiting, steps = [], asyncio.Semaphore(0)

    async def wait(seconds: float) -> None:
        waiting.append(seconds)
        await steps.acquire()

    table = await seat_and_shuffle(connect, gateway, players=4)
    monkeypatch.setattr(module, "sleep", wait)
    draining = asyncio.create_task(gateway.drain())
    await eventually(lambda: waiting)
    clients = [table.host, *table.players]
    for gone in range(len(clients) + 1):
        await eventually(lambda: sum(client.closed.done() for client in clients) == gone)  # noqa: B023
        for client in clients:
            if client is not table.host and not client.closed.done():
                await client.call("deck.draw")
        steps.release()
    await draining
    assert len(waiting) == len(clients)


async def test_the_spread_of_many_connections_is_the_grace(monkeypatch) -> None:
    waited = []

    async def wait(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(module, "sleep", wait)
    clients: list[Any] = [SilentClient() for _ in range(10_000)]
    await module.disconnect(clients, within=5.0)
    times = [json.loads(client.frame[2:])["params"]["reconnect_in_ms"] for client in clients]
    assert times == sorted(times)
    assert 4990 <= times[-1] < 5000
    assert max(waited) <= 5.0
    assert all(client.finished for client in clients)


class SilentClient:
    """A connection as a drain sees it."""

    def __init__(self) -> None:
        self.frame, self.finished = b"", False

    def write(self, frame: bytes) -> None:
        self.frame = frame

    def drain(self) -> None:
        self.finished = True


async def test_a_command_that_cannot_be_finished_does_not_delay_the_drain(
    open_gateway, connect
) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, drain=300.0))
    table = await seat_players(connect, gateway, players=1)
    await table.host.call("round.open")
    await commit_entropy(table)
    drawing = table.players[0].send("deck.draw", from_="random")
    await eventually(lambda: gateway.context.in_flight)
    draining = asyncio.create_task(gateway.drain())
    async with asyncio.timeout(20):
        await draining
    assert await table.players[0].wait_closed() == 1012
    with pytest.raises(asyncio.CancelledError):
        await drawing


async def test_a_command_that_fails_at_once_does_not_delay_the_drain(service, connect) -> None:
    """The house key of its table, which another node has opened, is not on this node yet."""
    live_table, _ = await service.open_table({})
    other_node = Service(service.log, HouseKeys(bytes(32)))
    async with serve(other_node, port=0, limits=TEST_LIMITS) as gateway:
        client = await connect(gateway)
        for cmd in ("one", "two"):
            note = {"table": live_table.table_id, "kind": "x", "text": "y", "cmd": cmd}
            assert await reason_of(client.call("table.note", **note)) == "unavailable"
        assert gateway.context.in_flight == 0
        await gateway.drain()
        assert await client.wait_closed() == 1012
    await other_node.close()


async def test_new_connections_are_refused(open_gateway, connect) -> None:
    gateway = await open_gateway(limits=replace(TEST_LIMITS, drain=1.6, closing=0.3))
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    await eventually(lambda: gateway.registry.connections)
    gateway.context.draining = True
    assert await refused_status(connect(gateway)) == 503
    gateway.context.draining = False
    await gateway.drain()
    assert await reader.read() == b""
    writer.close()


async def test_a_port_in_use_is_an_error(service) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigurationError, match=f"Port {port} of 127.0.0.1 is in use"):
            await Gateway(service, port=port).start()
        with pytest.raises(ConfigurationError, match=f"Port {port}"):
            await Gateway(service, port=0, ops_port=port).start()
    with pytest.raises(ConfigurationError, match="cannot be opened"):
        await Gateway(service, host="no such host", port=0).start()


async def test_a_drained_gateway_leaves_no_tasks(service) -> None:
    before = asyncio.all_tasks()
    async with serve(service, port=0, ops_port=0, limits=TEST_LIMITS) as gateway:
        assert gateway.port != gateway.ops_port
    assert asyncio.all_tasks() == before
