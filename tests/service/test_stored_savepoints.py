"""Tables loaded from stored savepoints: the same as from their first event, or not used at all."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dealer.errors import DatabaseDamaged
from dealer.eventlog import EventRecord, savepoints
from dealer.eventlog.protocols import Connection
from dealer.eventlog.rows import leaf_of
from dealer.game.commands import (
    Actor,
    CloseRound,
    Draw,
    OpenRound,
    StartShuffle,
    TakeSeat,
)
from dealer.proof.tree import leaf_hash
from dealer.service import Service
from dealer.service.tables import loading, stored_savepoints
from dealer.service.tables.execution import IdempotencyKey
from tests.service.bare_service import bare_service
from tests.service.conftest import OpenService
from tests.service.savepoints import (
    CODES,
    described,
    load_whole,
    loaded_both_ways,
    long_table,
    settled,
    signed_size,
)
from tests.service.tables import HOST

pytestmark = pytest.mark.usefixtures("often")


async def test_a_command_from_before_the_savepoint_is_known(
    service: Service, open_service: OpenService
) -> None:
    live_table, _ = await service.open_table({"preset": "shared"})
    await service.execute(live_table, TakeSeat("Ada"))
    await service.execute(live_table, OpenRound(HOST, CODES, "house", 10_000, 10_000))
    await service.execute(live_table, StartShuffle(HOST))
    key = IdempotencyKey("seat 1", "an old command")
    draw = Draw(Actor(seat=1))
    first = await service.execute(live_table, draw, key=key)
    await service.execute(live_table, CloseRound(HOST))
    await settled(service)
    other = await open_service()
    again = await other.lifecycle.load(live_table.table_id)
    assert other.savepoints.used == 1
    assert again.stored_upto > first.version
    assert await other.execute(again, draw, key=key) == first
    assert again.committed == live_table.committed


async def put(service: Service, table: bytes, saved: savepoints.SavedTable) -> None:
    work = partial(savepoints.put, keys=service.keys, table=table, saved=saved, nonce=bytes(12))
    await service.log.run_when_idle(work)


async def execute(service: Service, sql: str) -> None:
    def work(connection: Connection) -> None:
        connection.exec_driver_sql(sql)

    await service.log.run_in_transaction(work)


def swap_savepoints(connection: Connection) -> None:
    """Exchange the savepoints of two tables."""
    columns = "version, format, code, sealed"
    select = f"SELECT stream, {columns} FROM table_savepoint"
    (one, *first), (other, *second) = connection.exec_driver_sql(select)
    connection.exec_driver_sql("DELETE FROM table_savepoint")
    insert = f"INSERT INTO table_savepoint (stream, {columns}) VALUES (?, ?, ?, ?, ?)"
    connection.exec_driver_sql(insert, (other, *first))
    connection.exec_driver_sql(insert, (one, *second))


FORGED: dict[str, dict[str, Any]] = {
    "another tree": {"edge": "other"},
    "a wrong leaf": {"leaf": bytes(32)},
    "a tree of another size": {"edge": []},
    "a state that is none": {"state": b"\xc0"},
    "the secret of another round": {"wrapped": bytes(92)},
}


@pytest.mark.parametrize("what", FORGED)
async def test_a_savepoint_that_the_log_does_not_confirm_is_not_used(
    service: Service, what: str
) -> None:
    live_table = await long_table(service)
    saved = await savepoints.read(service.log, service.keys, live_table.id)
    assert saved is not None
    assert saved.version < await signed_size(service, live_table)
    changed = dict(FORGED[what])
    if changed.get("edge") == "other":
        changed["edge"] = [bytes(32)] * len(saved.edge)
    await put(service, live_table.id, saved._replace(**changed))
    loaded = await service.loader.load(live_table.id)
    assert described(loaded) == described(await load_whole(service, live_table.id))
    assert (service.savepoints.used, service.savepoints.refused) == (0, 1)


async def test_the_savepoint_of_another_table_is_not_used(service: Service) -> None:
    one, other = await long_table(service), await long_table(service)
    await service.log.run_in_transaction(swap_savepoints)
    for each in (one, other):
        loaded = await service.loader.load(each.id)
        assert loaded.table == each.table
    assert (service.savepoints.used, service.savepoints.refused) == (0, 2)


async def test_a_savepoint_beyond_the_newest_checkpoint_is_not_used(service: Service) -> None:
    """Nothing that is signed says that its events are those in the log."""
    live_table = await long_table(service)
    await service.execute(live_table, Draw(Actor(seat=1)))
    newest = live_table._new_savepoint()
    assert newest.version > await signed_size(service, live_table)
    await put(service, live_table.id, newest.saved())
    loaded = await service.loader.load(live_table.id)
    assert loaded.table == live_table.table
    assert (service.savepoints.used, service.savepoints.refused) == (0, 0)


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_the_savepoint_of_a_log_that_was_rewound_is_not_used(
    open_service: OpenService, url: str
) -> None:
    """The older copy goes on differently, past the version of a savepoint from before."""
    file = Path(url.removeprefix("sqlite:///"))
    copy = file.with_name("copy.db")
    service = await open_service()
    live_table = await long_table(service)
    with closing(sqlite3.connect(file)) as raw, closing(sqlite3.connect(copy)) as made:
        raw.backup(made)
    older = live_table.committed
    for _ in range(2):
        await service.execute(live_table, Draw(Actor(seat=1)))
    await service.execute(live_table, CloseRound(HOST))
    await settled(service)
    before = await savepoints.read(service.log, service.keys, live_table.id)
    assert before is not None
    assert before.version > older

    async with bare_service(f"sqlite:///{copy}", key=file.with_name("house.key")) as restored:
        rewound = await restored.lifecycle.load(live_table.table_id)
        assert rewound.committed == older
        await put(restored, live_table.id, before)
        assert (await restored.loader.load(live_table.id)).committed == older  # beyond the log
        for _ in range(3):
            await restored.execute(rewound, Draw(Actor(seat=1)))
        await restored.execute(rewound, CloseRound(HOST))
        await settled(restored)
        await put(restored, live_table.id, before)
        refused = restored.savepoints.refused
        loaded = await restored.loader.load(live_table.id)
        assert loaded.table == rewound.table
        assert restored.savepoints.refused == refused + 1
        # With a forged leaf the root still differs.
        (row,) = await restored.log.read(live_table.id, after=before.version - 1, limit=1)
        leaf = leaf_hash(leaf_of(live_table.id, row).encode())
        await put(restored, live_table.id, before._replace(leaf=leaf))
        loaded = await restored.loader.load(live_table.id)
        assert loaded.table == rewound.table
        assert restored.savepoints.refused == refused + 2


async def test_altered_events_after_a_savepoint_are_found(service: Service, url: str) -> None:
    live_table = await long_table(service)
    signed = await signed_size(service, live_table)
    assert live_table.stored_upto < signed
    forbidden = "DROP TRIGGER event_no_update" if url.startswith("sqlite") else ""
    triggers = await service.log.fetch(
        "SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'event'"
        if forbidden
        else "SELECT tgname FROM pg_trigger WHERE tgrelid = 'event'::regclass AND NOT tgisinternal"
    )
    for (name,) in triggers:
        await execute(service, f"DROP TRIGGER {name}{'' if forbidden else ' ON event'}")
    await execute(service, f"UPDATE event SET at = at + 1 WHERE version = {signed}")
    with pytest.raises(DatabaseDamaged, match="not those that the house signed"):
        await service.loader.load(live_table.id)
    assert service.savepoints.refused == 1


async def test_without_savepoints_nothing_but_the_time_differs(service: Service) -> None:
    live_table = await long_table(service)
    await execute(service, "DELETE FROM table_savepoint")
    loaded = await service.loader.load(live_table.id)
    assert loaded.table == live_table.table
    assert (service.savepoints.used, service.savepoints.refused) == (0, 0)


async def test_a_whole_load_stores_a_savepoint(service: Service, open_service: OpenService) -> None:
    live_table = await long_table(service)
    await execute(service, "DELETE FROM table_savepoint")
    other = await open_service()
    await other.lifecycle.load(live_table.table_id)
    await settled(other)
    saved = await savepoints.read(other.log, other.keys, live_table.id)
    assert saved is not None
    assert saved.version == await signed_size(other, live_table)
    short, whole = await loaded_both_ways(other, live_table.id)
    assert described(short) == described(whole)


async def test_a_state_that_is_too_large_is_not_stored(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored_savepoints, "BYTES", 100)
    live_table = await long_table(service)
    assert live_table.due is None
    assert await service.log.fetch("SELECT count(*) FROM table_savepoint") == [(0,)]


async def test_a_load_gives_way_to_other_tables(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A load of 10^6 events takes seconds; a player of another table waits for a slice of it."""
    live_table = await long_table(service)
    await execute(service, "DELETE FROM table_savepoint")
    monkeypatch.setattr(loading, "SLICE", 4)
    reading, largest = service.log.read, 0

    async def read(table: bytes, **options: Any) -> list[EventRecord]:
        nonlocal largest
        rows = await reading(table, **options)
        largest = max(largest, len(rows))
        return rows

    monkeypatch.setattr(service.log, "read", read)
    await service.loader.load(live_table.id)
    assert largest == 4
