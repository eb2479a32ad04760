"""Pooled read connections to a PostgreSQL database, and LISTEN/NOTIFY hints between nodes.

A hint names tables that were appended to, or that have a first subscriber. It may be lost, repeated
or late: every node also polls the heads of the tables that it serves. Hints are sent after the
commit, on a connection of their own (NOTIFY takes a lock of the whole server at its commit), the
first at once and then at most 20 per second. Another connection listens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from logging import getLogger
from typing import TYPE_CHECKING, Any

from sqlalchemy.ext.asyncio import AsyncEngine

from dealer.backoff import around
from dealer.eventlog.db_errors import reason
from dealer.eventlog.engine_reader import EngineReader
from dealer.eventlog.postgres.cluster import require_whole
from dealer.eventlog.postgres.database import IDENTITY, PostgresDatabase
from dealer.eventlog.protocols import Dialect, OnNotification

if TYPE_CHECKING:
    import asyncpg

CHANNEL = "dealer_appended"
PAUSE_SECONDS = 0.05
RETRY_SECONDS = 1.0
_IDS = 200  # of 32 hex digits each: a payload has less than 8,000 bytes
_NOTIFY = "SELECT pg_notify($1, p) FROM unnest($2::text[]) AS p"

_log = getLogger("dealer.eventlog")


class PostgresReader(EngineReader):
    """Reads a PostgreSQL database.

    While the server is unreachable a read is tried again for `database.retry_seconds`.
    """

    dialect: Dialect = "postgresql"
    shared = True

    def __init__(self, engine: AsyncEngine, database: PostgresDatabase) -> None:
        super().__init__(engine, database.name)
        self._database = database

    async def fetch(self, sql: str, parameters: tuple[Any, ...]) -> list[Any]:
        read = partial(self._fetch, sql, parameters)
        return await self._database.with_retry(read, seconds=self._database.retry_seconds)

    async def identity(self) -> str:
        ((identity,),) = await self.fetch(IDENTITY, ())
        return str(identity)

    async def fence(self, known: Iterable[str]) -> str:
        identity = await self.identity()
        for each in filter(None, (*known, self._database.newest)):
            self._database.require_newest(identity, each)
        self._database.newest = identity
        return identity

    async def require_whole(self) -> None:
        await self._database.with_retry(self._require_whole, seconds=self._database.retry_seconds)

    async def version(self) -> str:
        ((number,),) = await self.fetch("SHOW server_version", ())
        return f"PostgreSQL {number}"

    def notifier(self, on_notification: OnNotification) -> Notifier:
        return Notifier(self._database, on_notification)

    async def _require_whole(self) -> None:
        async with self._engine.connect() as connection:
            await connection.run_sync(require_whole, name=self.name)


class Notifier:
    """Implements `dealer.eventlog.protocols.Notifier`; `on_notification` is called on the loop."""

    def __init__(self, database: PostgresDatabase, on_notification: OnNotification) -> None:
        self._database = database
        self._on_notification = on_notification
        self.sent = 0
        self.received = 0
        self._pending: set[bytes] = set()
        self._has_pending = asyncio.Event()
        self._own_pid = 0
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [
            loop.create_task(self._run_forever(work)) for work in (self._send, self._listen)
        ]

    def notify(self, tables: Iterable[bytes]) -> None:
        self._pending.update(tables)
        if self._pending:
            self._has_pending.set()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _run_forever(self, work: Callable[[asyncpg.Connection[Any]], Any]) -> None:
        while True:
            try:
                connection = await self._database.connect()
            except Exception as error:
                _log.debug("hints unavailable", extra={"fields": {"says": reason(error)}})
            else:
                try:
                    await work(connection)
                except Exception as error:
                    _log.debug("hint connection lost", extra={"fields": {"says": reason(error)}})
                finally:
                    connection.terminate()
            # The other nodes find these appends by polling.
            self._pending.clear()
            await asyncio.sleep(around(RETRY_SECONDS))

    async def _send(self, connection: asyncpg.Connection[Any]) -> None:
        self._own_pid = connection.get_server_pid()
        while True:
            await self._has_pending.wait()
            self._has_pending.clear()
            ids = [table.hex() for table in self._pending]
            self._pending.clear()
            texts = ["".join(ids[at : at + _IDS]) for at in range(0, len(ids), _IDS)]
            await connection.execute(_NOTIFY, CHANNEL, texts)
            self.sent += len(ids)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _listen(self, connection: asyncpg.Connection[Any]) -> None:
        lost = asyncio.Event()
        connection.add_termination_listener(lambda _: lost.set())
        await connection.add_listener(CHANNEL, self._on_hint)
        await lost.wait()

    def _on_hint(self, connection: object, pid: int, channel: str, text: str) -> None:
        if pid == self._own_pid:
            return
        # Any database user may notify: ignore payloads that are not lists of table ids.
        with suppress(ValueError):
            ids = bytes.fromhex(text)
            tables = {ids[at : at + 16] for at in range(0, len(ids), 16)}
            self.received += len(tables)
            self._on_notification(tables)
