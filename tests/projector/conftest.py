from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import NullPool

from tests.eventlog.conftest import migrated
from tests.harness.postgres import Blocking, Postgres

__all__ = ["migrated"]

Connect = Callable[[], Connection]
"""Opens a connection to a test's log, as another process would; `Blocking` on PostgreSQL."""


@pytest.fixture
def file(migrated: Path, tmp_path: Path) -> Path:
    shutil.copy(migrated, tmp_path / "log.db")
    return tmp_path / "log.db"


@pytest.fixture
def connect_to_sqlite(file: Path) -> Iterator[Connect]:
    opened: list[Connection] = []
    engine = create_engine(f"sqlite:///{file}", poolclass=NullPool)

    def open_connection() -> Connection:
        connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        connection.exec_driver_sql("PRAGMA synchronous=OFF")
        opened.append(connection)
        return connection

    yield open_connection
    for connection in opened:
        connection.close()
    engine.dispose()


@pytest.fixture
def connect_to_postgres(postgres: Postgres) -> Iterator[Callable[[], Blocking]]:
    opened: list[Blocking] = []
    database = postgres.database()
    numbers: dict[bytes, int] = {}

    def open_connection() -> Blocking:
        opened.append(Blocking(postgres.url(database), numbers))
        return opened[-1]

    yield open_connection
    for connection in opened:
        connection.close()
    postgres.drop(database)


@pytest.fixture(params=["sqlite", "postgres"])
def connect(request: pytest.FixtureRequest) -> Connect:
    connect: Connect = request.getfixturevalue(f"connect_to_{request.param}")
    return connect


@pytest.fixture
def connection(connect: Connect) -> Connection:
    return connect()
