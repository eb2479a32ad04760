"""WAL checkpoints with several processes."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest

from dealer.errors import DatabaseError, DatabaseLocked
from dealer.eventlog import Append, Appended, EventRecord
from dealer.eventlog.sqlite.store import SqliteStore
from dealer.eventlog.sqlite.wal import is_affected
from tests.chaos.checkpoints import checkpoint_under_load
from tests.chaos.walwatch import library
from tests.harness.depth import amount
from tests.harness.installed import missing
from tests.harness.server_process import ROOT

CHECKPOINTS = amount(15, many=300)
PROGRAM = str(Path(__file__).with_name("paused_checkpoint.py"))
TABLE = bytes(16)
FIRST, LATER = 30, 40
"""Events before the paused checkpoint, and after it: more, so that all frames are reused."""


@pytest.fixture(autouse=True)
def tools(tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        missing("gcc is not installed")
    with closing(sqlite3.connect(tmp_path / "mapped.db")) as database:
        if database.execute("PRAGMA mmap_size=100000000").fetchall() != [(100000000,)]:
            missing("this SQLite maps no files, so it cannot be paused where the bug is")


async def test_two_servers_and_maintenance_commands_lose_nothing(tmp_path: Path) -> None:
    figures = await checkpoint_under_load(tmp_path, checkpoints=CHECKPOINTS, seed=CHECKPOINTS)
    assert figures.faults == []
    assert (figures.lost, figures.doubled, figures.changed) == (0, 0, 0)
    assert figures.checkpoints >= CHECKPOINTS
    assert figures.restarts > CHECKPOINTS // 4
    assert figures.archived > 0


# The WAL-reset bug, with the checkpoint paused at the critical point


@contextmanager
def other_process(route: str, folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has opened the log and checkpoints when it is sent a line."""
    pause = folder / "pause"
    os.mkfifo(f"{pause}.at")
    os.mkfifo(f"{pause}.go")
    environment = {
        "LD_PRELOAD": str(library(folder)),
        "WALWATCH_FOLDER": str(folder),
        "WALWATCH_PAUSE": str(pause),
    }
    process = subprocess.Popen(
        [sys.executable, PROGRAM, route, str(folder / "log.db")],
        cwd=ROOT,
        env=os.environ | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
        process.communicate("\n")
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()


def expect_line(process: subprocess.Popen[str], answer: str) -> None:
    """Wait for the process's next line, which must be `answer`."""
    assert process.stdout is not None
    assert process.stdout.readline() == f"{answer}\n"


def checkpoint_paused(process: subprocess.Popen[str], folder: Path) -> None:
    """Return when the process has read the WAL's number of frames and nothing else."""
    assert process.stdin is not None
    (folder / "pause").touch()
    process.stdin.write("\n")
    process.stdin.flush()
    (folder / "pause.at").open("rb").close()


def resume(process: subprocess.Popen[str], folder: Path) -> None:
    (folder / "pause.go").open("wb").close()
    expect_line(process, "done")
    (folder / "pause").unlink()


def append(store: SqliteStore, after: int) -> int:
    """Append one event of about a page; the table's version."""
    row = EventRecord(after + 1, "Said", 1, 0, f"{after + 1:04}" * 800)
    assert store.append([Append(TABLE, after, [row])])[1] == [Appended(after + 1)]
    return after + 1


def is_intact(file: Path, events: int) -> bool:
    """Whether SQLite finds no damage, and every acknowledged event."""
    try:
        with closing(sqlite3.connect(file)) as database:
            result = database.execute("PRAGMA integrity_check").fetchall()
            rows = database.execute("SELECT version, public FROM event ORDER BY version").fetchall()
    except sqlite3.DatabaseError:
        return False
    return result == [("ok",)] and rows == [(v, f"{v:04}" * 800) for v in range(1, events + 1)]


def opened(folder: Path) -> SqliteStore:
    """A store without automatic checkpoints: the test takes them."""
    store = SqliteStore(
        folder / "log.db", synchronous="NORMAL", busy_seconds=0.05, wal_pages=100_000
    )
    store._grow = lambda connection: None  # type: ignore[method-assign]
    store.open()
    checkpoint(store)  # so that the other process reads from the database, and maps it
    return store


def checkpoint(store: SqliteStore) -> None:
    connection = store._connection
    assert connection is not None
    store._checkpoints.take(connection)


def later_events(store: SqliteStore, version: int) -> int:
    """Fill the WAL past the frames that the paused checkpoint saw, and restart it."""
    for _ in range(LATER):
        version = append(store, version)
    checkpoint(store)
    return append(store, version)


def test_a_checkpoint_without_the_write_lock_loses_commits(tmp_path: Path) -> None:
    """An SQLite with the bug loses commits with its own checkpoints, which the lock prevents."""
    store, version = opened(tmp_path), 0
    with other_process("sqlite", tmp_path) as process:
        expect_line(process, "ready")
        for _ in range(FIRST):
            version = append(store, version)
        checkpoint(store)
        checkpoint_paused(process, tmp_path)
        version = append(store, version)  # restarts the WAL
        resume(process, tmp_path)
        with suppress(DatabaseError, AssertionError):
            later_events(store, version)  # may detect the damage itself
        intact = is_intact(tmp_path / "log.db", version + LATER + 1)
    store.close()
    assert intact != is_affected(sqlite3.sqlite_version_info), (
        f"SQLite {sqlite3.sqlite_version} does not behave as its number says: was it patched?"
    )


def test_a_checkpoint_under_the_write_lock_loses_nothing_on_the_same_schedule(
    tmp_path: Path,
) -> None:
    store, version = opened(tmp_path), 0
    with other_process("servers", tmp_path) as process:
        expect_line(process, "ready")
        for _ in range(FIRST):
            version = append(store, version)
        checkpoint(store)
        checkpoint_paused(process, tmp_path)
        with pytest.raises(DatabaseLocked):
            append(store, version)  # so the WAL is not restarted
        resume(process, tmp_path)
        version = later_events(store, version)
        assert is_intact(tmp_path / "log.db", version)
    store.close()
    assert is_intact(tmp_path / "log.db", version)
