"""The database file is deleted, replaced or overwritten while a log is open on it."""

from __future__ import annotations

import os
import secrets
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest

from dealer.errors import DatabaseReplaced
from dealer.eventlog import Append, EventRecord, Log
from dealer.eventlog.sqlite.store import SqliteStore
from tests.eventlog.conftest import TemporarySqlite


@pytest.fixture
def database(sqlite_file: TemporarySqlite) -> TemporarySqlite:
    return sqlite_file


def append(table: bytes, after: int, *, size: int = 2) -> Append:
    """An append of one event with this many bytes of JSON."""
    return Append(table, after, [EventRecord(after + 1, "NoteAdded", 1, 1, "{" + " " * size + "}")])


def back_up(file: Path, to: Path) -> Path:
    with closing(sqlite3.connect(file)) as live, closing(sqlite3.connect(to)) as copy:
        live.backup(copy)
    return to


def run_sql(database: TemporarySqlite, *statements: str) -> None:
    """Statements of another program; then the whole WAL is copied to the database file."""
    with closing(sqlite3.connect(database.file, isolation_level=None, timeout=20)) as connection:
        for sql in statements:
            connection.execute(sql).fetchall()
        # SQLite refuses a checkpoint beside another one without waiting for it, and the server's
        # own one, still writing, would mend the size of a file that a test overwrites.
        busy, pages, copied = 1, 0, 0
        while busy or copied < pages:
            (busy, pages, copied), *_ = connection.execute("PRAGMA wal_checkpoint(FULL)")


async def fill(log: Log, database: TemporarySqlite) -> None:
    """Append many pages, and copy them from the WAL to the database file."""
    for _ in range(40):
        await log.append(append(secrets.token_bytes(16), 0, size=9000))
    run_sql(database)
    log.check()


def delete(database: TemporarySqlite) -> None:
    database.file.unlink()


def move_away(database: TemporarySqlite) -> None:
    database.file.rename(database.file.with_name("elsewhere.db"))


def replace(database: TemporarySqlite) -> None:
    os.replace(back_up(database.file, database.file.with_name("copy.db")), database.file)


def overwrite(database: TemporarySqlite) -> None:
    shutil.copyfile(database.file.with_name("early.db"), database.file)


def delete_write_ahead_log(database: TemporarySqlite) -> None:
    Path(f"{database.file}-wal").unlink()


@pytest.mark.parametrize(
    "how", [delete, move_away, replace, overwrite, delete_write_ahead_log], ids=lambda f: f.__name__
)
async def test_nothing_is_acknowledged_after_the_file_was_replaced(
    database: TemporarySqlite, how: Callable[[TemporarySqlite], None]
) -> None:
    table = secrets.token_bytes(16)
    async with await database.open() as log:
        await log.append(append(table, 0))
        back_up(database.file, database.file.with_name("early.db"))
        await fill(log, database)
        how(database)
        names = sorted(file.name for file in database.file.parent.iterdir())
        for _ in range(2):
            with pytest.raises(DatabaseReplaced, match="while the server had it open"):
                await log.append(append(table, 1))
            with pytest.raises(DatabaseReplaced):
                await log.read(table)
            with pytest.raises(DatabaseReplaced):
                await log.put_metadata("ready", b"")
        assert sorted(file.name for file in database.file.parent.iterdir()) == names
    with pytest.raises(DatabaseReplaced):
        log.check()


async def test_a_reader_that_connects_later_creates_no_empty_database(
    database: TemporarySqlite,
) -> None:
    async with await database.open() as log:
        database.file.unlink()
        with pytest.raises(DatabaseReplaced, match="was deleted"):
            await log.head(secrets.token_bytes(16))
        assert not database.file.exists()


async def test_a_file_that_was_moved_away_and_back_is_not_trusted(
    database: TemporarySqlite,
) -> None:
    away = database.file.with_name("away.db")
    async with await database.open() as log:
        database.file.rename(away)
        with pytest.raises(DatabaseReplaced):
            log.check()
        away.rename(database.file)
        with pytest.raises(DatabaseReplaced):
            await log.append(append(secrets.token_bytes(16), 0))


async def test_closing_does_not_touch_the_replacing_file(database: TemporarySqlite) -> None:
    """SQLite deletes the write-ahead log with its last connection, by name."""
    table = secrets.token_bytes(16)
    log = await database.open()
    await log.append(append(table, 0))
    for file in database.file.parent.glob("log.db*"):
        file.rename(file.with_name(f"old-{file.name}"))
    back_up(database.file.with_name("old-log.db"), database.file)
    with closing(database.connect()) as other:
        other.execute("PRAGMA journal_mode=WAL")
        other.execute("INSERT INTO house VALUES ('kept', x'01')")
        before = {file: file.read_bytes() for file in database.file.parent.glob("log.db*")}
        assert len(before) == 3
        with pytest.raises(DatabaseReplaced):
            log.check()
        await log.close()
        assert {file: file.read_bytes() for file in database.file.parent.glob("log.db*")} == before
    assert database.execute("SELECT value FROM house WHERE name = 'kept'") == [(b"\x01",)]


