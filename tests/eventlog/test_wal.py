"""The WAL is checkpointed when it is due, under the write lock, and beside no older release."""

from __future__ import annotations

import asyncio
import importlib
import os
import pkgutil
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import create_engine

from dealer.errors import DatabaseLocked
from dealer.eventlog import Appended, Log, migrate, sqlite
from dealer.eventlog.sqlite import SqliteStore
from dealer.eventlog.wal import WalCheckpoints, is_affected, library_version
from tests.eventlog.asked import A, B, append, other_process
from tests.eventlog.conftest import SqliteHouse
from tests.foreign.installed import missing
from tests.whole import walwatch

ROOT = Path(__file__).parents[2]
PAGES = 20
LONG = "x" * 4000


@pytest.fixture
def place(file_place: SqliteHouse) -> SqliteHouse:
    return file_place


@pytest.fixture
def store(place: SqliteHouse) -> Iterator[SqliteStore]:
    with closing(opened(place)) as store:
        yield store


def opened(place: SqliteHouse, *, busy_seconds: float = 5) -> SqliteStore:
    store = SqliteStore(
        place.file, synchronous="NORMAL", busy_seconds=busy_seconds, wal_pages=PAGES
    )
    store.open()
    return store


def frames(store: SqliteStore) -> int:
    """How many frames the WAL has; asking is a checkpoint, of a copy."""
    folder = store.file.parent / "copy"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for end in ("", "-wal"):
        shutil.copy(f"{store.file}{end}", folder / f"log.db{end}")
    with closing(sqlite3.connect(folder / "log.db", isolation_level=None)) as database:
        (_, found, _) = database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return int(found)


def write(store: SqliteStore, after: int, table: bytes = A) -> int:
    assert store.append([append(table, after, LONG)]) == [Appended(after + 1)]
    return after + 1


def test_a_checkpoint_is_due_at_the_frame_and_not_before(store: SqliteStore) -> None:
    checkpoints, version = store._checkpoints, 0
    while not checkpoints.due():
        assert frames(store) < PAGES
        version = write(store, version)
    assert frames(store) >= PAGES
    store.maintain()
    assert not checkpoints.due()
    write(store, version)
    assert frames(store) < PAGES, "the WAL was not restarted after a complete checkpoint"


def test_frames_of_another_process_count(place: SqliteHouse, store: SqliteStore) -> None:
    other = opened(place)
    version = write(store, 0)
    while not other._checkpoints.due():
        version = write(store, version)
    assert store._checkpoints.due()
    other.maintain()
    write(other, version)
    assert not store._checkpoints.due(), "a WAL that another process restarted counts from 0"
    other.close()


def test_no_connection_checkpoints_when_it_commits(
    place: SqliteHouse, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WalCheckpoints, "due", lambda _: False)
    store, version = opened(place), 0
    while frames(store) < 1100:  # SQLite's own limit is 1000
        rows = [append(A, version, *[LONG] * 100)]
        assert store.append(rows) == [Appended(version + 100)]
        version += 100
    before = place.file.stat().st_size
    write(store, version)
    assert place.file.stat().st_size == before
    store.close()


async def test_neither_do_readers(place: SqliteHouse) -> None:
    async with await place.open() as log:
        assert await log.fetch("PRAGMA wal_autocheckpoint") == [(0,)]


def test_a_checkpoint_that_finds_the_write_lock_taken_waits_for_the_next_commit(
    place: SqliteHouse,
) -> None:
    store, version = opened(place, busy_seconds=0.5), 0
    while not store._checkpoints.due():
        version = write(store, version)
    holder = place.outside()
    holder.execute("BEGIN IMMEDIATE")
    store.maintain()
    assert store._checkpoints.due()
    holder.execute("ROLLBACK")
    holder.close()
    connection = store._connection
    assert connection is not None
    assert connection.exec_driver_sql("PRAGMA busy_timeout").scalar() == 500
    store.maintain()
    assert not store._checkpoints.due()
    store.close()


