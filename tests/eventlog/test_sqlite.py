"""The traps of one SQLite file: who else holds it, how full the disk is, what the file is."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, event
from sqlalchemy.exc import OperationalError

from dealer.errors import (
    DatabaseDamaged,
    DatabaseError,
    DatabaseFull,
    DatabaseLocked,
    DatabaseReadOnly,
    OutcomeUnknown,
    SetupError,
    Unavailable,
)
from dealer.eventlog import Appended, Conflict, Known, Log, sqlite
from dealer.eventlog.faults import explain
from dealer.eventlog.look import look
from dealer.eventlog.upkeep import migrate_database
from tests.eventlog.asked import A, B, C, append, other_process
from tests.eventlog.conftest import SqliteHouse


@pytest.fixture
def place(file_place: SqliteHouse) -> SqliteHouse:
    return file_place


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
    place: SqliteHouse, change: str, replace: bool
) -> None:
    async with await place.open() as log:
        await log.append(append(A, 0, "1", "2"))
        before = await log.read(A)
        with place.outside() as database, pytest.raises(sqlite3.IntegrityError, match="never"):
            database.execute(change.replace("UPDATE", "UPDATE OR REPLACE") if replace else change)
        database.close()
        assert await log.read(A) == before


async def test_the_writer_itself_cannot_replace_an_event(place: SqliteHouse) -> None:
    async with await place.open() as log:
        await log.append(append(A, 0, "1"))

        def replace(connection: Connection) -> bool:
            connection.exec_driver_sql(
                "INSERT OR REPLACE INTO event SELECT id, stream, version, type, schema,"
                " at, 'forged', commitment, hidden, command, digest FROM event"
            )
            return False

        with pytest.raises(DatabaseError):
            await log.schedule(replace)
        assert [each.public for each in await log.read(A)] == ["1"]


async def test_a_full_disk_leaves_nothing_of_the_batch_and_the_next_one_works(
    place: SqliteHouse,
) -> None:
    async def at_most(log: Log, pages: int) -> None:
        await log.schedule(
            lambda connection: bool(
                connection.exec_driver_sql(f"PRAGMA max_page_count={pages}").scalar() is None
            )
        )

    async with await place.open() as log:
        await log.append(append(A, 0, "1"))
        await at_most(log, 1)  # SQLite takes the size that the file has
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


async def test_an_error_at_the_commit_leaves_nothing(
    place: SqliteHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with await place.open() as log:
        await log.append(append(A, 0, "1"))
        connection = log._writer._store._connection
        plain = connection.exec_driver_sql

        def failing(statement: str, *parameters: object) -> object:
            if statement == "COMMIT":
                cause = sqlite3.OperationalError("disk I/O error")
                cause.sqlite_errorcode = sqlite3.SQLITE_IOERR_FSYNC
                raise OperationalError(statement, None, cause)
            return plain(statement, *parameters)

        monkeypatch.setattr(connection, "exec_driver_sql", failing)
        wishes = [append(A, 1, "2", command="x"), append(B, 0, "1")]
        answers = await asyncio.gather(*map(log.append, wishes), return_exceptions=True)
        assert [type(answer) for answer in answers] == [OutcomeUnknown] * 2
        assert "command id" in str(answers[0])
        monkeypatch.undo()
        assert [await log.head(table) for table in (A, B)] == [1, None]
        # C takes the number that B would have had; a link of B's broken chain must not land there.
        assert await log.append(append(C, 0, "1")) == Appended(1)
        assert await log.append(append(B, 1, "2")) == Conflict(0)
        assert await log.append(append(A, 1, "2", command="x")) == Appended(2)
        assert await log.append(append(A, 1, "2", command="x")) == Known(2, b"digest of x")
        assert await log.append(append(B, 0, "1")) == Appended(1)


async def test_a_process_that_holds_the_file_is_waited_for(place: SqliteHouse) -> None:
    async with await place.open() as log:
        holder = other_process("hold", str(place.file))
        assert await asyncio.to_thread(holder.stdout.readline) == "held\n"
        waiting = log.append(append(A, 0))
        # It is held, so it cannot be done; and readers do not wait for writers.
        assert await log.head(A) is None
        assert not waiting.done()
        await asyncio.to_thread(holder.communicate, "let go\n")
        assert await waiting == Appended(1)


async def test_a_process_that_does_not_let_go_is_named(place: SqliteHouse) -> None:
    async with await place.open(busy_seconds=0.05) as log:
        holder = place.outside()
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(DatabaseLocked, match="Another program holds") as told:
            await log.append(append(A, 0))
        assert place.file.name in str(told.value)
        with pytest.raises(DatabaseLocked):
            await log.schedule(lambda _: False)
        with pytest.raises(DatabaseLocked):
            await place.open(busy_seconds=0.05)
        holder.execute("ROLLBACK")
        holder.close()
        assert await log.append(append(A, 0)) == Appended(1)


async def test_a_long_reader_sees_its_own_time_and_the_log_grows_on(place: SqliteHouse) -> None:
    async with await place.open(wal_pages=20) as log:
        await log.append(append(A, 0, "first"))
        reader = place.outside()
        reader.execute("BEGIN")
        count = "SELECT count(*) FROM event"
        assert reader.execute(count).fetchone() == (1,)
        for number in range(1, 60):
            await log.append(append(A, number, "x" * 4000))
        grown = place.wal_size()
        assert grown > 60 * 4096, "the log was tidied under a reader"
        assert reader.execute(count).fetchone() == (1,)
        assert await log.head(A) == 60
        reader.execute("COMMIT")
        reader.close()
        for number in range(60, 120):
            await log.append(append(A, number, "x" * 4000))
        assert place.wal_size() < 1.5 * grown, "the log was not tidied after the reader left"
        assert [each.version for each in await log.read(A)] == list(range(1, 121))


async def test_a_read_whose_asker_has_gone_is_over_before_the_log_is_closed(
    place: SqliteHouse,
) -> None:
    """A guest who hangs up is cancelled more than once; nothing may be left that waits for ever."""
    count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300000)"
    log = await place.open()
    begun = asyncio.Event()
    event.listen(log._readers.sync_engine, "before_cursor_execute", lambda *_: begun.set())
    asking = asyncio.create_task(log.fetch(f"{count} SELECT count(*) FROM n"))
    await begun.wait()
    for _ in range(3):
        asking.cancel()
        await asyncio.sleep(0)
    await log.close()
    assert asking.cancelled()
    left = asyncio.all_tasks() - {asyncio.current_task()}
    if left:
        await asyncio.wait(left, timeout=2)  # what is left may else keep the loop from closing
    assert not left
    with pytest.raises(Unavailable):
        await log.head(A)


async def test_the_write_ahead_log_is_grown_once_and_kept(place: SqliteHouse) -> None:
    async with await place.open(wal_pages=64) as log:
        size = place.wal_size()
        assert size >= 64 * 4096
        await asyncio.gather(*(log.append(append(table, 0)) for table in (A, B, C)))
        assert place.wal_size() == size
        async with await place.open(wal_pages=64) as second:
            assert await second.append(append(A, 1)) == Appended(2)
        assert place.wal_size() == size
        assert await log.append(append(A, 2)) == Appended(3)
        assert [each.version for each in await log.read(A)] == [1, 2, 3]


async def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    file = tmp_path / "photo.jpg"
    file.write_bytes(b"no database at all " * 500)
    with pytest.raises(DatabaseDamaged, match=r"photo\.jpg"):
        await Log.open(f"sqlite:///{file}")


async def test_a_damaged_page_is_told(place: SqliteHouse) -> None:
    async with await place.open() as log:
        await log.append(append(A, 0, *["x" * 3000] * 20))
    raw = bytearray(place.file.read_bytes())
    for page in range(1, len(raw) // 4096):
        raw[page * 4096 : page * 4096 + 100] = b"\xff" * 100
    place.file.write_bytes(raw)
    with pytest.raises(DatabaseDamaged, match="backup"):
        async with await place.open() as log:
            await log.append(append(A, 20))


async def test_a_folder_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(DatabaseReadOnly, match="folder must exist"):
        await Log.open(f"sqlite:///{tmp_path}/nowhere/log.db")


@pytest.mark.parametrize(
    "url", ["log.db", "mysql://localhost/x", "sqlite://", "sqlite:///:memory:"]
)
async def test_an_address_that_is_no_file_is_told(url: str) -> None:
    with pytest.raises(SetupError, match=r"sqlite:///dealer\.db"):
        await Log.open(url)


@pytest.fixture
def borrowed(migrated: Path) -> Iterator[SqliteHouse]:
    """A log where a user without rights can look, and nowhere above it is locked."""
    folder = Path(tempfile.mkdtemp())
    shutil.copy(migrated, folder / "log.db")
    yield SqliteHouse(folder / "log.db")
    folder.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize("folder_mode", [0o777, 0o555])
async def test_a_file_that_may_not_be_written_is_told(
    borrowed: SqliteHouse, folder_mode: int
) -> None:
    borrowed.file.chmod(0o444)
    borrowed.file.parent.chmod(folder_mode)
    process = other_process("open_without_rights", borrowed.url)
    said, _ = await asyncio.to_thread(process.communicate)
    assert said.startswith("DatabaseReadOnly: The database ")
    assert "writable for the user" in said


async def test_who_may_only_read_writes_nothing_beside_the_file(borrowed: SqliteHouse) -> None:
    async with await borrowed.open(wal_pages=10) as log:
        await log.append(append(A, 0))
        borrowed.file.parent.chmod(0o777)
        borrowed.file.chmod(0o444)
        for beside in ("-wal", "-shm"):
            borrowed.file.with_name(borrowed.file.name + beside).chmod(0o666)
        size = borrowed.wal_size()
        process = other_process("open_without_rights", borrowed.url)
        said, _ = await asyncio.to_thread(process.communicate)
        assert said.startswith("DatabaseReadOnly: ")
        assert borrowed.wal_size() == size
        assert await log.append(append(A, 1)) == Appended(2)


async def test_a_new_file_that_another_is_just_making_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "new.db"
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")

    class LetGo:
        def wait(self, seconds: float) -> None:
            other.execute("ROLLBACK")

    monkeypatch.setattr(sqlite, "Event", LetGo)
    async with await Log.open(f"sqlite:///{file}", busy_seconds=0.05) as log:
        assert await log.append(append(A, 0)) == Appended(1)
    assert not other.in_transaction
    other.close()


async def test_a_folder_is_no_database(tmp_path: Path) -> None:
    for opening in (Log.open, look, migrate_database):
        with pytest.raises(SetupError, match=f"{tmp_path} is a folder"):
            await opening(f"sqlite:///{tmp_path}")


async def test_two_processes_make_one_new_database(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'new.db'}"
    both = [other_process("open_once", url) for _ in range(2)]
    said = [(await asyncio.to_thread(process.communicate))[0] for process in both]
    assert said == ["opened\n"] * 2


def test_no_sentence_tells_what_was_in_the_rows() -> None:
    cause = sqlite3.IntegrityError("UNIQUE constraint failed: event.public As Kd")
    cause.sqlite_errorcode = sqlite3.SQLITE_CONSTRAINT_UNIQUE
    said = str(explain(OperationalError("INSERT secret", ("As",), cause), name="log.db"))
    assert "As" not in said
    assert "INSERT" not in said


async def test_a_table_that_a_restored_file_lacks_is_no_other_table(place: SqliteHouse) -> None:
    """The writer knows it by a number, which the next new table may get."""
    async with await place.open() as log:
        await log.append(append(A, 0))
        for statement in (
            "DROP TRIGGER event_refuses_delete",
            "DELETE FROM event",
            "DELETE FROM stream",
        ):
            place.ask(statement)
        assert await log.append(append(A, 1)) == Conflict(0)
        assert await log.append(append(B, 0)) == Appended(1)
        assert await log.append(append(A, 1)) == Conflict(0)
        assert await log.heads([A, B]) == {B: 1}
