"""WAL checkpoints: when they are due, and under the write lock."""

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

from dealer.eventlog import Appended
from dealer.eventlog.sqlite.store import SqliteStore
from dealer.eventlog.sqlite.wal import WalCheckpoints, is_affected, library_version
from tests.chaos import walwatch
from tests.eventlog.conftest import TemporarySqlite
from tests.eventlog.requests import A, B, append, line_of, other_process
from tests.harness.installed import missing
from tests.harness.programs import output_of

pytestmark = pytest.mark.slow


ROOT = Path(__file__).parents[2]
PAGES = 20
LONG = "x" * 4000


@pytest.fixture
def database(sqlite_file: TemporarySqlite) -> TemporarySqlite:
    return sqlite_file


@pytest.fixture
def store(database: TemporarySqlite) -> Iterator[SqliteStore]:
    with closing(opened(database)) as store:
        yield store


def opened(database: TemporarySqlite, *, busy_seconds: float = 5) -> SqliteStore:
    store = SqliteStore(
        database.file, synchronous="NORMAL", busy_seconds=busy_seconds, wal_pages=PAGES
    )
    store.open()
    return store


def count_frames(store: SqliteStore) -> int:
    """The number of frames in the WAL, from a checkpoint of a copy."""
    folder = store.file.parent / "copy"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for end in ("", "-wal"):
        shutil.copy(f"{store.file}{end}", folder / f"log.db{end}")
    with closing(sqlite3.connect(folder / "log.db", isolation_level=None)) as connection:
        (_, frames, _) = connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
    return int(frames)


def write(store: SqliteStore, after: int, table: bytes = A) -> int:
    assert store.append([append(table, after, LONG)])[1] == [Appended(after + 1)]
    return after + 1


def test_a_checkpoint_is_due_at_a_number_of_frames(store: SqliteStore) -> None:
    checkpoints, version = store._checkpoints, 0
    while not checkpoints.due():
        assert count_frames(store) < PAGES
        version = write(store, version)
    assert count_frames(store) >= PAGES
    store.maintain()
    assert not checkpoints.due()
    write(store, version)
    assert count_frames(store) < PAGES, "the WAL was not restarted after a complete checkpoint"


def test_frames_of_another_process_count(database: TemporarySqlite, store: SqliteStore) -> None:
    other = opened(database)
    version = write(store, 0)
    while not other._checkpoints.due():
        version = write(store, version)
    assert store._checkpoints.due()
    other.maintain()
    write(other, version)
    assert not store._checkpoints.due(), "a WAL that another process restarted counts from 0"
    other.close()


def test_no_connection_checkpoints_when_it_commits(
    database: TemporarySqlite, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WalCheckpoints, "due", lambda _: False)
    store, version = opened(database), 0
    while count_frames(store) < 1100:  # SQLite's own limit is 1000
        rows = [append(A, version, *[LONG] * 100)]
        assert store.append(rows)[1] == [Appended(version + 100)]
        version += 100
    before = database.file.stat().st_size
    write(store, version)
    assert database.file.stat().st_size == before
    store.close()


async def test_readers_do_not_checkpoint(database: TemporarySqlite) -> None:
    async with await database.open() as log:
        assert await log.fetch("PRAGMA wal_autocheckpoint") == [(0,)]


def test_a_checkpoint_that_finds_the_write_lock_taken_waits_for_the_next_commit(
    database: TemporarySqlite,
) -> None:
    store, version = opened(database, busy_seconds=0.5), 0
    while not store._checkpoints.due():
        version = write(store, version)
    holder = database.connect()
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