def test_a_checkpoint_that_fails_is_logged_and_costs_no_event(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def failing() -> None:
        cause = sqlite3.OperationalError("disk I/O error")
        cause.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise cause

    version = 0
    with monkeypatch.context() as patch:
        patch.setattr(store._checkpoints, "_connect", failing)
        while not store._checkpoints.due():
            version = write(store, version)
        store.maintain()
        (record,) = caplog.records
        assert record.getMessage() == "WAL checkpoint failed"
        assert "failed to read or write" in record.told["says"]
        for _ in range(3):
            version = write(store, version)
            store.maintain()
        assert len(caplog.records) == 1, "it is not tried again at each commit"
    while not store._checkpoints.due():
        version = write(store, version)
    store.maintain()
    write(store, version)
    assert frames(store) < PAGES


def test_a_wal_that_a_reader_keeps_from_its_restart_is_named(
    place: SqliteHouse, store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    version, reader = write(store, 0), place.outside()
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM event").fetchall()
    for _ in range(12 * PAGES):
        version = write(store, version)
        store.maintain()
    reader.close()
    told = [record.told for record in caplog.records]
    assert {record.getMessage() for record in caplog.records} == {"the WAL is not restarted"}
    assert 2 <= len(told) <= 5
    assert told[0]["frames"] >= 8 * PAGES
    assert told[1]["frames"] >= 2 * told[0]["frames"]
    assert told[0]["copied"] < told[0]["frames"]
    for _ in range(PAGES):
        version = write(store, version)
        store.maintain()
    assert frames(store) < 2 * PAGES


async def test_two_processes_checkpoint_under_the_write_lock_alone(
    place: SqliteHouse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shown by the locks that they take, whether or not a race was met."""
    if shutil.which("gcc") is None:
        missing("gcc is not installed")
    trace = tmp_path / "trace"
    preload = walwatch.library(tmp_path)
    for name, value in walwatch.environment(preload, folder=tmp_path, trace=trace).items():
        monkeypatch.setenv(name, value)
    both = [other_process("compete", place.url, A.hex(), name, "150") for name in "xy"]
    monkeypatch.undo()
    for process in both:
        assert await asyncio.to_thread(process.stdout.readline) == "ready\n"
    for process in both:
        await asyncio.to_thread(process.communicate, "go\n")
        assert process.returncode == 0
    watch = walwatch.Watch(trace)
    watch.read()
    assert watch.faults == []
    assert watch.processes == 2
    assert watch.checkpoints > 5
    assert watch.restarts > 5


def test_the_trace_names_a_checkpoint_outside_of_the_write_lock(tmp_path: Path) -> None:
    """SQLite's own, of a connection that commits."""
    if shutil.which("gcc") is None:
        missing("gcc is not installed")
    trace, program = tmp_path / "trace", (
        "import sqlite3, sys\n"
        "database = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "database.execute('PRAGMA journal_mode=WAL')\n"
        "database.execute('CREATE TABLE t (x)')\n"
        "database.execute('PRAGMA wal_autocheckpoint=1')\n"
        "database.execute('INSERT INTO t VALUES (1)')\n"
        "database.close()\n"
    )  # fmt: skip
    preload = walwatch.library(tmp_path)
    subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "log.db")],
        env=os.environ | walwatch.environment(preload, folder=tmp_path, trace=trace),
        check=True,
    )
    watch = walwatch.Watch(trace)
    watch.read()
    assert watch.checkpoints == 1
    assert "without the write lock" in watch.faults[0]


# Older releases


def at_schema(revision: str, file: Path) -> None:
    """Makes a database as a release of that schema left it."""
    from alembic import command
    from alembic.config import Config

    engine = create_engine(f"sqlite:///{file}")
    with engine.connect() as connection:
        config = Config(attributes={"connection": connection})
        config.set_main_option("script_location", str(migrate.scripts()))
        command.upgrade(config, revision)
        connection.commit()
    engine.dispose()
    with closing(sqlite3.connect(file)) as database:
        database.execute("PRAGMA journal_mode=WAL")


async def test_a_schema_of_an_older_release_is_migrated_by_one_that_is_alone(
    tmp_path: Path,
) -> None:
    file = tmp_path / "log.db"
    at_schema("0003", file)
    with closing(sqlite3.connect(file, isolation_level=None)) as older:
        older.execute("SELECT count(*) FROM event").fetchall()
        with pytest.raises(DatabaseLocked) as refused:
            await Log.open(f"sqlite:///{file}", busy_seconds=0.2)
        assert "is open in another program, and its schema 0003" in str(refused.value)
        assert f"lsof {file}" in str(refused.value)
        assert older.execute("SELECT version_num FROM alembic_version").fetchall() == [("0003",)]
        assert older.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
    async with await Log.open(f"sqlite:///{file}", busy_seconds=0.2) as log:
        assert await log.append(append(A, 0)) == Appended(1)
        assert await log.fetch("PRAGMA journal_mode") == [("wal",)]
    with closing(sqlite3.connect(file)) as database:
        found = database.execute("SELECT version_num FROM alembic_version").fetchall()
    assert found == [(migrate.revisions()[-1],)]


