"""The database file is deleted, replaced or written over under a log that is open."""

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
from dealer.eventlog import Append, Log, Row
from dealer.eventlog.sqlite import SqliteStore
from tests.eventlog.conftest import SqliteHouse


@pytest.fixture
def place(file_place: SqliteHouse) -> SqliteHouse:
    return file_place


def append(table: bytes, after: int, *, size: int = 2) -> Append:
    return Append(table, after, [Row(after + 1, "NoteAdded", 1, 1, "{" + " " * size + "}")])


def back_up(file: Path, to: Path) -> Path:
    with closing(sqlite3.connect(file)) as live, closing(sqlite3.connect(to)) as made:
        live.backup(made)
    return to


def outside(place: SqliteHouse, *statements: str) -> None:
    """Statements of another program, which waits for the server's own checkpoints."""
    with closing(sqlite3.connect(place.file, isolation_level=None, timeout=20)) as database:
        for sql in statements:
            database.execute(sql).fetchall()


async def fill(log: Log, place: SqliteHouse) -> None:
    """Many pages, all of them in the database file itself."""
    for _ in range(40):
        await log.append(append(secrets.token_bytes(16), 0, size=9000))
    outside(place, "PRAGMA wal_checkpoint(FULL)")
    log.check()


def delete(place: SqliteHouse) -> None:
    place.file.unlink()


def move_away(place: SqliteHouse) -> None:
    place.file.rename(place.file.with_name("elsewhere.db"))


def replace(place: SqliteHouse) -> None:
    os.replace(back_up(place.file, place.file.with_name("copy.db")), place.file)


def overwrite(place: SqliteHouse) -> None:
    shutil.copyfile(place.file.with_name("early.db"), place.file)


def delete_write_ahead_log(place: SqliteHouse) -> None:
    Path(f"{place.file}-wal").unlink()


@pytest.mark.parametrize(
    "how", [delete, move_away, replace, overwrite, delete_write_ahead_log], ids=lambda f: f.__name__
)
async def test_nothing_is_acknowledged_once_the_file_is_another(
    place: SqliteHouse, how: Callable[[SqliteHouse], None]
) -> None:
    table = secrets.token_bytes(16)
    async with await place.open() as log:
        await log.append(append(table, 0))
        back_up(place.file, place.file.with_name("early.db"))
        await fill(log, place)
        how(place)
        there = sorted(file.name for file in place.file.parent.iterdir())
        for _ in range(2):
            with pytest.raises(DatabaseReplaced, match="while the server had it open"):
                await log.append(append(table, 1))
            with pytest.raises(DatabaseReplaced):
                await log.read(table)
            with pytest.raises(DatabaseReplaced):
                await log.put_house("ready", b"")
        assert sorted(file.name for file in place.file.parent.iterdir()) == there
    with pytest.raises(DatabaseReplaced):
        log.check()


async def test_a_reader_that_connects_later_makes_no_empty_database(place: SqliteHouse) -> None:
    async with await place.open() as log:
        place.file.unlink()
        with pytest.raises(DatabaseReplaced, match="was deleted"):
            await log.head(secrets.token_bytes(16))
        assert not place.file.exists()


async def test_a_file_that_comes_back_is_not_trusted(place: SqliteHouse) -> None:
    away = place.file.with_name("away.db")
    async with await place.open() as log:
        place.file.rename(away)
        with pytest.raises(DatabaseReplaced):
            log.check()
        away.rename(place.file)
        with pytest.raises(DatabaseReplaced):
            await log.append(append(secrets.token_bytes(16), 0))


async def test_closing_does_not_touch_the_file_that_took_the_place(place: SqliteHouse) -> None:
    """SQLite deletes the write-ahead log with its last connection, by name."""
    table = secrets.token_bytes(16)
    log = await place.open()
    await log.append(append(table, 0))
    for file in place.file.parent.glob("log.db*"):
        file.rename(file.with_name(f"old-{file.name}"))
    back_up(place.file.with_name("old-log.db"), place.file)
    with closing(place.outside()) as other:
        other.execute("PRAGMA journal_mode=WAL")
        other.execute("INSERT INTO house VALUES ('kept', x'01')")
        before = {file: file.read_bytes() for file in place.file.parent.glob("log.db*")}
        assert len(before) == 3
        with pytest.raises(DatabaseReplaced):
            log.check()
        await log.close()
        assert {file: file.read_bytes() for file in place.file.parent.glob("log.db*")} == before
    assert place.ask("SELECT value FROM house WHERE name = 'kept'") == [(b"\x01",)]


