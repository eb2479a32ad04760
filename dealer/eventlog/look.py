"""Looking into the archive through the window: nothing is touched, and the archivist works on.

For whoever only reads: a file is opened read-only, a server's database in read-only transactions,
beside services that write it or without one, and its schema is left as it is.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from sqlalchemy.engine import URL
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from dealer.errors import DealerError, SetupError
from dealer.eventlog import migrate
from dealer.eventlog.faults import explain
from dealer.eventlog.postgres import old
from dealer.eventlog.reading import Reading
from dealer.eventlog.server import Server, is_postgres
from dealer.eventlog.sqlite import database_file

BUSY_SECONDS = 5.0


async def look(url: str) -> Reading:
    """What is in the log at `url`, for reading alone.

    Raises SetupError where there is no database at `url`, DatabaseOld or DatabaseNew if its schema
    is another one than this program's, and what else keeps it from being read.
    """
    engine, name, server = _way_in(url)
    try:
        found, current = await _revision(engine, name)
        if not current:
            raise old(name, found)
    except BaseException:
        await engine.dispose()
        raise
    return Reading(engine, name, server=server)


async def revision(url: str) -> str | None:
    """The schema that the database at `url` stands at; None if there is nothing in it, or none."""
    if not is_postgres(url) and not database_file(url).exists():
        return None
    engine, name, _ = _way_in(url)
    try:
        return (await _revision(engine, name))[0]
    finally:
        await engine.dispose()


def _way_in(url: str) -> tuple[AsyncEngine, str, Server | None]:
    if is_postgres(url):
        server = Server(url)
        engine = server.engine({"default_transaction_read_only": "on"}, pool_size=4)
        return engine, server.name, server
    file = database_file(url)
    return _engine(file), str(file), None


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


async def _revision(engine: AsyncEngine, name: str) -> tuple[str | None, bool]:
    """The schema that is there, and whether it is the newest."""
    try:
        async with engine.connect() as connection:
            found = await connection.run_sync(migrate.current)
            return found, await connection.run_sync(migrate.is_current)
    except DealerError:
        raise
    except Exception as error:
        raise explain(error, name=name) from error
