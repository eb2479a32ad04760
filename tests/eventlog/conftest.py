from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dealer.eventlog import Log
from dealer.eventlog.sqlite import SqliteStore
from tests.postgres import Postgres


class SqliteHouse:
    """A place to keep a log for one test, and a way to get at it from outside."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.url = f"sqlite:///{file}"

    async def open(self, **options: Any) -> Log:
        return await Log.open(self.url, **{"wal_pages": 50, "busy_seconds": 20.0} | options)

    def wal_size(self) -> int:
        return Path(f"{self.file}-wal").stat().st_size

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of a statement, from outside of the house."""
        with self.outside() as database:
            found = database.execute(sql).fetchall()
        database.close()
        return found

    def nothing_is_open(self) -> bool:
        self.ask("BEGIN IMMEDIATE")
        return True

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


class PostgresHouse:
    """A database of its own for one test; the same ways to get at it as for a file."""

    def __init__(self, server: Postgres) -> None:
        self.server = server
        self.database = server.database()
        self.url = server.url(self.database)

    async def open(self, **options: Any) -> Log:
        return await Log.open(self.url, **{"busy_seconds": 20.0} | options)

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        return self.server.ask(self.database, sql)

    def nothing_is_open(self) -> bool:
        return not self.ask(
            "SELECT state FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND state LIKE '%transaction%'"
        )


House = SqliteHouse | PostgresHouse


@pytest.fixture
def file_place(migrated: Path, tmp_path: Path) -> SqliteHouse:
    shutil.copy(migrated, tmp_path / "log.db")
    return SqliteHouse(tmp_path / "log.db")


@pytest.fixture
def server_place(postgres: Postgres) -> Iterator[PostgresHouse]:
    house = PostgresHouse(postgres)
    yield house
    postgres.drop(house.database)


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> House:
    """Where a log can be opened: every promise is held on each database that the house knows."""
    house: House = request.getfixturevalue(
        {"sqlite": "file_place", "postgres": "server_place"}[request.param]
    )
    return house
