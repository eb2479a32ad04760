"""Pooled read connections to a PostgreSQL database."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from math import nan
from typing import Any

from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine

from dealer.errors import Overloaded
from dealer.eventlog.db_errors import READS_OVERLOADED
from dealer.eventlog.postgres.database import PostgresDatabase
from dealer.eventlog.postgres.notifier import Notifier
from dealer.eventlog.read_pool import PoolUse, pool_use
from dealer.eventlog.store import Dialect, OnNotification

CLOSE_SECONDS = 5.0


class PostgresReader:
    """Implements `dealer.eventlog.store.Reader`.

    While the server is unreachable a read is tried again for `database.retry_seconds`.
    """

    dialect: Dialect = "postgresql"
    shared = True
    shrunk = False
    wal_bytes = nan

    def __init__(self, engine: AsyncEngine, database: PostgresDatabase) -> None:
        self.name = database.name
        self._engine = engine
        self._database = database

    async def fetch(self, sql: str, parameters: tuple[Any, ...]) -> list[Any]:
        read = partial(self._fetch, sql, parameters)
        return await self._database.with_retry(read, seconds=self._database.retry_seconds)

    async def version(self) -> str:
        ((number,),) = await self.fetch("SHOW server_version", ())
        return f"PostgreSQL {number}"

    def check(self) -> None:
        """Nothing to check: a server's database cannot be replaced under a connection."""

    @property
    def pool(self) -> PoolUse:
        return pool_use(self._engine)

    def notifier(self, on_notification: OnNotification) -> Notifier:
        return Notifier(self._database, on_notification)

    async def close(self) -> None:
        # A server that no longer answers is not waited for.
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await asyncio.shield(self._engine.dispose())

    async def _fetch(self, sql: str, parameters: tuple[Any, ...]) -> list[Any]:
        try:
            async with self._engine.connect() as connection:
                return list((await connection.exec_driver_sql(sql, parameters)).fetchall())
        except PoolTimeout:
            raise Overloaded(READS_OVERLOADED) from None