async def test_acknowledged_events_can_be_rescued_from_the_deleted_files(
    database: TemporarySqlite,
) -> None:
    table = secrets.token_bytes(16)
    rescued = database.file.with_name("rescued.db")
    async with await database.open() as log:
        for version in range(2):
            await log.append(append(table, version))
        for file in database.file.parent.glob("log.db*"):
            file.unlink()
        with pytest.raises(DatabaseReplaced):
            await log.append(append(table, 2))
        for number in os.listdir("/proc/self/fd"):
            handle = f"/proc/self/fd/{number}"
            with suppress(FileNotFoundError):  # the descriptor of the folder
                name = os.readlink(handle)
                for end in ("", "-wal"):
                    if name == f"{database.file}{end} (deleted)":
                        shutil.copyfile(handle, f"{rescued}{end}")
    async with await TemporarySqlite(rescued).open() as log:
        assert [row.version for row in await log.read(table)] == [1, 2]


async def test_a_vacuum_does_not_change_the_identity(database: TemporarySqlite) -> None:
    async with await database.open() as log:
        await fill(log, database)
        size = database.file.stat().st_size
        run_sql(
            database,
            "DROP TRIGGER event_refuses_delete",
            "DELETE FROM event",
            "VACUUM",
        )
        assert database.file.stat().st_size < size / 2
        await log.require_file()
        await log.append(append(secrets.token_bytes(16), 0))


async def test_an_idle_log_notices_that_its_file_was_overwritten(database: TemporarySqlite) -> None:
    async with await database.open() as log:
        early = back_up(database.file, database.file.with_name("early.db"))
        await fill(log, database)
        shutil.copyfile(early, database.file)
        with pytest.raises(DatabaseReplaced, match="overwritten by a smaller one"):
            await log.require_file()


async def test_the_file_may_be_opened_by_a_symbolic_link(database: TemporarySqlite) -> None:
    link = database.file.with_name("link.db")
    link.symlink_to(database.file)
    async with await TemporarySqlite(link).open() as log:
        await log.append(append(secrets.token_bytes(16), 0))
        delete_write_ahead_log(database)
        with pytest.raises(DatabaseReplaced):
            log.check()


def mode(file: Path) -> int:
    return file.stat().st_mode & 0o777


async def test_a_new_database_is_accessible_to_its_owner_only(tmp_path: Path) -> None:
    database = TemporarySqlite(tmp_path / "dealer.db")
    async with await database.open() as log:
        await log.append(append(secrets.token_bytes(16), 0))
        files = [Path(f"{database.file}{end}") for end in ("", "-wal", "-shm")]
        assert [mode(file) for file in files] == [0o600] * 3


@pytest.mark.parametrize(("before", "after"), [(0o644, 0o600), (0o666, 0o600), (0o640, 0o640)])
async def test_an_existing_database_is_closed_to_others_and_not_to_its_group(
    database: TemporarySqlite, before: int, after: int
) -> None:
    database.file.chmod(before)
    async with await database.open() as log:
        await log.append(append(secrets.token_bytes(16), 0))
        assert mode(database.file) == mode(Path(f"{database.file}-wal")) == after


async def test_the_files_left_by_a_crash_are_closed_to_others(database: TemporarySqlite) -> None:
    wal = Path(f"{database.file}-wal")
    async with await database.open() as log:
        await log.append(append(secrets.token_bytes(16), 0))
        for file in (database.file, wal):
            file.chmod(0o644)
        async with await database.open():
            assert mode(database.file) == mode(wal) == 0o600


def test_no_checkpoint_writes_to_the_replacing_file(database: TemporarySqlite) -> None:
    """A checkpoint has a connection of its own, which is opened by name when the first is due."""
    store = SqliteStore(database.file, synchronous="NORMAL", busy_seconds=5, wal_pages=1)
    store.open()
    table = secrets.token_bytes(16)
    store.append([append(table, 0)])
    assert store._checkpoints.due()
    replace(database)
    before = database.file.read_bytes()
    store.maintain()
    assert database.file.read_bytes() == before
    assert store._connection is not None, "its connection to the deleted file is still open"
    store.close()
    assert database.file.read_bytes() == before
