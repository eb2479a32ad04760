"""Log on SQLite: triggers, a full disk, other processes, readers, and unusable files."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from dealer.errors import (
    ConfigurationError,
    DatabaseDamaged,
    DatabaseError,
    DatabaseFull,
    DatabaseLocked,
    DatabaseReadOnly,
    OutcomeUnknown,
    Unavailable,
)
from dealer.eventlog import Appended, Conflict, Duplicate, Log
from dealer.eventlog.backends import migrate_database, open_readonly
from dealer.eventlog.db_errors import translate
from dealer.eventlog.protocols import Connection
from dealer.eventlog.sqlite import store as sqlite
from tests.eventlog.conftest import TemporarySqlite
from tests.eventlog.requests import A, B, C, append, line_of, other_process
from tests.harness.statements import watch_direct


@pytest.fixture
def database(sqlite_file: TemporarySqlite) -> TemporarySqlite:
    return sqlite_file


@pytest.mark.parametrize("replace", [False, True])
@pytest.mark.parametrize(
    "change",
    [
        "UPDATE event SET public = 'forged'",
        "UPDATE event SET hidden = NULL WHERE version = 1",
        "DELETE FROM event WHERE version = 2",
    ],
)
async def test_an_event_is_never_changed_or_deleted(
    database: TemporarySqlite, change: str, replace: bool
) -> None:
    async with await database.open() as log:
        await log.append(append(A, 0, "1", "2"))
        before = await log.read(A)
        with database.connect() as connection, pytest.raises(sqlite3.IntegrityError, match="never"):
            connection.execute(change.replace("UPDATE", "UPDATE OR REPLACE") if replace else change)
        connection.close()
        assert await log.read(A) == before


async def test_the_writer_cannot_replace_an_event(database: TemporarySqlite) -> None:
    async with await database.open() as log:
        await log.append(append(A, 0, "1"))

        def replace(connection: Connection) -> bool:
            connection.exec_driver_sql(
                "INSERT OR REPLACE INTO event SELECT id, stream, version, type, schema,"
                " at, 'forged', commitment, hidden, command, digest FROM event"
            )
            return False

        with pytest.raises(DatabaseError):
            await log.run_when_idle(replace)
        assert [each.public for each in await log.read(A)] == ["1"]


async def test_a_full_disk_leaves_no_part_of_the_batch_and_the_next_one_is_written(
    database: TemporarySqlite,
) -> None:
    async def at_most(log: Log, pages: int) -> None:
        await log.run_when_idle(
            lambda connection: bool(
                connection.exec_driver_sql(f"PRAGMA max_page_count={pages}").scalar() is None
            )
        )

    async with await database.open() as log:
        await log.append(append(A, 0, "1"))
        await at_most(log, 1)  # SQLite uses the present size of the file instead
        answers = await asyncio.gather(
            log.append(append(A, 1, "2")),
            log.append(append(B, 0, "1")),
            log.append(append(A, 2, *["long " * 1000] * 50)),
            return_exceptions=True,
        )
        assert [type(answer) for answer in answers] == [DatabaseFull] * 3
        assert "free some space" in str(answers[0])
        assert [await log.head(table) for table in (A, B)] == [1, None]
        await at_most(log, 1_000_000)
        assert await log.append(append(A, 1, "2")) == Appended(2)
        assert await log.append(append(B, 0, "1")) == Appended(1)


@pytest.fixture
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A disk with room for so many KiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", f"size={request.param}k", "tmpfs", disk)
    if subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("this user may not mount a file system")
    yield disk
    subprocess.run(("umount", disk), check=True)


@pytest.mark.parametrize("disk", [4, 10, 100, 350], indirect=True)
async def test_a_start_on_a_full_disk_says_that_it_is_full(disk: Path) -> None:
    """Without room for a page, for the shared memory, for the schema, or for the WAL's zeros."""
    with pytest.raises(DatabaseFull, match="is full, and nothing was written; free some space"):
        await Log.open(f"sqlite:///{disk}/dealer.db")


