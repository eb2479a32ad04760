from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from dealer.eventlog import Log
from dealer.eventlog.sqlite import SqliteStore


class SqliteHouse:
    """A place to keep a log for one test, and a way to get at it from outside."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.url = f"sqlite:///{file}"

    async def open(self, **options: Any) -> Log:
        return await Log.open(self.url, **{"wal_pages": 50, "busy_seconds": 20.0} | options)

    def wal_size(self) -> int:
        return Path(f"{self.file}-wal").stat().st_size

    def outside(self) -> sqlite3.Connection:
        return sqlite3.connect(self.file, isolation_level=None, timeout=0)


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty log to copy: the migrations take longer than most tests."""
    file = tmp_path_factory.mktemp("migrated") / "log.db"
    store = SqliteStore(file, synchronous="NORMAL", busy_seconds=5, wal_pages=50)
    store.open()
    store.close()
    return file


@pytest.fixture(params=["sqlite"])
def place(migrated: Path, tmp_path: Path) -> SqliteHouse:
    """Where a log can be opened; each database that the house learns becomes a parameter."""
    shutil.copy(migrated, tmp_path / "log.db")
    return SqliteHouse(tmp_path / "log.db")