async def test_what_was_written_can_be_taken_out_of_the_deleted_files(place: SqliteHouse) -> None:
    table = secrets.token_bytes(16)
    rescued = place.file.with_name("rescued.db")
    async with await place.open() as log:
        for version in range(2):
            await log.append(append(table, version))
        for file in place.file.parent.glob("log.db*"):
            file.unlink()
        with pytest.raises(DatabaseReplaced):
            await log.append(append(table, 2))
        for number in os.listdir("/proc/self/fd"):
            handle = f"/proc/self/fd/{number}"
            with suppress(FileNotFoundError):  # that of the folder itself
                name = os.readlink(handle)
                for end in ("", "-wal"):
                    if name == f"{place.file}{end} (deleted)":
                        shutil.copyfile(handle, f"{rescued}{end}")
    async with await SqliteHouse(rescued).open() as log:
        assert [row.version for row in await log.read(table)] == [1, 2]


async def test_vacuum_is_no_other_file(place: SqliteHouse) -> None:
    async with await place.open() as log:
        await fill(log, place)
        size = place.file.stat().st_size
        outside(
            place,
            "DROP TRIGGER event_refuses_delete",
            "DELETE FROM event",
            "VACUUM",
            "PRAGMA wal_checkpoint(FULL)",
        )
        assert place.file.stat().st_size < size / 2
        await log.require_file()
        await log.append(append(secrets.token_bytes(16), 0))


async def test_an_idle_log_finds_that_it_was_written_over(place: SqliteHouse) -> None:
    async with await place.open() as log:
        early = back_up(place.file, place.file.with_name("early.db"))
        await fill(log, place)
        shutil.copyfile(early, place.file)
        with pytest.raises(DatabaseReplaced, match="overwritten by a smaller one"):
            await log.require_file()


async def test_a_link_may_name_the_file(place: SqliteHouse) -> None:
    link = place.file.with_name("link.db")
    link.symlink_to(place.file)
    async with await SqliteHouse(link).open() as log:
        await log.append(append(secrets.token_bytes(16), 0))
        delete_write_ahead_log(place)
        with pytest.raises(DatabaseReplaced):
            log.check()


def mode(file: Path) -> int:
    return file.stat().st_mode & 0o777


async def test_a_new_database_is_its_owners_alone(tmp_path: Path) -> None:
    house = SqliteHouse(tmp_path / "dealer.db")
    async with await house.open() as log:
        await log.append(append(secrets.token_bytes(16), 0))
        files = [Path(f"{house.file}{end}") for end in ("", "-wal", "-shm")]
        assert [mode(file) for file in files] == [0o600] * 3


@pytest.mark.parametrize(("before", "after"), [(0o644, 0o600), (0o666, 0o600), (0o640, 0o640)])
async def test_an_older_one_is_closed_to_all_others_but_not_to_its_group(
    place: SqliteHouse, before: int, after: int
) -> None:
    place.file.chmod(before)
    async with await place.open() as log:
        await log.append(append(secrets.token_bytes(16), 0))
        assert mode(place.file) == mode(Path(f"{place.file}-wal")) == after


async def test_the_files_that_a_crash_left_are_closed_to_others_too(place: SqliteHouse) -> None:
    wal = Path(f"{place.file}-wal")
    async with await place.open() as log:
        await log.append(append(secrets.token_bytes(16), 0))
        for file in (place.file, wal):
            file.chmod(0o644)
        async with await place.open():
            assert mode(place.file) == mode(wal) == 0o600


def test_no_checkpoint_reaches_the_file_that_took_the_place(place: SqliteHouse) -> None:
    """A checkpoint has a connection of its own, which is opened by name when the first is due."""
    store = SqliteStore(place.file, synchronous="NORMAL", busy_seconds=5, wal_pages=1)
    store.open()
    table = secrets.token_bytes(16)
    store.append([append(table, 0)])
    assert store._checkpoints.due()
    replace(place)
    before = place.file.read_bytes()
    store.maintain()
    assert place.file.read_bytes() == before
    assert store._connection is not None, "what is left of the deleted file is let go"
    store.close()
    assert place.file.read_bytes() == before