def test_a_failed_checkpoint_is_logged_and_loses_no_event(
    store: SqliteStore, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        cause = sqlite3.OperationalError("disk I/O error")
        cause.sqlite_errorcode = sqlite3.SQLITE_IOERR
        raise cause

    version = 0
    with monkeypatch.context() as patch:
        patch.setattr(store._checkpoints, "_connect", fail)
        while not store._checkpoints.due():
            version = write(store, version)
        store.maintain()
        (record,) = caplog.records
        assert record.getMessage() == "WAL checkpoint failed"
        assert "failed to read or write" in vars(record)["fields"]["says"]
        for _ in range(3):
            version = write(store, version)
            store.maintain()
        assert len(caplog.records) == 1, "it is not retried at each commit"
    while not store._checkpoints.due():
        version = write(store, version)
    store.maintain()
    write(store, version)
    assert count_frames(store) < PAGES


def test_a_wal_that_a_reader_keeps_from_restarting_is_logged(
    database: TemporarySqlite, store: SqliteStore, caplog: pytest.LogCaptureFixture
) -> None:
    version, reader = write(store, 0), database.connect()
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM event").fetchall()
    for _ in range(12 * PAGES):
        version = write(store, version)
        store.maintain()
    reader.close()
    logged = [vars(record)["fields"] for record in caplog.records]
    assert {record.getMessage() for record in caplog.records} == {"the WAL is not restarted"}
    assert 2 <= len(logged) <= 5
    assert logged[0]["frames"] >= 8 * PAGES
    assert logged[1]["frames"] >= 2 * logged[0]["frames"]
    assert logged[0]["copied"] < logged[0]["frames"]
    for _ in range(PAGES):
        version = write(store, version)
        store.maintain()
    assert count_frames(store) < 2 * PAGES


async def test_two_processes_checkpoint_only_under_the_write_lock(
    database: TemporarySqlite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trace of their locks shows it, whether or not there was a race."""
    if shutil.which("gcc") is None:
        missing("gcc is not installed")
    trace = tmp_path / "trace"
    preload = walwatch.library(tmp_path)
    for name, value in walwatch.environment(preload, folder=tmp_path, trace=trace).items():
        monkeypatch.setenv(name, value)
    both = [
        other_process("compete", database.url, database.commit, A.hex(), name, "150")
        for name in "xy"
    ]
    monkeypatch.undo()
    for process in both:
        assert await line_of(process) == "ready\n"
    for process in both:
        await asyncio.to_thread(process.communicate, "go\n")
        assert process.returncode == 0
    watch = walwatch.Watch(trace)
    watch.read()
    assert watch.faults == []
    assert watch.processes == 2
    assert watch.checkpoints > 5
    assert watch.restarts > 5


def test_the_trace_names_a_checkpoint_without_the_write_lock(tmp_path: Path) -> None:
    """It is SQLite's automatic one, of a connection that commits."""
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


async def test_a_new_file_may_be_open_in_another_process(database: TemporarySqlite) -> None:
    database.file.unlink()
    with closing(database.connect()) as other:
        other.execute("PRAGMA journal_mode=WAL")
        other.execute("SELECT count(*) FROM sqlite_master").fetchall()
        async with await database.open(busy_seconds=0.2) as log:
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


async def test_the_version_of_the_log_is_that_of_the_library(database: TemporarySqlite) -> None:
    async with await database.open() as log:
        assert await log.reader.version() == f"SQLite {library_version()}"
    assert sqlite3.sqlite_version in library_version()


MARK = b"SQLite format 3\0"
"""The first bytes of every database; a library that writes databases has them as a constant."""


def test_there_is_one_sqlite_library_in_the_process() -> None:
    """Of two libraries, each would release the file locks of the other when it closes a file."""
    if not Path("/proc/self/maps").exists():
        pytest.skip("the mapped files are listed on Linux only")
    program = f"import {__name__.split('.')[-1]} as it; print(*it.mapped_libraries(), sep='\\n')"
    run = [sys.executable, "-c", program]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), str(ROOT)])
    }
    done = output_of(*run, cwd=ROOT, env=environment)
    assert len(done.split()) == 1, done


def mapped_libraries() -> list[str]:
    """The files mapped as code that contain SQLite, once every module of dealer is imported."""
    import dealer

    for module in pkgutil.walk_packages(dealer.__path__, "dealer."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    lines = [line.split(maxsplit=5) for line in Path("/proc/self/maps").read_text().splitlines()]
    files = {fields[5] for fields in lines if len(fields) == 6 and "x" in fields[1]}
    return sorted(
        file for file in files if Path(file).is_file() and MARK in Path(file).read_bytes()
    )
