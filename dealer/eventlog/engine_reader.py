"""Pooled read connections of SQLAlchemy: to PostgreSQL, and to an SQLite file from outside.

A server reads its own SQLite file by `dealer.eventlog.sqlite.reader`, and does not import this.
"""

from __future__ import annotations

import asyncio
from typing import Any

from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import QueuePool

from dealer.eventlog.db_errors import translate
from dealer.eventlog.protocols import Dialect, PoolUse, Reader, no_connection
from dealer.eventlog.sqlite.wal import library_version


class EngineReader(Reader):
    """Reads by the connections of `engine`, whose driver for SQLite is aiosqlite."""

    dialect: Dialect = "sqlite"
    shared = False

    def __init__(self, engine: AsyncEngine, name: str) -> None:
        super().__init__(name)
        self._engine = engine

    async def fetch(self, sql: str, parameters: tuple[Any, ...]) -> list[Any]:
        # Completed also if the caller is cancelled: aiosqlite closes the connection of a cancelled
        # read in a task that never ends if the read is cancelled a second time.
        read = asyncio.create_task(self._fetch(sql, parameters))
        try:
            return await self._completed(read)
        except DBAPIError as error:
            raise translate(error, name=self.name) from error

    async def version(self) -> str:
        return f"SQLite {library_version()}"

    @property
    def pool(self) -> PoolUse:
        # None of the engine's connections overflow its pool.
        pool = self._engine.sync_engine.pool
        if isinstance(pool, QueuePool):
            return PoolUse(pool.checkedout(), pool.size())
        return PoolUse(0, 0)

    async def _close(self) -> None:
        await asyncio.shield(self._engine.dispose())

    async def _fetch(self, sql: str, parameters: tuple[Any, ...]) -> list[Any]:
        try:
            async with self._engine.connect() as connection:
                return list((await connection.exec_driver_sql(sql, parameters)).fetchall())
        except PoolTimeout:
            raise no_connection() from None
