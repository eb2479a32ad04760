"""Pooled read connections to an SQLite file."""

from __future__ import annotations

import asyncio
from math import nan
from typing import TYPE_CHECKING, Any, cast

from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine

from dealer.eventlog.db_errors import FAULTS, translate
from dealer.eventlog.protocols import Dialect, Reader, no_connection
from dealer.eventlog.sqlite.file_identity import FileIdentity
from dealer.eventlog.sqlite.wal import library_version

if TYPE_CHECKING:
    import aiosqlite


class SqliteReader(Reader):
    """Reads an SQLite file.

    With `identity` every read fails once the file was deleted or replaced.
    """

    dialect: Dialect = "sqlite"
    shared = False

    def __init__(
        self, engine: AsyncEngine, name: str, *, identity: FileIdentity | None = None
    ) -> None:
        super().__init__(engine, name)
        self._identity = identity

    async def fetch(
        self, sql: str, parameters: tuple[Any, ...], *, named: bool = False
    ) -> list[Any]:
        self.check()
        # The caller may be cancelled, but the read is completed: aiosqlite closes the connection
        # of a cancelled read in a task that never ends if the read is cancelled a second time.
        work = self._fetch if named else self._fetch_plain
        read = asyncio.create_task(work(sql, parameters))
        self._reads.add(read)
        read.add_done_callback(self._on_read_done)
        try:
            rows = await asyncio.shield(read)
            # A connection that was opened for this read may have opened another file.
            self.check()
            return rows
        except FAULTS as error:
            self.check()
            raise translate(error, name=self.name) from error

    async def _fetch_plain(self, sql: str, parameters: tuple[Any, ...]) -> list[Any]:
        try:
            async with self._engine.connect() as connection:
                pooled = await connection.get_raw_connection()
                driver = cast("aiosqlite.Connection", pooled.driver_connection)
                return await direct_fetchall(driver, sql, parameters)
        except PoolTimeout:
            raise no_connection() from None

    async def version(self) -> str:
        return f"SQLite {library_version()}"

    def check(self) -> None:
        if self._identity is not None:
            self._identity.check()

    @property
    def shrunk(self) -> bool:
        return self._identity is not None and self._identity.shrunk

    @property
    def wal_bytes(self) -> float:
        return nan if self._identity is None else self._identity.wal_bytes()

    def _on_read_done(self, read: asyncio.Task[list[Any]]) -> None:
        self._reads.discard(read)
        if not read.cancelled():
            read.exception()  # retrieved, so that asyncio does not log it if the caller has gone


async def direct_fetchall(
    driver: aiosqlite.Connection, sql: str, parameters: tuple[Any, ...]
) -> list[Any]:
    """All rows of a SELECT, in one turn of the driver's thread."""
    return list(await driver.execute_fetchall(sql, parameters))
