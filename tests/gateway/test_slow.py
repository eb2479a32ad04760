"""Guests who read slowly, or not at all, cost the others nothing and are let go in time."""

from __future__ import annotations

import asyncio
import json
import socket
from dataclasses import replace

from websockets.asyncio.client import connect

from dealer.gateway.connection import GuestConnection
from tests.gateway.conftest import EAGER
from tests.gateway.guest import Guest, eventually
from tests.gateway.tables import Seated, seat_all
from tests.gateway.test_limits import shaken_hands

SHOE = {"decks": 8}


async def slow_guest(port: int) -> Guest:
    """A guest whose computer takes little before it is read."""
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    sock.setblocking(False)
    await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", port))
    settings = {"compression": None, "ping_interval": None, "max_size": None, "close_timeout": 1}
    return Guest(await connect(f"ws://127.0.0.1:{port}/ws", sock=sock, **settings))


async def watched_table(gateway, arrive) -> tuple[Seated, Guest]:
    """A table with a big shoe, and somebody slow who watches and reads nothing more."""
    table = await seat_all(arrive, gateway, players=1)
    await table.host.ask("round.open", entropy="house", deck=SHOE)
    slow = await slow_guest(gateway.port)
    await slow.ask("table.watch", table=table.id, after=0)
    await slow.until(lambda: slow.notices("resumed"))
    slow.socket.transport.pause_reading()
    return table, slow


async def shuffle_until(gateway, table: Seated, truth) -> int:
    version = 0
    async with asyncio.timeout(60):
        while not truth():
            version = (await table.host.ask("deck.shuffle"))["version"]
    return version


async def test_a_slow_guest_catches_up_and_misses_nothing(gateway, arrive) -> None:
    table, slow = await watched_table(gateway, arrive)
    await shuffle_until(gateway, table, lambda: gateway.metrics.slowed > 0)
    last = (await table.players[0].ask("deck.draw"))["version"]
    await table.players[0].seen(last)
    assert not slow.closed.done()
    slow.socket.transport.resume_reading()
    await slow.seen(last)
    last = (await table.players[0].ask("deck.draw"))["version"]
    await slow.seen(last)
    assert slow.versions == list(range(1, last + 1))
    await slow.leave()


async def test_who_lost_the_seat_while_behind_sees_none_of_the_next_ones_cards(
    gateway, arrive
) -> None:
    table = await seat_all(arrive, gateway, players=1)
    await table.host.ask("round.open", entropy="house", deck=SHOE)
    slow = await slow_guest(gateway.port)
    joined = await slow.ask("table.join", table=table.id, name="slow")
    slow.socket.transport.pause_reading()
    await shuffle_until(gateway, table, lambda: gateway.metrics.slowed > 0)
    other = await arrive(gateway)
    await other.ask("table.leave", table=table.id, token=joined["token"])
    assert (await other.ask("table.join", table=table.id, name="next"))["seat"] == 2
    last = (await other.ask("deck.draw"))["version"]
    await other.seen(last)
    assert "private" in other.events[-1]
    slow.socket.transport.resume_reading()
    await slow.seen(last)
    assert not [event for event in slow.events if "private" in event]
    await slow.leave()


async def test_who_reads_nothing_is_let_go(open_gateway, arrive) -> None:
    gateway = await open_gateway(limits=replace(EAGER, sending=0.2, closing=0.1))
    table, slow = await watched_table(gateway, arrive)
    before = len(gateway.door.connections)
    # Their patience may be over before the next event finds them slow.
    metrics = gateway.metrics
    await shuffle_until(gateway, table, lambda: metrics.slowed > 0 or metrics.dropped[4508] > 0)
    await eventually(lambda: len(gateway.door.connections) < before)
    assert gateway.metrics.dropped[4508] == 1
    last = (await table.players[0].ask("deck.draw"))["version"]
    await table.players[0].seen(last)
    versions = table.players[0].versions
    assert versions == list(range(versions[0], last + 1))
    slow.socket.transport.abort()
    await slow.gone()


def reads(connection: GuestConnection) -> bool:
    """Whether the house takes in what this guest sends."""
    return not connection.paused or connection.transport.is_reading()


async def test_who_asks_and_never_reads_is_held_back(open_gateway, arrive) -> None:
    gateway = await open_gateway(limits=replace(EAGER, sending=0.2, closing=0.1, buffer=4096))
    table = await seat_all(arrive, gateway, players=1)
    await table.host.ask("round.open", entropy="house", deck=SHOE)
    await table.host.ask("deck.shuffle")
    greedy = await slow_guest(gateway.port)
    await greedy.ask("table.watch", table=table.id)
    greedy.socket.transport.pause_reading()
    request = {"jsonrpc": "2.0", "id": 1, "method": "deck.cut", "params": {"at": 1}}

    async def ask_on() -> None:
        while True:
            await greedy.say(json.dumps(request))

    asking = asyncio.create_task(ask_on())
    await eventually(lambda: any(not reads(one) for one in gateway.door.connections))
    (full,) = (one for one in gateway.door.connections if not reads(one))
    assert full.transport.get_write_buffer_size() < 300_000
    await eventually(lambda: gateway.metrics.dropped[4508])
    asking.cancel()
    await table.players[0].ask("deck.draw")
    greedy.socket.transport.abort()
    await greedy.gone()


async def test_a_guest_that_fell_silent_is_let_go(open_gateway, arrive) -> None:
    gateway = await open_gateway(limits=replace(EAGER, keepalive=0.05, closing=0.1))
    speaking = await arrive(gateway)
    await speaking.ask("ping")
    silent = await slow_guest(gateway.port)
    await silent.ask("ping")
    silent.socket.transport.pause_reading()
    await eventually(lambda: gateway.metrics.dropped[4508])
    await eventually(lambda: len(gateway.door.connections) == 1)
    await speaking.ask("ping")
    silent.socket.transport.abort()
    await silent.gone()


async def test_who_never_answers_a_close_is_cut_off(open_gateway, arrive) -> None:
    gateway = await open_gateway(limits=replace(EAGER, closing=0.1))
    reader, writer = await shaken_hands(gateway.port)
    writer.write(b"\x82\x80\x00\x00\x00\x00")
    assert (await reader.readexactly(4))[2:] == (1003).to_bytes(2, "big")
    await eventually(lambda: not gateway.door.connections)
    writer.close()
