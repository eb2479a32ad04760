"""Reads on a pool of connections."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, NamedTuple

from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine
from sqlalchemy.pool import QueuePool

from dealer.errors import Overloaded

_CLOSE_SECONDS = 5.0


class PoolUse(NamedTuple):
    """Connections that are in use, and the most that may be."""

    busy: int
    size: int


class PooledReader:
    """What the readers of both databases have in common."""

    def __init__(self, engine: AsyncEngine, name: str) -> None:
        self.name = name
        self._engine = engine
        self._reads: set[asyncio.Task[list[Any]]] = set()  # that `close` waits for

    @property
    def pool(self) -> PoolUse:
        # None of the engine's connections overflow its pool.
        pool = self._engine.sync_engine.pool
        if isinstance(pool, QueuePool):
            return PoolUse(pool.checkedout(), pool.size())
        return PoolUse(0, 0)

    async def close(self) -> None:
        # A server that no longer answers is not waited for.
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                if self._reads:
                    await asyncio.wait(self._reads)
                await asyncio.shield(self._engine.dispose())

    async def _fetch(self, sql: str, parameters: tuple[Any, ...]) -> list[Any]:
        try:
            async with self._engine.connect() as connection:
                return list((await connection.exec_driver_sql(sql, parameters)).fetchall())
        except PoolTimeout:
            raise no_connection() from None


def no_connection() -> Overloaded:
    """For a read that no connection became free for."""
    return Overloaded("The server has too many reads waiting; try again shortly.")
