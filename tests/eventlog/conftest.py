"""Fixtures: databases for one test, with a schema and without events."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from dealer.eventlog import Log
from tests.harness.cluster import Cluster, own_cluster, skip_on_cluster
from tests.harness.database_link import DatabaseLink
from tests.harness.empty_log import empty_log
from tests.harness.postgres import OwnServer, Postgres
from tests.simulation.conformance import TemporarySimulation


class TemporarySqlite:
    """An SQLite file: opens logs on it, and connections of other programs.

    `commit` is the thread that commits the appends of these logs.
    """

    def __init__(self, file: Path, *, commit: str = "thread") -> None:
        self.file = file
        self.url = f"sqlite:///{file}"
        self.commit = commit

    async def open(self, **options: Any) -> Log:
        defaults: dict[str, Any] = {"commit": self.commit, "wal_pages": 50, "busy_seconds": 20.0}
        return await Log.open(self.url, **defaults | options)

    def wal_size(self) -> int:
        return Path(f"{self.file}-wal").stat().st_size

    def wal_salts(self) -> bytes:
        """The salts of the WAL's header, which change when it is restarted."""
        with Path(f"{self.file}-wal").open("rb") as wal:
            return wal.read(24)[16:]

    def execute(self, sql: str, *, timeout: float = 20) -> list[tuple[Any, ...]]:
        """Rows of a statement of another program, which waits for a lock this many seconds."""
        with closing(self.connect(timeout=timeout)) as connection:
            return connection.execute(sql).fetchall()

    def no_transaction_is_open(self) -> bool:
        self.execute("BEGIN IMMEDIATE", timeout=0)
        return True

    def connect(self, *, timeout: float = 0) -> sqlite3.Connection:
        return sqlite3.connect(self.file, isolation_level=None, timeout=timeout)


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty log to copy."""
    file = tmp_path_factory.mktemp("migrated") / "log.db"
    empty_log(file)
    return file


class TemporaryPostgres:
    """A PostgreSQL database, with the methods of `TemporarySqlite`."""

    commit = "thread"

    def __init__(self, server: Postgres) -> None:
        self.server = server
        self.name = server.database()
        self.url = server.url(self.name)

    async def open(self, **options: Any) -> Log:
        return await Log.open(self.url, **{"busy_seconds": 20.0} | options)

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        return self.server.ask(self.name, sql)

    def no_transaction_is_open(self) -> bool:
        return not self.execute(
            "SELECT state FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND state LIKE '%transaction%'"
        )


TemporaryDatabase = TemporarySqlite | TemporaryPostgres | TemporarySimulation


@pytest.fixture
def sqlite_database(tmp_path: Path) -> TemporarySqlite:
    empty_log(tmp_path / "log.db")
    return TemporarySqlite(tmp_path / "log.db")


@pytest.fixture
def sqlite_on_loop_database(sqlite_database: TemporarySqlite) -> TemporarySqlite:
    return TemporarySqlite(sqlite_database.file, commit="loop")


@pytest.fixture(params=["sqlite", "sqlite_on_loop"])
def sqlite_file(request: pytest.FixtureRequest) -> TemporarySqlite:
    """An SQLite file whose appends are committed by the writer thread, and by the event loop."""
    found: TemporarySqlite = request.getfixturevalue(f"{request.param}_database")
    return found


@pytest.fixture
def postgres_database(postgres: Postgres) -> Iterator[TemporaryPostgres]:
    database = TemporaryPostgres(postgres)
    yield database
    postgres.drop(database.name)


@pytest.fixture
def simulated_database(tmp_path: Path) -> TemporarySimulation:
    return TemporarySimulation(tmp_path, commit="thread")


@pytest.fixture
def simulated_on_loop_database(tmp_path: Path) -> TemporarySimulation:
    return TemporarySimulation(tmp_path, commit="loop")


@pytest.fixture(params=["sqlite", "sqlite_on_loop", "postgres", "simulated", "simulated_on_loop"])
def database(request: pytest.FixtureRequest) -> TemporaryDatabase:
    """A database of each kind, for tests of what every store guarantees, and every thread."""
    found: TemporaryDatabase = request.getfixturevalue(f"{request.param}_database")
    return found


@pytest.fixture
async def link(postgres_database: TemporaryPostgres) -> AsyncIterator[DatabaseLink]:
    """A relay before the PostgreSQL server, which can cut its connections."""
    if not isinstance(postgres_database.server, OwnServer):
        pytest.skip("the relay connects to a server's socket, and another server was named")
    skip_on_cluster(postgres_database.server, "appends go to the workers, past the relay")
    async with DatabaseLink(postgres_database.server.folder / ".s.PGSQL.5432") as found:
        yield found


@pytest.fixture
def linked_url(link: DatabaseLink, postgres_database: TemporaryPostgres) -> str:
    """The URL of `postgres_database` through `link`."""
    return f"postgresql://dealer@127.0.0.1:{link.port}/{postgres_database.name}?sslmode=disable"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster that survives a crash of its servers."""
    with own_cluster(safe=True) as found:
        yield found
