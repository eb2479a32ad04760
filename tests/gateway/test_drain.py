"""Closing time: everybody is told, what is under way is finished, nobody is left hanging."""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from dataclasses import replace

import pytest
from websockets.exceptions import InvalidStatus

from dealer.errors import SetupError
from dealer.gateway import Gateway, serve
from tests.gateway.conftest import EAGER
from tests.gateway.guest import Refusal, eventually
from tests.gateway.tables import promise, reveal, seat_all, shuffled


async def test_everybody_is_told_when_to_come_back(gateway, arrive) -> None:
    table = await shuffled(arrive, gateway, players=3)
    guests, port = [table.host, *table.players], gateway.port
    await gateway.drain()
    for guest in guests:
        assert await guest.gone() == 1012
    times = [notice["reconnect_in_ms"] for g in guests for notice in g.notices("session.drain")]
    assert len(set(times)) == len(guests)
    assert all(1000 <= time <= 6000 for time in times)
    with pytest.raises(OSError, match="Connect call failed"):
        await asyncio.open_connection("127.0.0.1", port)
    with pytest.raises(SetupError, match="not open"):
        _ = gateway.port


async def test_what_is_under_way_is_finished(gateway, arrive, monkeypatch) -> None:
    table = await shuffled(arrive, gateway, players=2)
    service = gateway.floor.service
    perform, waiting = service.perform, []

    def held_up(*given, **named) -> None:
        waiting.append(lambda: perform(*given, **named))

    monkeypatch.setattr(service, "perform", held_up)
    drawing = [guest.send("deck.draw", cmd="last") for guest in table.players]
    await eventually(lambda: len(waiting) == 2)
    draining = asyncio.create_task(gateway.drain())
    await eventually(lambda: gateway.floor.draining)
    for go_on in waiting:
        go_on()
    drawn = await asyncio.gather(*drawing)
    await draining
    resident = await service.load(table.id)
    assert resident.committed == max(answer["version"] for answer in drawn)
    assert gateway.floor.in_flight == 0


async def test_a_page_that_is_never_answered_is_not_waited_for(open_gateway, monkeypatch) -> None:
    gateway = await open_gateway(limits=replace(EAGER, drain=1.6, closing=0.3))
    asked = asyncio.Event()

    async def never(*_) -> None:
        asked.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(gateway._pages, "answer", never)
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
    await asked.wait()
    async with asyncio.timeout(20):
        await gateway.drain()
    with suppress(ConnectionResetError):
        assert await reader.read() == b""
    writer.close()


async def test_what_cannot_be_finished_is_not_waited_for(open_gateway, arrive) -> None:
    gateway = await open_gateway(limits=replace(EAGER, drain=1.6, closing=0.3))
    table = await seat_all(arrive, gateway, players=1)
    await table.host.ask("round.open")
    await promise(table)
    drawing = table.players[0].send("deck.draw", from_="random")
    await eventually(lambda: gateway.floor.in_flight)
    draining = asyncio.create_task(gateway.drain())
    await eventually(lambda: gateway.floor.draining)
    with pytest.raises(Refusal) as caught:
        await reveal(table)
    assert caught.value.reason == "unavailable"
    await draining
    assert await table.players[0].gone() == 1012
    with pytest.raises(asyncio.CancelledError):
        await drawing


async def test_nobody_new_comes_in(open_gateway, arrive) -> None:
    gateway = await open_gateway(limits=replace(EAGER, drain=1.6, closing=0.3))
    reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
    await eventually(lambda: gateway.door.connections)
    gateway.floor.draining = True
    with pytest.raises(InvalidStatus) as caught:
        await arrive(gateway)
    assert caught.value.response.status_code == 503
    gateway.floor.draining = False
    await gateway.drain()
    assert await reader.read() == b""
    writer.close()


async def test_a_port_in_use_is_said_so(service) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SetupError, match=f"Port {port} of 127.0.0.1 is in use"):
            await Gateway(service, port=port).start()
        with pytest.raises(SetupError, match=f"Port {port}"):
            await Gateway(service, port=0, ops_port=port).start()
    with pytest.raises(SetupError, match="cannot be opened"):
        await Gateway(service, host="no such host", port=0).start()


async def test_a_drained_gateway_leaves_nothing_behind(service) -> None:
    before = asyncio.all_tasks()
    async with serve(service, port=0, ops_port=0, limits=EAGER) as gateway:
        assert gateway.port != gateway.ops_port
    assert asyncio.all_tasks() == before
