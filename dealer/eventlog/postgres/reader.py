"""Pooled read connections to a PostgreSQL database."""

from __future__ import annotations

from functools import partial
from math import nan
from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from dealer.eventlog.postgres.database import PostgresDatabase
from dealer.eventlog.postgres.notifier import Notifier
from dealer.eventlog.store import Dialect, OnNotification, PooledReader

# The cluster, the database in it, the table that a restore creates again, and the timeline, which a
# recovery to a point in time and a failover change.
_IDENTITY = """
SELECT concat_ws('/', (SELECT system_identifier FROM pg_control_system()),
    (SELECT oid FROM pg_database WHERE datname = current_database()),
    CAST(CAST('house' AS regclass) AS oid),
    substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))
"""


class PostgresReader(PooledReader):
    """Implements `dealer.eventlog.store.Reader`.

    While the server is unreachable a read is tried again for `database.retry_seconds`.
    """

    dialect: Dialect = "postgresql"
    shared = True
    shrunk = False
    wal_bytes = nan

    def __init__(self, engine: AsyncEngine, database: PostgresDatabase) -> None:
        super().__init__(engine, database.name)
        self._database = database

    async def fetch(
        self, sql: str, parameters: tuple[Any, ...], *, named: bool = False
    ) -> list[Any]:
        read = partial(self._fetch, sql, parameters)
        return await self._database.with_retry(read, seconds=self._database.retry_seconds)

    async def identity(self) -> str:
        ((identity,),) = await self.fetch(_IDENTITY, ())
        return str(identity)

    async def version(self) -> str:
        ((number,),) = await self.fetch("SHOW server_version", ())
        return f"PostgreSQL {number}"

    def check(self) -> None:
        """Nothing to check: a server's database cannot be replaced under a connection."""

    def notifier(self, on_notification: OnNotification) -> Notifier:
        return Notifier(self._database, on_notification)