async def test_an_older_release_that_comes_while_it_is_migrated_is_noticed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the proof that nobody else is there and the lock that keeps it so."""
    file = tmp_path / "log.db"
    at_schema("0003", file)
    execute, came = sqlite.Connection.exec_driver_sql, []

    def interrupted(self: sqlite.Connection, statement: str, *more: object) -> object:
        if statement == "BEGIN EXCLUSIVE" and not came:
            came.append(sqlite3.connect(file, isolation_level=None, check_same_thread=False))
            came[0].execute("PRAGMA journal_mode=WAL")
            came[0].execute("SELECT count(*) FROM event").fetchall()
        return execute(self, statement, *more)

    monkeypatch.setattr(sqlite.Connection, "exec_driver_sql", interrupted)
    with pytest.raises(DatabaseLocked, match="could lose events"):
        await Log.open(f"sqlite:///{file}", busy_seconds=0.2)
    with closing(came[0]) as older:
        assert older.execute("SELECT version_num FROM alembic_version").fetchall() == [("0003",)]


async def test_two_processes_migrate_an_older_schema_once(tmp_path: Path) -> None:
    file = tmp_path / "log.db"
    at_schema("0003", file)
    both = [other_process("open_once", f"sqlite:///{file}") for _ in range(2)]
    said = [(await asyncio.to_thread(process.communicate))[0] for process in both]
    assert said == ["opened\n"] * 2


async def test_a_new_file_needs_nobody_to_go(place: SqliteHouse) -> None:
    place.file.unlink()
    with closing(place.outside()) as other:
        other.execute("PRAGMA journal_mode=WAL")
        other.execute("SELECT count(*) FROM sqlite_master").fetchall()
        async with await place.open(busy_seconds=0.2) as log:
            assert await log.append(append(B, 0)) == Appended(1)


# Versions and libraries


@pytest.mark.parametrize(
    ("version", "affected"),
    [
        ((3, 6, 23), False), ((3, 7, 0), True), ((3, 40, 1), True), ((3, 44, 5), True),
        ((3, 44, 6), False), ((3, 45, 0), True), ((3, 50, 6), True), ((3, 50, 7), False),
        ((3, 51, 0), True), ((3, 51, 2), True), ((3, 51, 3), False), ((3, 52, 0), False),
    ],
)  # fmt: skip
def test_which_versions_have_the_bug(version: tuple[int, int, int], affected: bool) -> None:
    assert is_affected(version) == affected
    number = ".".join(map(str, version))
    assert library_version(number).startswith(number)
    assert ("WAL-reset bug" in library_version(number)) == affected


async def test_the_log_says_what_keeps_it(place: SqliteHouse) -> None:
    async with await place.open() as log:
        assert await log.version() == f"SQLite {library_version()}"
    assert sqlite3.sqlite_version in library_version()


MARK = b"SQLite format 3\0"
"""The beginning of every database; whatever can write one has it among its constants."""


def test_there_is_one_sqlite_library_in_the_process() -> None:
    """Of two, each would drop the other's file locks whenever it closes a file."""
    if not Path("/proc/self/maps").exists():
        pytest.skip("the mapped files are listed under Linux alone")
    program = f"import {__name__.split('.')[-1]} as it; print(*it.mapped_libraries(), sep='\\n')"
    run = [sys.executable, "-c", program]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(ROOT)])
    }
    done = subprocess.run(run, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) == 1, done.stdout


def mapped_libraries() -> list[str]:
    """The files mapped as code that hold an SQLite, once every module of dealer is imported."""
    import dealer

    for module in pkgutil.walk_packages(dealer.__path__, "dealer."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    lines = [line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines()]
    files = {fields[5] for fields in lines if len(fields) == 6 and "x" in fields[1]}
    return sorted(
        file for file in files if Path(file).is_file() and MARK in Path(file).read_bytes()
    )
