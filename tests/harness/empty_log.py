"""SQLite files with the schema and without events; the migrations take longer than most tests."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

from dealer.eventlog.sqlite.store import SqliteStore


@cache
def _content() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "log.db"
        store = SqliteStore(file, synchronous="NORMAL", busy_seconds=5, wal_pages=50)
        store.open()
        store.close()
        return file.read_bytes()


def empty_log(file: Path) -> str:
    """The URL of a database in this file, which is made if there is none."""
    if not file.exists():
        file.write_bytes(_content())
    return f"sqlite:///{file}"
