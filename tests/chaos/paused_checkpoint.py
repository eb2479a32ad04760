"""A process that takes one WAL checkpoint on request, as the servers do or as SQLite does.

    python tests/chaos/paused_checkpoint.py servers|sqlite DATABASE

It prints `ready`, waits for a line, checkpoints, prints `done`, and waits for another line. Memory
mapping is on, so that `walwatch.c` can pause it between the two reads of the WAL-reset bug.
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from dealer.eventlog.sqlite.store import SqliteStore

PAGES = 20
"""Frames of the WAL after which the servers take a checkpoint."""

MAP = "PRAGMA mmap_size=100000000"
COUNT = "SELECT count(*) FROM event"


def wait_for_line() -> None:
    print("ready", flush=True)
    sys.stdin.readline()


def as_sqlite(file: Path) -> None:
    """What SQLite does after a commit that reached `wal_autocheckpoint`."""
    with closing(sqlite3.connect(file, isolation_level=None)) as database:
        database.execute(MAP)
        database.execute(COUNT).fetchall()
        wait_for_line()
        database.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
        print("done", flush=True)
        sys.stdin.readline()


def as_servers(file: Path) -> None:
    """What the writer thread does after a commit, if a checkpoint is due."""
    store = SqliteStore(file, synchronous="FULL", busy_seconds=5, wal_pages=PAGES)
    checkpoints: Any = store._checkpoints
    store.open()
    checkpoints.take(store._connection)
    for statement in (MAP, COUNT):
        checkpoints._connection.exec_driver_sql(statement).fetchall()
    wait_for_line()
    assert checkpoints.due()
    store.maintain()
    print("done", flush=True)
    sys.stdin.readline()
    store.close()


if __name__ == "__main__":
    {"servers": as_servers, "sqlite": as_sqlite}[sys.argv[1]](Path(sys.argv[2]))