async def test_an_error_at_the_commit_leaves_no_part_of_the_batch(
    database: TemporarySqlite, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await database.open() as log:
        await log.append(append(A, 0, "1"))

        def fail_at_commit(statement: str) -> None:
            if statement == "COMMIT":
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
                raise error

        watch_direct("before", fail_at_commit, patch=monkeypatch.setattr)
        requests = [append(A, 1, "2", command="x"), append(B, 0, "1")]
        answers = await asyncio.gather(*map(log.append, requests), return_exceptions=True)
        assert [type(answer) for answer in answers] == [OutcomeUnknown] * 2
        assert "command id" in str(answers[0])
        monkeypatch.undo()
        assert [await log.head(table) for table in (A, B)] == [1, None]
        # C gets the number that B would have had; an append of B's broken chain must not use it.
        assert await log.append(append(C, 0, "1")) == Appended(1)
        assert await log.append(append(B, 1, "2")) == Conflict(0)
        assert await log.append(append(A, 1, "2", command="x")) == Appended(2)
        assert await log.append(append(A, 1, "2", command="x")) == Duplicate(2, b"digest of x")
        assert await log.append(append(B, 0, "1")) == Appended(1)


@pytest.mark.slow
async def test_an_append_waits_for_a_process_that_has_locked_the_file(
    database: TemporarySqlite,
) -> None:
    async with await database.open() as log:
        holder = other_process("hold", str(database.file))
        assert await line_of(holder) == "held\n"
        waiting = log.append(append(A, 0))
        # The file is locked, so it cannot be done; readers do not wait for writers.
        assert await log.head(A) is None
        assert not waiting.done()
        await asyncio.to_thread(holder.communicate, "release\n")
        assert await waiting == Appended(1)


async def test_an_append_fails_if_the_file_stays_locked(database: TemporarySqlite) -> None:
    async with await database.open(busy_seconds=0.05) as log:
        holder = database.connect()
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseLocked, match="Another program holds") as raised:
            await log.append(append(A, 0))
        assert database.file.name in str(raised.value)
        with pytest.raises(DatabaseLocked):
            await log.run_when_idle(lambda _: False)
        with pytest.raises(DatabaseLocked):
            await database.open(busy_seconds=0.05)
        holder.execute("ROLLBACK")
        holder.close()
        assert await log.append(append(A, 0)) == Appended(1)


async def test_a_long_reader_sees_one_state_while_the_log_grows(
    database: TemporarySqlite,
) -> None:
    async with await database.open(wal_pages=20) as log:
        await log.append(append(A, 0, "first"))
        reader = database.connect()
        reader.execute("BEGIN")
        count = "SELECT count(*) FROM event"
        assert reader.execute(count).fetchone() == (1,)
        for number in range(1, 60):
            await log.append(append(A, number, "x" * 4000))
        grown = database.wal_size()
        assert grown > 60 * 4096, "the WAL was restarted under a reader"
        assert reader.execute(count).fetchone() == (1,)
        assert await log.head(A) == 60
        reader.execute("COMMIT")
        reader.close()
        # The thread that checkpoints may get its turn late: the loop appends until it did.
        salts, number = database.wal_salts(), 60
        while database.wal_salts() == salts:
            assert number < 5000, "the WAL was not restarted after the reader"
            await log.append(append(A, number, "x" * 4000))
            number += 1
        assert [each.version for each in await log.read(A)] == list(range(1, number + 1))


