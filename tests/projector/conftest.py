from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import NullPool

from dealer.eventlog.sqlite import SqliteStore
from tests.postgres import Blocking

Connect = Callable[[], Connection]


@pytest.fixture(scope="session")
def migrated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty log to copy: the migrations take longer than most tests."""
    file = tmp_path_factory.mktemp("migrated") / "log.db"
    store = SqliteStore(file, synchronous="NORMAL", busy_seconds=5, wal_pages=50)
    store.open()
    store.close()
    return file


@pytest.fixture
def file(migrated: Path, tmp_path: Path) -> Path:
    shutil.copy(migrated, tmp_path / "log.db")
    return tmp_path / "log.db"


@pytest.fixture(params=["sqlite", "postgres"])
def connect(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """Opens connections to this test's log, each as of a process of its own."""
    opened: list[Connection] = []
    if request.param == "sqlite":
        file = request.getfixturevalue("file")
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
        return
    server = request.getfixturevalue("postgres")
    database = server.database()
    numbers: dict[bytes, int] = {}

    def open_blocking() -> Any:
        opened.append(connection := Blocking(server.url(database), numbers))
        return connection

    yield open_blocking
    for connection in opened:
        connection.close()
    server.drop(database)


@pytest.fixture
def connection(connect: Connect) -> Connection:
    return connect()
