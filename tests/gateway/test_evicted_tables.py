"""A table that leaves memory while a client is about to watch it: every later event comes.

A subscription at an object that is not in memory would be answered and then silent: the next
request loads the table as another object, which alone the commits and the polls know.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dealer.gateway import Gateway
from dealer.service import Service
from dealer.service.reading import broadcasts as reading
from tests.gateway.conftest import Connect
from tests.gateway.rpc_client import eventually
from tests.gateway.tables import SeatedTable, seat_players
from tests.harness.service_keys import add_key, with_key

Watch = Callable[[], Awaitable[Any]]


async def evict_idle(service: Service) -> None:
    """Let every table leave memory that may."""
    bound, service.tables.bound = service.tables.bound, 0
    await service.tables.load_or_create(bytes(16))
    service.tables.bound = bound


async def away(service: Service, table: SeatedTable) -> None:
    """All leave the server, and no client is at the table."""
    for client in (table.host, *table.players):
        await client.close()
    live_table = service.tables.get(table.id)
    await eventually(lambda: live_table is None or live_table.idle())


async def evicting(
    service: Service, monkeypatch: pytest.MonkeyPatch, owner: object, name: str, watch: Watch
) -> None:
    """Watch, and evict what may be evicted once the method `name` of `owner` was awaited."""
    method = getattr(owner, name)

    async def slow(_: object, *given: Any) -> Any:
        found = await method(*given)
        await evict_idle(service)
        return found

    with monkeypatch.context() as patched:
        patched.setattr(type(owner), name, slow)
        await watch()


async def act(connect: Connect, table: SeatedTable) -> int:
    """The player comes back on a new connection, and does something; the version of that."""
    player = await connect()
    token = table.tokens[0]
    await player.call("table.resume", table=table.id, token=token, after=0)
    done = await player.call("table.note", text="here again", kind="chat")
    return int(done["version"])


async def test_a_service_that_is_looked_up(
    service: Service, gateway: Gateway, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = await seat_players(connect, gateway, players=1)
    await away(service, table)
    watching = await connect(**with_key(await add_key(service)))

    async def watch() -> None:
        await watching.call("table.watch", table=table.id)

    await evicting(service, monkeypatch, service.service_tables, "authority", watch)
    await watching.until_version(await act(connect, table))


async def test_a_viewer_whose_link_is_looked_up(
    service: Service, gateway: Gateway, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "TICK_SECONDS", 0.01)
    table = await seat_players(connect, gateway, players=1, broadcast=0)
    link = (await table.host.call("broadcast.link"))["link"]
    await away(service, table)
    watching = await connect()

    async def watch() -> None:
        await watching.call("table.watch", table=table.id, link=link)

    await evicting(service, monkeypatch, service.broadcasts, "_valid", watch)
    showing = asyncio.create_task(service.broadcasts.run())
    await watching.until_version(await act(connect, table))
    showing.cancel()


@pytest.mark.parametrize("named", [True, False])
async def test_a_player_who_was_removed_and_comes_back_to_a_private_table(
    service: Service, gateway: Gateway, connect: Connect, named: bool
) -> None:
    """Whose seat is gone there gets nothing more, and does not keep the table in memory."""
    table = await seat_players(connect, gateway, players=2, watch="nobody")
    removed = table.players.pop()
    await table.host.call("seat.vacate", seat=2)
    await away(service, table)
    await evict_idle(service)
    assert service.tables.get(table.id) is None
    back = {"table": table.id} if named else {}
    await removed.call("table.join", name="again", **back)
    await removed.until_version(await act(connect, table))
