"""Pooled read connections to an SQLite file, each used by one thread at a time.

One more is the event loop's own, for reads that are shorter than a change of threads.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from math import nan
from typing import Any

from dealer.eventlog.db_errors import FAULTS, translate
from dealer.eventlog.protocols import Dialect, PoolUse, Reader, no_connection
from dealer.eventlog.sqlite.file_identity import FileIdentity
from dealer.eventlog.sqlite.wal import fetch_named, library_version


class SqliteReader(Reader):
    """Reads an SQLite file on threads, by at most `size` connections that `connect` opens.

    A read waits at most `seconds` for one that is free. With `identity` every read fails once the
    file was deleted or replaced.
    """

    dialect: Dialect = "sqlite"
    shared = False

    def __init__(
        self,
        connect: Callable[[], sqlite3.Connection],
        name: str,
        *,
        size: int,
        seconds: float,
        identity: FileIdentity | None = None,
    ) -> None:
        super().__init__(name)
        self._connect = connect
        self._size = size
        self._seconds = seconds
        self._identity = identity
        self._unused = asyncio.Semaphore(size)
        self._idle: list[sqlite3.Connection] = []  # taken and put back by the threads
        self._own: sqlite3.Connection | None = None  # the event loop's
        self._threads = ThreadPoolExecutor(size, "log reader")

    async def fetch(self, sql: str, parameters: tuple[Any, ...]) -> list[Any]:
        self.check()
        try:
            async with asyncio.timeout(self._seconds):
                await self._unused.acquire()
        except TimeoutError:
            raise no_connection() from None
        loop = asyncio.get_running_loop()
        read = loop.run_in_executor(self._threads, self._read, sql, parameters)
        try:
            rows = await self._completed(read)
            # A connection that was opened for this read may have opened another file.
            self.check()
            return rows
        except FAULTS as error:
            self.check()
            raise translate(error, name=self.name) from error

    def fetch_now(self, sql: str, parameters: tuple[Any, ...]) -> list[Any] | None:
        try:
            if self._own is None:
                self._own = self._connect()
                self._own.execute("PRAGMA busy_timeout=0")
            rows = direct_fetchall(self._own, sql, parameters)
        except FAULTS:
            return None  # `fetch` waits for a lock, or raises what is wrong
        self.check()  # after it: the connection may have been opened to another file
        return rows

    async def version(self) -> str:
        return f"SQLite {library_version()}"

    def check(self) -> None:
        if self._identity is not None:
            self._identity.check()

    @property
    def shrunk(self) -> bool:
        return self._identity is not None and self._identity.shrunk

    @property
    def pool(self) -> PoolUse:
        return PoolUse(len(self._reads), self._size)

    @property
    def wal_bytes(self) -> float:
        return nan if self._identity is None else self._identity.wal_bytes()

    async def _close(self) -> None:
        self._threads.shutdown(wait=False)
        while self._idle:
            self._idle.pop().close()
        if self._own is not None:
            self._own.close()

    def _read(self, sql: str, parameters: tuple[Any, ...]) -> list[Any]:
        """All rows of a SELECT, on a thread."""
        try:
            driver = self._idle.pop()
        except IndexError:  # not asked before: another thread may take the last one
            driver = self._connect()
        try:
            return direct_fetchall(driver, sql, parameters)
        finally:
            self._idle.append(driver)

    def _on_read_done(self, read: asyncio.Future[list[Any]]) -> None:
        self._unused.release()
        super()._on_read_done(read)


def direct_fetchall(driver: sqlite3.Connection, sql: str, parameters: tuple[Any, ...]) -> list[Any]:
    """All rows of a SELECT, with the names of its columns."""
    return fetch_named(driver.execute(sql, parameters))