async def test_closing_a_log_ends_the_reads_of_cancelled_callers(
    database: TemporarySqlite, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A read that is cancelled more than once leaves no task that never ends."""
    count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)"
    log = await database.open()
    started = asyncio.Event()
    watch_direct("before", lambda sql: started.set(), patch=monkeypatch.setattr)
    reading = asyncio.create_task(log._fetch(f"{count} SELECT count(*) FROM n"))
    await started.wait()
    for _ in range(3):
        reading.cancel()
        await asyncio.sleep(0)
    await log.close()
    assert reading.cancelled()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    if left:
        await asyncio.wait(left, timeout=2)  # so that these tasks do not keep the loop open
    assert not left
    with pytest.raises(Unavailable):
        await log.head(A)


async def test_the_wal_is_preallocated_once(database: TemporarySqlite) -> None:
    async with await database.open(wal_pages=64) as log:
        size = database.wal_size()
        assert size >= 64 * 4096
        await asyncio.gather(*(log.append(append(table, 0)) for table in (A, B, C)))
        assert database.wal_size() == size
        async with await database.open(wal_pages=64) as second:
            assert await second.append(append(A, 1)) == Appended(2)
        assert database.wal_size() == size
        assert await log.append(append(A, 2)) == Appended(3)
        assert [each.version for each in await log.read(A)] == [1, 2, 3]


async def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    file = tmp_path / "photo.jpg"
    file.write_bytes(b"no database at all " * 500)
    with pytest.raises(DatabaseDamaged, match=r"photo\.jpg"):
        await Log.open(f"sqlite:///{file}")


async def test_a_damaged_page_is_an_error(database: TemporarySqlite) -> None:
    async with await database.open() as log:
        await log.append(append(A, 0, *["x" * 3000] * 20))
    raw = bytearray(database.file.read_bytes())
    for page in range(1, len(raw) // 4096):
        raw[page * 4096 : page * 4096 + 100] = b"\xff" * 100
    database.file.write_bytes(raw)
    with pytest.raises(DatabaseDamaged, match="backup"):
        async with await database.open() as log:
            await log.append(append(A, 20))


async def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(DatabaseReadOnly, match="folder must exist"):
        await Log.open(f"sqlite:///{tmp_path}/nowhere/log.db")


@pytest.mark.parametrize("url", ["", "mysql://localhost/x", "sqlite://", "sqlite:///:memory:"])
async def test_an_address_without_a_file_is_an_error(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"sqlite:///dealer\.db"):
        await Log.open(url)


@pytest.fixture
def world_readable(migrated: Path) -> Iterator[TemporarySqlite]:
    """A database in a folder that every user may enter, like all folders above it."""
    folder = Path(tempfile.mkdtemp())
    shutil.copy(migrated, folder / "log.db")
    yield TemporarySqlite(folder / "log.db")
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.slow
@pytest.mark.parametrize("folder_mode", [0o777, 0o555])
async def test_a_file_that_is_not_writable_is_an_error(
    world_readable: TemporarySqlite, folder_mode: int
) -> None:
    world_readable.file.chmod(0o444)
    world_readable.file.parent.chmod(folder_mode)
    process = other_process("open_without_rights", world_readable.url)
    output, _ = await asyncio.to_thread(process.communicate)
    assert output.startswith("DatabaseReadOnly: The database ")
    assert "writable for the user" in output


@pytest.mark.slow
async def test_a_user_without_write_permission_does_not_change_the_wal(
    world_readable: TemporarySqlite,
) -> None:
    async with await world_readable.open(wal_pages=10) as log:
        await log.append(append(A, 0))
        world_readable.file.parent.chmod(0o777)
        world_readable.file.chmod(0o444)
        for end in ("-wal", "-shm"):
            world_readable.file.with_name(world_readable.file.name + end).chmod(0o666)
        size = world_readable.wal_size()
        process = other_process("open_without_rights", world_readable.url)
        output, _ = await asyncio.to_thread(process.communicate)
        assert output.startswith("DatabaseReadOnly: ")
        assert world_readable.wal_size() == size
        assert await log.append(append(A, 1)) == Appended(2)


async def test_opening_waits_for_a_process_that_creates_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "new.db"
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")

    class ReleasingEvent:
        def wait(self, seconds: float) -> None:
            other.execute("ROLLBACK")

    monkeypatch.setattr(sqlite, "Event", ReleasingEvent)
    async with await Log.open(f"sqlite:///{file}", busy_seconds=0.05) as log:
        assert await log.append(append(A, 0)) == Appended(1)
    assert not other.in_transaction
    other.close()


async def test_a_folder_is_refused_as_a_database(tmp_path: Path) -> None:
    for opening in (Log.open, open_readonly, migrate_database):
        with pytest.raises(ConfigurationError, match=f"{tmp_path} is a folder"):
            await opening(f"sqlite:///{tmp_path}")


@pytest.mark.slow
async def test_two_processes_create_one_database(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    both = [other_process("open_once", url) for _ in range(2)]
    output = [(await asyncio.to_thread(process.communicate))[0] for process in both]
    assert output == ["opened\n"] * 2


def test_no_message_has_the_content_of_rows() -> None:
    cause = sqlite3.IntegrityError("UNIQUE constraint failed: event.public As Kd")
    cause.sqlite_errorcode = sqlite3.SQLITE_CONSTRAINT_UNIQUE
    output = str(translate(OperationalError("INSERT secret", ("As",), cause), name="log.db"))
    assert "As" not in output
    assert "INSERT" not in output


async def test_an_append_to_a_lost_table_is_not_written_to_a_new_one(
    database: TemporarySqlite,
) -> None:
    """The writer has cached its number, which the next new table may get."""
    async with await database.open() as log:
        await log.append(append(A, 0))
        for statement in (
            "DROP TRIGGER event_refuses_delete",
            "DELETE FROM event",
            "DELETE FROM stream",
        ):
            database.execute(statement)
        assert await log.append(append(A, 1)) == Conflict(0)
        assert await log.append(append(B, 0)) == Appended(1)
        assert await log.append(append(A, 1)) == Conflict(0)
        assert await log.heads([A, B]) == {B: 1}
