"""Lobby: bounded for each network, cached, and shared by concurrent calls."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from dealer.errors import DatabaseUnavailable
from dealer.eventlog import admin
from dealer.eventlog.address import is_postgres
from dealer.game.commands import CloseRound, CloseTable, OpenRound, TakeSeat
from dealer.projector.models import MODELS
from dealer.projector.rebuild import Rebuild
from dealer.projector.runner import Projector
from dealer.service import Service
from dealer.service.reading import lobby
from dealer.service.reading.lobby import LISTED, Lobby, network_of
from dealer.service.reading.past_states import no_pause
from tests.service.tables import HOST

NAME = "🂡" * 64


async def listed(service: Service) -> list[dict[str, Any]]:
    """The lobby's list once the read models are up to date."""
    await service.log.run_when_idle(Projector().slice)
    service.lobby._stale_at = 0.0
    return await service.lobby.tables()


async def open_many(service: Service, address: str, count: int, **rules: Any) -> list[str]:
    opened = [service.open_table(rules, address=address) for _ in range(count)]
    return [live_table.table_id for live_table, _ in await asyncio.gather(*opened)]


async def test_concurrent_calls_share_one_query_a_second(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = [(await service.open_table({}))[0].table_id for _ in range(3)]
    await service.log.run_when_idle(Projector().slice)
    fetch, queries = service.log.fetch, 0

    async def counted(*arguments: Any) -> Any:
        nonlocal queries
        queries += 1
        return await fetch(*arguments)

    monkeypatch.setattr(service.log, "fetch", counted)
    lists = await asyncio.gather(*(service.lobby.tables() for _ in range(50)))
    assert queries == 1
    assert all({one["table"] for one in listed} == set(opened) for listed in lists)
    monkeypatch.setattr(lobby, "FRESH_SECONDS", 3600.0)
    service.lobby._stale_at = 0.0
    for _ in range(5):
        await service.lobby.tables()
    assert queries == 2


async def test_a_call_after_a_failure_queries_again() -> None:
    class UnreachableLog:
        async def fetch(self, *_: object) -> None:
            raise DatabaseUnavailable("unreachable")

    class NoOpeners:
        async def write(self) -> None: ...

    log: Any = UnreachableLog()
    openers: Any = NoOpeners()
    lobby = Lobby(log, openers)
    for _ in range(2):
        with pytest.raises(DatabaseUnavailable):
            await lobby.tables()


@pytest.mark.slow
async def test_one_network_cannot_fill_the_lobby_and_a_response_is_bounded(
    service: Service,
) -> None:
    mine = await open_many(service, "192.0.2.7", 3, name=NAME)
    await open_many(service, "2001:db8:1:2::1", 60, name=NAME)
    await open_many(service, "2001:db8:1:2:ffff::2", 60, name=NAME)
    unknown = await open_many(service, "", LISTED + 20, name=NAME)
    ids = [one["table"] for one in await listed(service)]
    assert len(ids) == LISTED
    assert set(ids) <= set(unknown)  # the newest; tables of unknown openers are not limited
    for table in unknown:
        live_table = await service.lifecycle.load(table)
        await service.execute(live_table, CloseTable(HOST))
    tables = await listed(service)
    ids = [one["table"] for one in tables]
    assert len(ids) == 3 + 5
    assert set(mine) < set(ids)
    assert len(json.dumps({"tables": tables}, ensure_ascii=False).encode()) * LISTED / 8 < 65_536


async def test_closed_tables_are_listed_by_the_same_rules(service: Service) -> None:
    public, hidden, private, still_open = [
        *await open_many(service, "192.0.2.7", 1),
        *await open_many(service, "192.0.2.7", 1, listed=False),
        *await open_many(service, "192.0.2.7", 1, watch="nobody"),
        *await open_many(service, "192.0.2.7", 1),
    ]
    for table in (public, hidden, private):
        await service.execute(await service.lifecycle.load(table), CloseTable(HOST))
    assert [one["table"] for one in await listed(service)] == [still_open]
    assert [one["table"] for one in await service.finished.tables()] == [public]
    for table in await open_many(service, "198.51.100.9", 8):
        await service.execute(await service.lifecycle.load(table), CloseTable(HOST))
    await service.log.run_when_idle(Projector().slice)
    service.finished._stale_at = 0.0
    assert len(await service.finished.tables()) == 1 + 5  # of one network


async def test_openers_are_known_at_other_nodes_and_after_a_restart(open_service, url) -> None:
    one = await open_service()
    await open_many(one, "192.0.2.7", 20)
    await one.openers.write()
    other = await open_service()
    assert len(await listed(other)) == 5
    await other.log.run_when_idle(Rebuild().slice)
    assert len(await listed(other)) == 5
    stored = {bytes(row[0]) for row in await other.log.fetch("SELECT digest FROM opener")}
    assert len(stored) == 1
    assert network_of("192.0.2.7") not in stored
    names = {name for (name,) in await other.log.fetch(_INDEXES[is_postgres(url)])}
    assert "ix_tables_opened_at" in names  # the rebuild has created it again


_INDEXES = {
    False: "SELECT name FROM sqlite_master WHERE type = 'index'",
    True: "SELECT CAST(indexname AS text) FROM pg_indexes",
}


async def test_an_archived_table_leaves_no_opener(service: Service) -> None:
    (table,) = await open_many(service, "192.0.2.7", 1)
    await listed(service)
    live_table = await service.lifecycle.load(table)
    await service.execute(live_table, CloseTable(HOST))
    notes = await service.log.checkpoints(live_table.id)
    digest = admin.notes_digest(notes)
    archived = admin.Archived(2, bytes(32), bytes(32), "f", 1, bytes(32), 0, digest)
    journal_entry = admin.JournalEntry(1, bytes(8), "who", "archive", table)
    await service.log.run_in_transaction(
        lambda connection: admin.archive(connection, live_table.id, archived, journal_entry)
    )
    models = [model.name for model in MODELS]
    while await service.log.run_in_transaction(
        lambda connection: admin.delete_archived_rows(connection, live_table.id, models)
    ):
        pass
    assert await service.log.fetch("SELECT * FROM opener") == []


async def test_private_tables_are_not_listed(service: Service) -> None:
    (private,) = await open_many(service, "192.0.2.7", 1, watch="nobody")
    (public,) = await open_many(service, "192.0.2.8", 1, note={"watch": "nobody"})
    await service.execute(await service.lifecycle.load(private), TakeSeat("a player"))
    assert [one["table"] for one in await listed(service)] == [public]


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


async def test_a_table_is_listed_unless_it_says_otherwise(service: Service) -> None:
    await open_many(service, "192.0.2.7", 1, listed=False)
    (shown,) = await open_many(service, "192.0.2.8", 1, listed=True)
    (nested,) = await open_many(service, "192.0.2.9", 1, x_note={"listed": False})
    assert {one["table"] for one in await listed(service)} == {shown, nested}


@pytest.mark.parametrize("shown", [True, False])
async def test_a_practice_table_is_called_so_and_listed_as_its_source(
    service: Service, shown: bool
) -> None:
    source, _ = await service.open_table({"name": "Ours", "listed": shown})
    await service.execute(source, OpenRound(HOST, ("As", "Ks"), "house", 100, 100))
    await service.execute(source, CloseRound(HOST))
    moment = await service.past_states.moment(source, 1, None)
    rules, round_ = await service.past_states.practice(source, 1, moment, pause=no_pause)
    table, _ = await service.open_table(rules, laid_out=round_)
    found = {one["table"]: one.get("practice") for one in await listed(service)}
    assert found == ({table.table_id: True, source.table_id: None} if shown else {})
