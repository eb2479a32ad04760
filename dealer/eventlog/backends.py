"""Selects SQLite or PostgreSQL by the database's address, opens a log read-only, and copies a file.

The only module of this package that imports both `sqlite` and `postgres`.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from dealer.errors import ConfigurationError, DatabaseDamaged, DealerError
from dealer.eventlog import schema
from dealer.eventlog.address import database_file, is_postgres
from dealer.eventlog.db_errors import FAULTS, translate
from dealer.eventlog.protocols import Connection, Reader, Store
from dealer.eventlog.read_only_log import ReadOnlyLog
from dealer.eventlog.sqlite.reader import SqliteReader
from dealer.eventlog.sqlite.store import SqliteStore
from dealer.eventlog.sqlite.wal import file_uri, open_file

READ_ONLY_BUSY_SECONDS = 5.0
RECOVERY_SECONDS = 30.0
"""How long a migration waits for a server that recovers."""
_READ_ONLY_POOL = 4
# Pages are read in the order of an index, whatever the statistics say.
_PLANS = {"enable_sort": "off"}
_READING = frozenset(
    (
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_PRAGMA,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_RECURSIVE,
        sqlite3.SQLITE_SAVEPOINT,
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_TRANSACTION,
    )
)


class Backend(NamedTuple):
    """The writer's store, and a function that opens the read connections once it is open."""

    store: Store
    make_reader: Callable[[], Reader]


def check_address(url: str) -> str:
    """The address without a password, for display; ConfigurationError if it is not valid."""
    if is_postgres(url):
        from dealer.eventlog.postgres.database import PostgresDatabase

        return PostgresDatabase(url).name
    database_file(url)
    return url


def backend(
    url: str, *, synchronous: str, busy_seconds: float, wal_pages: int, readers: int
) -> Backend:
    """Store and reader for `Log.open`, whose arguments these are; opens nothing yet.

    Raises ConfigurationError.
    """
    if is_postgres(url):
        from dealer.eventlog.postgres.database import PostgresDatabase
        from dealer.eventlog.postgres.reader import PostgresReader
        from dealer.eventlog.postgres.store import PostgresStore

        pool: dict[str, Any] = {
            "pool_size": readers,
            "max_overflow": 0,
            "pool_timeout": busy_seconds,
        }
        database = PostgresDatabase(url, retry_seconds=busy_seconds)
        return Backend(
            PostgresStore(database, synchronous=synchronous, busy_seconds=busy_seconds),
            lambda: PostgresReader(database.engine(_PLANS, **pool), database),
        )
    file = database_file(url)
    store = SqliteStore(
        file, synchronous=synchronous, busy_seconds=busy_seconds, wal_pages=wal_pages
    )

    def make_reader() -> Reader:
        connect = partial(open_file, file, busy_seconds=busy_seconds)
        return SqliteReader(
            connect, store.name, size=readers, seconds=busy_seconds, identity=store.identity
        )

    return Backend(store, make_reader)


async def open_readonly(url: str) -> ReadOnlyLog:
    """The log at `url`, for reading only, next to servers that write it or without one.

    An SQLite file is opened read-only, a PostgreSQL database in read-only transactions. Raises
    ConfigurationError if there is no database or it is distributed in part, SchemaOutdated or
    SchemaTooNew if its schema is not the one of this program, or another DatabaseError.
    """
    reader = _read_only(url)
    try:
        found = await _revision(reader)
        if not schema.is_newest(found):
            raise schema.outdated(reader.name, found)
        await reader.require_whole()
    except BaseException:
        await reader.close()
        raise
    return ReadOnlyLog(reader)


async def revision(url: str) -> str | None:
    """The schema revision of the database at `url`; None if it is empty or does not exist."""
    if not is_postgres(url) and not database_file(url).exists():
        return None
    reader = _read_only(url)
    try:
        found = await _revision(reader)
        schema.is_newest(found)
        return found
    finally:
        await reader.close()


