"""The list of open tables: bounded for each network, cached, and asked for by many at once."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dealer.errors import DatabaseAway
from dealer.eventlog import office
from dealer.game.commands import Actor, CloseTable, TakeSeat
from dealer.projector.rebuild import Rebuild
from dealer.projector.runner import Projector
from dealer.projector.schema import MODELS
from dealer.service import Service, lobby
from dealer.service.lobby import LISTED, Lobby
from dealer.service.opener import network_of

HOST = Actor(host=True)
NAME = "🂡" * 64


async def listed(service: Service) -> list[dict[str, Any]]:
    """What the lobby says once all that was written is in the read models."""
    await service.log.schedule(Projector().slice)
    service.lobby._stale_at = 0.0
    return await service.lobby.tables()


async def open_many(service: Service, address: str, count: int, **rules: Any) -> list[str]:
    opened = [service.open_table(rules, address=address) for _ in range(count)]
    return [resident.table_id for resident, _ in await asyncio.gather(*opened)]


async def test_many_who_ask_are_one_question_a_second(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = [(await service.open_table({}))[0].table_id for _ in range(3)]
    await service.log.schedule(Projector().slice)
    fetch, asked = service.log.fetch, 0

    async def counted(*given: Any) -> Any:
        nonlocal asked
        asked += 1
        return await fetch(*given)

    monkeypatch.setattr(service.log, "fetch", counted)
    lists = await asyncio.gather(*(service.lobby.tables() for _ in range(50)))
    assert asked == 1
    assert all({one["table"] for one in listed} == set(opened) for listed in lists)
    monkeypatch.setattr(lobby, "FRESH_SECONDS", 3600.0)
    service.lobby._stale_at = 0.0
    for _ in range(5):
        await service.lobby.tables()
    assert asked == 2


async def test_who_asks_after_a_failure_asks_anew() -> None:
    class Away:
        async def fetch(self, *_: object) -> None:
            raise DatabaseAway("away")

    class Nothing:
        async def write(self) -> None: ...

    log: Any = Away()
    openers: Any = Nothing()
    lobby = Lobby(log, openers)
    for _ in range(2):
        with pytest.raises(DatabaseAway):
            await lobby.tables()


async def test_one_network_fills_no_lobby_and_an_answer_is_bounded(service: Service) -> None:
    mine = await open_many(service, "192.0.2.7", 3, name=NAME)
    await open_many(service, "2001:db8:1:2::1", 60, name=NAME)
    await open_many(service, "2001:db8:1:2:ffff::2", 60, name=NAME)
    unknown = await open_many(service, "", LISTED + 20, name=NAME)
    seen = [one["table"] for one in await listed(service)]
    assert len(seen) == LISTED
    assert set(seen) <= set(unknown)  # the newest; whose opener is not known is not counted
    for table in unknown:
        resident = await service.load(table)
        await service.call(resident, CloseTable(HOST))
    tables = await listed(service)
    seen = [one["table"] for one in tables]
    assert len(seen) == 3 + 5
    assert set(mine) < set(seen)
    assert len(json.dumps({"tables": tables}, ensure_ascii=False).encode()) * LISTED / 8 < 65_536


async def test_other_nodes_and_a_restart_know_who_opened_what(open_service) -> None:
    one = await open_service()
    await open_many(one, "192.0.2.7", 20)
    await one.openers.write()
    other = await open_service()
    assert len(await listed(other)) == 5
    await other.log.schedule(Rebuild().slice)
    assert len(await listed(other)) == 5
    stored = {bytes(row[0]) for row in await other.log.fetch("SELECT digest FROM opener")}
    assert len(stored) == 1
    assert network_of("192.0.2.7") not in stored
    names = {name for (name,) in await other.log.fetch(_INDEXES[other.log.server is None])}
    assert "ix_tables_opened_at" in names  # the rebuild has made it again


_INDEXES = {
    True: "SELECT name FROM sqlite_master WHERE type = 'index'",
    False: "SELECT CAST(indexname AS text) FROM pg_indexes",
}


async def test_an_archived_table_leaves_no_opener(service: Service) -> None:
    (table,) = await open_many(service, "192.0.2.7", 1)
    await listed(service)
    resident = await service.load(table)
    await service.call(resident, CloseTable(HOST))
    notes = await service.log.checkpoints(resident.id)
    kept = office.Archived(
        2, bytes(32), bytes(32), "f", 1, bytes(32), 0, office.notes_digest(notes)
    )
    deed = office.Deed(1, bytes(8), "who", "archive", table)
    await service.log.carry_out(
        lambda connection: office.archive(connection, resident.id, kept, deed)
    )
    models = [model.name for model in MODELS]
    while await service.log.carry_out(
        lambda connection: office.let_go(connection, resident.id, models)
    ):
        pass
    assert await service.log.fetch("SELECT * FROM opener") == []


async def test_tables_that_nobody_may_watch_are_not_listed(service: Service) -> None:
    (secret,) = await open_many(service, "192.0.2.7", 1, watch="nobody")
    (told,) = await open_many(service, "192.0.2.8", 1, note={"watch": "nobody"})
    await service.call(await service.load(secret), TakeSeat("a player"))
    assert [one["table"] for one in await listed(service)] == [told]


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("192.0.2.7", "192.0.2.7", True),
        ("192.0.2.7", "192.0.2.8", False),
        ("192.0.2.7", "::ffff:192.0.2.7", True),
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("fe80::1%eth0", "fe80::2", True),
        ("not an address", "another", False),
    ],
)
def test_a_network_is_an_ipv4_address_or_64_bits(one: str, other: str, same: bool) -> None:
    assert (network_of(one) == network_of(other)) == same
