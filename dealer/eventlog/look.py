"""Looking into the archive through the window: nothing is touched, and the archivist works on.

For whoever only reads: the file is opened read-only, beside a service that writes it or without
one, and its schema is left as it is.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from dealer.errors import DatabaseOld, DealerError, SetupError
from dealer.eventlog import migrate
from dealer.eventlog.faults import explain
from dealer.eventlog.log import Log
from dealer.eventlog.sqlite import SqliteStore, database_file
from dealer.eventlog.writer import Writer

BUSY_SECONDS = 5.0


async def look(url: str) -> Log:
    """A log that can be read and nothing else: whatever would write raises Unavailable.

    Raises SetupError where there is no database at `url`, DatabaseOld or DatabaseNew if its schema
    is another one than this program's, and what else keeps it from being read.
    """
    file = database_file(url)
    engine = _engine(file)
    try:
        found, current = await _revision(engine, file)
        if not current:
            stands = "is empty" if found is None else f"has the schema {found} of an older version"
            raise DatabaseOld(f"The database {file} {stands}; run `dealer migrate` on it.")
    except BaseException:
        await engine.dispose()
        raise
    store = SqliteStore(file, synchronous="FULL", busy_seconds=BUSY_SECONDS, wal_pages=0)
    writer = Writer(store, committed=None, queue=0, batch=1)
    await writer.close()
    return Log(writer, engine, str(file))


async def revision(url: str) -> str | None:
    """The schema that the database at `url` stands at; None if there is nothing in it, or none."""
    file = database_file(url)
    if not file.exists():
        return None
    engine = _engine(file)
    try:
        return (await _revision(engine, file))[0]
    finally:
        await engine.dispose()


def _engine(file: Path) -> AsyncEngine:
    if not file.exists():
        raise SetupError(
            f"There is no database {file}; name the one you mean with --database, or start "
            "`dealer serve`, which makes one."
        )
    # On a medium that nobody can write SQLite would want to put its index beside the file.
    sealed = not os.access(file.parent, os.W_OK) and not Path(f"{file}-wal").exists()
    query = {"mode": "ro", "uri": "true"} | ({"immutable": "1"} if sealed else {})
    return create_async_engine(
        URL.create("sqlite+aiosqlite", database=f"file:{quote(str(file.absolute()))}", query=query),
        isolation_level="AUTOCOMMIT",
        pool_reset_on_return=None,
        connect_args={"timeout": BUSY_SECONDS},
    )


async def _revision(engine: AsyncEngine, file: Path) -> tuple[str | None, bool]:
    """The schema that is there, and whether it is the newest."""
    try:
        async with engine.connect() as connection:
            found = await connection.run_sync(migrate.current)
            return found, await connection.run_sync(migrate.is_current)
    except DealerError:
        raise
    except Exception as error:
        raise explain(error, name=str(file)) from error