async def migrate_database(url: str, *, shards: int | None = None) -> None:
    """Bring the schema at `url` to the newest revision; creates the schema if there is none.

    With `shards` an empty PostgreSQL database is distributed by Citus. Safe to run in several
    processes at once: one migrates, the others wait. Raises DatabaseError, after which the schema
    is unchanged, or ConfigurationError.
    """
    if is_postgres(url):
        await _migrate_postgres(url, shards)
        return
    if shards is not None:
        raise ConfigurationError("--shards distributes a PostgreSQL database, not an SQLite file.")
    store = SqliteStore(database_file(url))
    try:
        await asyncio.to_thread(store.open)
    finally:
        await asyncio.to_thread(store.close)


async def _migrate_postgres(url: str, shards: int | None) -> None:
    from dealer.eventlog.postgres.cluster import distribute, require_cluster
    from dealer.eventlog.postgres.database import PostgresDatabase

    database = PostgresDatabase(url)

    def migrate(connection: Connection) -> None:
        if shards is not None:
            require_cluster(connection, name=database.name)
        schema.upgrade(connection)
        if shards is not None:
            distribute(connection, shards, name=database.name)

    try:
        await database.with_retry(database.require_sessions, seconds=0, recovery=RECOVERY_SECONDS)
        # This thread may be the one that holds it, for another database.
        while not schema.ALEMBIC.acquire(blocking=False):  # noqa: ASYNC110  no lock of the event loop
            await asyncio.sleep(0.01)
        try:
            await database.run(migrate)
        finally:
            schema.ALEMBIC.release()
    except DealerError:
        raise
    except Exception as error:
        raise translate(error, name=database.name) from error


def _read_only(url: str) -> Reader:
    if is_postgres(url):
        from dealer.eventlog.postgres.database import PostgresDatabase
        from dealer.eventlog.postgres.reader import PostgresReader

        database = PostgresDatabase(url)
        engine = database.engine(
            {"default_transaction_read_only": "on"} | _PLANS, pool_size=_READ_ONLY_POOL
        )
        return PostgresReader(engine, database)
    file = database_file(url)
    if not file.exists():
        raise ConfigurationError(
            f"There is no database {file}. `dealer serve` creates one; a command finds another "
            "by --database."
        )
    from sqlalchemy import URL, event
    from sqlalchemy.ext.asyncio import create_async_engine

    from dealer.eventlog.engine_reader import EngineReader

    # In a read-only folder SQLite cannot create the -shm file, unless the file is `immutable`.
    immutable = not os.access(file.parent, os.W_OK) and not Path(f"{file}-wal").exists()
    query = {"mode": "ro", "uri": "true"} | ({"immutable": "1"} if immutable else {})
    engine = create_async_engine(
        URL.create("sqlite+aiosqlite", database=file_uri(file), query=query),
        isolation_level="AUTOCOMMIT",
        pool_reset_on_return=None,
        connect_args={"timeout": READ_ONLY_BUSY_SECONDS},
    )
    event.listen(engine.sync_engine, "connect", _allow_reading_only)
    return EngineReader(engine, str(file))


def _allow_reading_only(connection: Any, _: object) -> None:
    """The mode `ro` protects this file; ATTACH and VACUUM INTO would write others."""
    connection.run_async(lambda driver: driver.set_authorizer(_authorize))


def _authorize(action: int, *_: object) -> int:
    return sqlite3.SQLITE_OK if action in _READING else sqlite3.SQLITE_DENY


async def _revision(reader: Reader) -> str | None:
    """The schema revision of the database; None if it is empty."""
    names = {name for (name,) in await reader.fetch(schema.select_tables(reader.dialect), ())}
    rows = await reader.fetch(schema.SELECT_REVISION, ()) if "alembic_version" in names else ()
    return schema.revision_of(names, rows)


def copy_file(url: str, to: Path) -> None:
    """Copy the SQLite database at `url`, as of one moment, to a new file that only its owner reads.

    Servers may write meanwhile. Raises DatabaseError, or OSError for the new file.
    """
    file = database_file(url)
    os.close(os.open(to, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        # By one step, which reads one snapshot: several steps start again after each commit.
        with (
            closing(sqlite3.connect(f"{file_uri(file)}?mode=ro", uri=True)) as live,
            closing(sqlite3.connect(to)) as copy,
        ):
            live.backup(copy)
            ((says,),) = copy.execute("PRAGMA quick_check(1)")
    except FAULTS as error:
        raise translate(error, name=str(file)) from error
    if says != "ok":
        raise DatabaseDamaged(f"The database {file} is damaged ({says}); restore it from a backup.")
