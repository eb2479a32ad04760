"""Savepoints of tables in the database: one for each table, sealed, and needed for nothing."""

from __future__ import annotations

import asyncio
import signal
from functools import partial

import pytest
from msgspec.structs import replace

from dealer.errors import DatabaseDamaged
from dealer.eventlog import Log, admin, savepoints
from dealer.eventlog.keys import HouseKeys
from dealer.eventlog.protocols import Connection
from dealer.eventlog.savepoints import SavedTable
from tests.eventlog.conftest import TemporaryDatabase
from tests.eventlog.requests import A, B, append, other_process, row

KEY, EARLIER = HouseKeys(b"k" * 32), HouseKeys(b"e" * 32)
NONCE = b"n" * 12


def saved(version: int, state: bytes = b"state") -> SavedTable:
    return SavedTable(version, b"l" * 32, [b"e" * 32], b"c1", b"wrapped", state)


async def put(log: Log, table: bytes, content: SavedTable, *, keys: HouseKeys = KEY) -> None:
    await log.run_when_idle(
        partial(savepoints.put, keys=keys, table=table, saved=content, nonce=NONCE)
    )


async def test_the_newest_savepoint_replaces_the_one_before(database: TemporaryDatabase) -> None:
    async with await database.open() as log:
        await log.append(append(A, 0, *"12345"))
        await log.append(append(B, 0, *"12345"))
        assert await savepoints.read(log, KEY, A) is None
        await put(log, A, saved(3))
        await put(log, B, saved(4))
        await put(log, A, saved(5, b"newer"))
        assert await savepoints.read(log, KEY, A) == saved(5, b"newer")
        assert await savepoints.read(log, KEY, B) == saved(4)
        assert await log.fetch("SELECT count(*) FROM table_savepoint") == [(2,)]
        # A log that was rewound to version 2 may have a newer savepoint, which is void.
        await put(log, A, saved(2))
        assert await savepoints.read(log, KEY, A) == saved(2)


async def test_no_savepoint_is_stored_of_missing_events(database: TemporaryDatabase) -> None:
    async with await database.open() as log:
        await log.append(append(A, 0))
        await put(log, A, saved(2))
        await put(log, B, saved(1))
        assert await log.fetch("SELECT count(*) FROM table_savepoint") == [(0,)]


async def test_the_savepoint_of_an_archived_table_is_deleted(database: TemporaryDatabase) -> None:
    def archive(connection: Connection) -> None:
        record = admin.Archived(2, b"r", b"k", "file", 1, b"h", 0, admin.notes_digest([]))
        admin.archive(
            connection, A, record, admin.JournalEntry(0, b"12345678", "test", "archive", "a")
        )

    async with await database.open() as log:
        closing = append(A, 0, "1", "2")
        closing.rows = [row(1), replace(row(2), type="TableClosed")]
        await log.append(closing)
        await log.append(append(B, 0, "1", "2"))
        await put(log, A, saved(2))
        await put(log, B, saved(2))
        await log.run_in_transaction(archive)
        while await log.run_in_transaction(
            lambda connection: admin.delete_archived_rows(connection, A, [])
        ):
            pass
        assert await savepoints.read(log, KEY, A) is None
        assert await savepoints.read(log, KEY, B) == saved(2)
        await put(log, A, saved(2))
        assert await savepoints.read(log, KEY, A) is None


async def test_a_savepoint_is_opened_with_an_earlier_key(database: TemporaryDatabase) -> None:
    async with await database.open() as log:
        await log.append(append(A, 0))
        await put(log, A, saved(1), keys=EARLIER)
        both = HouseKeys(b"k" * 32, earlier=[EARLIER])
        assert await savepoints.read(log, both, A) == saved(1)
        with pytest.raises(DatabaseDamaged, match="decrypted"):
            await savepoints.read(log, KEY, A)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE table_savepoint SET version = 2",
        "UPDATE table_savepoint SET sealed = {other}",
        "UPDATE table_savepoint SET sealed = {empty}",
    ],
)
async def test_an_altered_savepoint_is_damaged(database: TemporaryDatabase, change: str) -> None:
    async with await database.open() as log:
        await log.append(append(A, 0, *"123"))
        await log.append(append(B, 0, *"123"))
        await put(log, A, saved(3))
        await put(log, B, saved(3))
        other = "(SELECT b.sealed FROM table_savepoint b ORDER BY b.stream DESC LIMIT 1)"
        database.execute(change.format(other=other, empty="substr(sealed, 1, 20)"))
        found = []
        for table in (A, B):
            try:
                found.append(await savepoints.read(log, KEY, table))
            except DatabaseDamaged:
                found.append(None)
        assert None in found
        assert found.count(saved(3)) == ("other" in change)


@pytest.mark.parametrize("column", ["format = format + 1", "code = substr(sealed, 1, 8)"])
async def test_a_savepoint_of_other_code_is_ignored(
    database: TemporaryDatabase, column: str
) -> None:
    async with await database.open() as log:
        await log.append(append(A, 0))
        await put(log, A, saved(1))
        database.execute(f"UPDATE table_savepoint SET {column}")
        assert await savepoints.read(log, KEY, A) is None


@pytest.mark.slow
@pytest.mark.parametrize("database", ["sqlite", "sqlite_on_loop", "postgres"], indirect=True)
@pytest.mark.parametrize(("point", "kept"), [("before", None), ("after", saved(1))])
async def test_a_process_killed_at_a_savepoint_leaves_the_events(
    database: TemporaryDatabase, point: str, kept: SavedTable | None
) -> None:
    process = other_process(f"die_{point}_savepoint", database.url, database.commit, A.hex())
    await asyncio.to_thread(process.communicate)
    assert process.returncode == -signal.SIGKILL
    async with await database.open() as log:
        assert await log.head(A) == 1
        assert await savepoints.read(log, KEY, A) == kept
        await put(log, A, saved(1, b"again"))
        assert await savepoints.read(log, KEY, A) == saved(1, b"again")
