"""A PostgreSQL database as the archive: one connection of the writer's own, found again when lost.

What `dealer.eventlog.sqlite` is for a file. The writer's thread turns a loop of its own here, so
that nobody's cancellation on the service's loop ever reaches a transaction.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.pool import NullPool

from dealer.errors import DatabaseAway, DatabaseOld, OutcomeUnknown, RaceLost
from dealer.eventlog import migrate
from dealer.eventlog.faults import explain, held, state
from dealer.eventlog.postgres_batch import Batch
from dealer.eventlog.rows import Append, Locked, Result
from dealer.eventlog.server import Server

if TYPE_CHECKING:
    import asyncpg

T = TypeVar("T")

LOSSES = 4
"""How many connections one batch may lose before its outcome is given up as unknown."""

RACES = 8
"""How often a batch is written again that the server ended for another's sake."""

LOCK_MS = 200
"""How long a batch waits for a lock that cannot be skipped before it leaves that table out."""

SEEN_SECONDS = 5.0
"""A table that was not tried for so long may have been free and locked again meanwhile."""

_NOT_SUPPORTED = "0A000"

# Whatever the statistics say: a batch names its tables, and those are looked up one by one.
_PLANS = {"enable_mergejoin": "off", "enable_seqscan": "off"}


class PostgresStore:
    """The writer's hands: everything here is called on the writer's thread alone.

    `synchronous` NORMAL lets a power cut of the server undo what was acknowledged last; FULL and
    EXTRA do not. The server's `patience` is for how long a batch waits when it is away; while it
    stays away the next ones are refused at once. `busy_seconds` is how long a statement may take
    and how long a request may be `Locked` before it fails; `run` waits that long for a lock.
    """

    def __init__(self, server: Server, *, synchronous: str, busy_seconds: float) -> None:
        self.name = server.name
        self._server = server
        self._seconds = max(busy_seconds, 0.1)
        self._engine = server.engine(
            {
                "synchronous_commit": "off" if synchronous == "NORMAL" else "on",
                "lock_timeout": str(min(int(self._seconds * 1000), LOCK_MS)),
                **_PLANS,
            },
            poolclass=NullPool,
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._connection: AsyncConnection | None = None
        self._raw: asyncpg.Connection[Any] | None = None
        self._away = False
        self._together = True
        # When each locked table was first and last found so, and the locked requests in doubt.
        self._held: dict[bytes, tuple[float, float]] = {}
        self._doubted: set[Append] = set()

    def open(self) -> None:
        """Connects; raises DatabaseOld if the schema is not the newest, or another DatabaseError.

        A schema that several nodes share is never migrated by one that opens.
        """
        self._loop = asyncio.new_event_loop()
        self._wait(self._open())

    def append(self, requests: Sequence[Append]) -> list[Result | Locked]:
        """One answer for each request, and nothing acknowledged that is not on the server's disk.

        Where the database failed that is a DatabaseError: OutcomeUnknown if it may have written
        what was asked, another if it has not. `Locked` requests are to be given again, in their
        order and before later ones of the same table; after `busy_seconds` they fail.
        """
        return self._wait(self._append(requests))

    def run(self, work: Callable[[Connection], T], *, durable: bool) -> T:
        """`work` in a transaction of its own; what it raises undoes it and is raised again.

        Not `durable`: a power cut may undo it.
        """
        return self._wait(self._run(work, durable=durable))

    def maintain(self) -> None:
        """Nothing: a server looks after its own files."""

    def close(self) -> None:
        loop, self._loop = self._loop, None
        if loop is None:
            return
        with suppress(Exception):
            loop.run_until_complete(self._drop())
        with suppress(Exception):
            loop.run_until_complete(self._engine.dispose())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            work.close()
            raise DatabaseAway(f"The log in {self.name} is closed.")
        return self._loop.run_until_complete(work)

    async def _open(self) -> None:
        connection, _ = await self._server.patiently(self._connect, patience=0)
        try:
            found = await connection.run_sync(migrate.current)
            current = await connection.run_sync(migrate.is_current)
        except Exception as error:
            raise explain(error, name=self.name) from error
        if not current:
            raise old(self.name, found)

    async def _append(self, requests: Sequence[Append]) -> list[Result | Locked]:
        results = await self._write(requests)
        if not self._held and Locked not in map(type, results):
            return results
        now = asyncio.get_running_loop().time()
        self._held = {
            table: (since, last)
            for table, (since, last) in self._held.items()
            if now - last < SEEN_SECONDS
        }
        return [self._waited(*each, now=now) for each in zip(requests, results, strict=True)]

    def _waited(self, request: Append, result: Result | Locked, *, now: float) -> Result | Locked:
        """The result, or an error once the request's table has been locked for too long.

        While it stays locked later requests fail at once.
        """
        if not isinstance(result, Locked):
            self._doubted.discard(request)
            self._held.pop(request.table, None)
            return result
        since, _ = self._held.get(request.table, (now, now))
        self._held[request.table] = since, now
        if now - since < self._seconds:
            if result.doubtful:
                self._doubted.add(request)
            return result
        self._doubted.discard(request)
        if request.chain is not None:
            request.chain.broken = True
        return self._unknown("locked") if result.doubtful else held(self.name)

    async def _write(self, requests: Sequence[Append]) -> list[Result | Locked]:
        batch = Batch(requests, name=self.name, together=self._together, doubted=self._doubted)
        losses = races = 0
        while True:
            try:
                _, raw = await self._reach()
                async with asyncio.timeout(2 * self._seconds):
                    await batch.write(raw)
                return batch.results
            except Exception as error:
                told = explain(error, name=self.name)
                if isinstance(told, RaceLost) and races < RACES:
                    races += 1
                    continue
                if state(error) == _NOT_SUPPORTED and races < RACES:
                    # A database in shards has no statement for tables of several of them. The
                    # driver says the same of a statement that a migration has overtaken.
                    races += 1
                    stale = type(error).__name__ == "InvalidCachedStatementError"
                    self._together = self._together and stale
                    continue
                await self._drop()
                lost = isinstance(told, DatabaseAway)
                losses += lost
                if lost and not self._away and losses < LOSSES:
                    continue
                batch.fail(told, self._unknown(type(error).__name__), lost=lost)
                return batch.results

    def _unknown(self, why: str) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"The connection to {self.name} was lost before it answered ({why}): "
            "whether it was kept is not known; the same command id sent again settles it."
        )

    async def _run(self, work: Callable[[Connection], T], *, durable: bool) -> T:
        connection, raw = await self._server.patiently(self._connect, patience=0)
        try:
            begin = f"BEGIN; SET LOCAL lock_timeout = {int(self._seconds * 1000)}"
            await raw.execute(begin if durable else f"{begin}; SET LOCAL synchronous_commit = off")
            result = await connection.run_sync(work)
            await raw.execute("COMMIT")
        except BaseException as error:
            with suppress(Exception):
                await raw.execute("ROLLBACK")
            if raw.is_closed() or raw.is_in_transaction():
                await self._drop()
            if _is_databases(error):
                raise explain(error, name=self.name) from error
            raise
        return result

    async def _reach(self) -> tuple[AsyncConnection, asyncpg.Connection[Any]]:
        patience = 0.0 if self._away else self._server.patience
        try:
            reached = await self._server.patiently(self._connect, patience=patience)
        except DatabaseAway:
            self._away = True
            raise
        self._away = False
        return reached

    async def _connect(self) -> tuple[AsyncConnection, asyncpg.Connection[Any]]:
        if self._connection is not None and self._raw is not None:
            if not self._raw.is_closed():
                return self._connection, self._raw
            await self._drop()
        connection = await self._engine.connect()
        self._connection = connection
        self._raw = (await connection.get_raw_connection()).driver_connection
        assert self._raw is not None
        return connection, self._raw

    async def _drop(self) -> None:
        """Lets go of the connection at once, whatever it is doing; the next batch opens another."""
        connection, raw = self._connection, self._raw
        self._connection = self._raw = None
        if raw is not None:
            raw.terminate()
        if connection is not None:
            with suppress(Exception):
                await connection.close()


def old(name: str, found: str | None) -> DatabaseOld:
    """What is raised where the schema at `name` is `found`, and not the newest."""
    stands = "is empty" if found is None else f"has the schema {found} of an older version"
    return DatabaseOld(f"The database {name} {stands}; run `dealer migrate --database …` on it.")


def _is_databases(error: BaseException) -> bool:
    """Whether the driver, SQLAlchemy or the network raised it, and not the work itself."""
    module = type(error).__module__.partition(".")[0]
    return isinstance(error, (DBAPIError, OSError, TimeoutError)) or module == "asyncpg"
