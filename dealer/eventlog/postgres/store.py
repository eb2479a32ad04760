"""PostgreSQL implementation of `protocols.Store`: a connection to each server, reopened if lost.

The writer thread runs an event loop of its own, so that no cancellation on the server's loop can
reach a transaction.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import Any, TypeVar

from dealer.backoff import Backoff
from dealer.errors import ConcurrentUpdate, DatabaseUnavailable, DealerError, OutcomeUnknown
from dealer.eventlog.db_errors import (
    is_database_error,
    lock_timeout_error,
    reason,
    translate,
)
from dealer.eventlog.postgres.batch import Batch, Locked
from dealer.eventlog.postgres.cluster import Server, Shards, require_whole, settings_at_workers
from dealer.eventlog.postgres.database import PostgresDatabase, Session
from dealer.eventlog.protocols import Connection
from dealer.eventlog.rows import Append, Result
from dealer.eventlog.schema import current_revision, is_newest, outdated

T = TypeVar("T")

MAX_LOST_CONNECTIONS = 4
"""How many connections one batch may lose before its outcome is reported as unknown."""

MAX_RETRIES = 8
"""How often a batch is tried again after a deadlock or serialization failure."""

LOCK_MS = 200
"""How long a batch waits for a lock that SKIP LOCKED does not skip."""

SLICE_LOCK_MS = 50
"""How long work that can be done later waits for a lock: appends wait for that work."""

FIRST_DELAY = 0.002
LONGEST_DELAY = 0.1
"""Seconds between two attempts on one table."""

SEEN_SECONDS = 5.0
"""A table that was not tried for so long may have been unlocked and locked again in between."""

_AT_ONCE = 512
"""Appends of one table that are tried together, once it is free."""

_NEW_BACKOFF = partial(Backoff, first=FIRST_DELAY, longest=LONGEST_DELAY)


class PostgresStore:
    """Writes a PostgreSQL database.

    With `synchronous` NORMAL a power failure of the server can undo the last acknowledged events,
    with FULL and EXTRA it cannot. A batch is tried again for the database's `retry_seconds` while
    the server is unreachable; until it is reachable again, the next batches fail at once.
    `busy_seconds` is how long a statement may take and how long a table may be locked before
    appends to it fail; durable work waits that long for a lock, other work `SLICE_LOCK_MS`.
    """

    on_loop = False
    commit_seconds = 0.0
    undecided = 0

    def __init__(
        self, database: PostgresDatabase, *, synchronous: str, busy_seconds: float
    ) -> None:
        self.name = database.name
        self._database = database
        self._busy_seconds = max(busy_seconds, 0.1)
        self._settings = {
            "synchronous_commit": "off" if synchronous == "NORMAL" else "on",
            "lock_timeout": str(min(int(self._busy_seconds * 1000), LOCK_MS)),
        }
        self._loop: asyncio.AbstractEventLoop | None = None
        self._session = Session(database, self._settings)
        self._shards: Shards | None = None  # of a log that is distributed
        self._workers: dict[Server, Session] = {}
        self._locked = LockedTables(seconds=self._busy_seconds)

    def open(self) -> None:
        """Connect; raises SchemaOutdated if the schema is not the newest, or another DatabaseError.

        A database that several nodes share is migrated by `dealer migrate` only.
        """
        self._loop = asyncio.new_event_loop()
        self._wait(self._open())

    def append(
        self, requests: Sequence[Append], *, wait: bool = True
    ) -> tuple[Sequence[Append], Sequence[Result]]:
        """See `Store.append`; a request whose table is locked is decided by a later call.

        If the database failed the results are DatabaseErrors: OutcomeUnknown for a request that
        may have been written, another error if it was not.
        """
        if self._loop is None:
            raise DatabaseUnavailable(f"The log in {self.name} is closed.")
        batch = self._locked.take(requests)
        write = self._write if self._shards is None else self._write_by_worker
        results: Sequence[Result | Locked] = self._wait(write(batch)) if batch else ()
        decided, results = self._locked.record(batch, results)
        self.undecided = self._locked.count
        return decided, [self._result(*pair) for pair in zip(decided, results, strict=True)]

    def seconds_until_due(self) -> float | None:
        return self._locked.seconds_until_due()

    def _result(self, request: Append, result: Result | Locked) -> Result:
        """The result, or the error of a request whose table has been locked for too long."""
        if not isinstance(result, Locked):
            return result
        if request.chain is not None:
            request.chain.broken = True
        worker = self._shards and self._shards.known(request.table)
        unreachable = (self._session_of(worker) if worker else self._session).error
        if result.in_doubt:
            return self._outcome_unknown("it is unreachable" if unreachable else "locked")
        return unreachable or lock_timeout_error(self.name)

    def run(self, work: Callable[[Connection], T], *, durable: bool) -> T:
        return self._wait(self._run(self._session, work, durable=durable))

    def run_by_worker(self, work: Callable[[Connection], bool]) -> bool:
        if self._shards is None:
            return self.run(work, durable=False)
        return self._wait(self._run_by_worker(work))

    def unreachable(self) -> list[str]:
        if self._shards is None:
            return []
        down = [worker for worker, session in [*self._workers.items()] if session.error]
        # One that was replaced has no shards, and is not tried again.
        return [self._shards.describe_down(each) for each in down if each in self._shards.workers]

    def maintenance_due(self) -> bool:
        """False; see `maintain`."""
        return False

    def maintain(self) -> None:
        """Nothing to do: a server maintains its own files."""

    def close(self) -> list[Append]:
        loop, self._loop = self._loop, None
        if loop is None:
            return []
        with suppress(Exception):
            for session in (self._session, *self._workers.values()):
                loop.run_until_complete(session.dispose())
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
        return self._locked.drain()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            work.close()
            raise DatabaseUnavailable(f"The log in {self.name} is closed.")
        return self._loop.run_until_complete(work)

    async def _open(self) -> None:
        database, seconds = self._database, self._database.retry_seconds
        await database.with_retry(database.require_sessions, seconds=0, recovery=seconds)
        connection, _ = await database.with_retry(
            self._session.connect, seconds=0, recovery=seconds
        )
        try:
            found = await connection.run_sync(current_revision)
            if not is_newest(found):
                raise outdated(self.name, found)
            if await connection.run_sync(require_whole, name=self.name):
                self._shards = Shards()
                self._settings = self._settings | await connection.run_sync(settings_at_workers)
        except DealerError:
            raise
        except Exception as error:
            raise translate(error, name=self.name) from error

    async def _write_by_worker(self, requests: Sequence[Append]) -> list[Result | Locked]:
        """Write the tables of each worker in a transaction of their own, side by side."""
        assert self._shards is not None
        await self._find({request.table for request in requests})
        groups: dict[Server | None, list[int]] = {}
        for index, request in enumerate(requests):
            groups.setdefault(self._shards.known(request.table), []).append(index)
        results: dict[int, Result | Locked] = {
            index: Locked(requests[index] in self._locked.in_doubt)
            for index in groups.pop(None, ())
        }
        parts = [[requests[index] for index in indexes] for indexes in groups.values()]
        sessions = [self._session_of(worker) for worker in groups if worker is not None]
        written = await asyncio.gather(*map(self._write, parts, sessions))
        for indexes, found in zip(groups.values(), written, strict=True):
            results |= zip(indexes, found, strict=True)
        return [results[index] for index in range(len(requests))]

    async def _run_by_worker(self, work: Callable[[Connection], bool]) -> bool:
        """Whether there is more at any worker; raises the error of one only if there is not."""
        assert self._shards is not None
        more, failure = False, None
        await self._find(())
        for worker in self._shards.workers:
            session = self._session_of(worker)
            try:
                await session.connect_with_retry(once=True)
                there = partial(self._shards.run_at, worker=worker, work=work)
                more |= await self._run(session, there, durable=False)
            except DealerError as error:
                failure = error
        if failure is not None and not more:
            raise failure
        return more

    async def _find(self, tables: Collection[bytes]) -> None:
        assert self._shards is not None
        if self._shards.is_due(tables):
            # The workers that are known can be written to without the coordinator.
            with suppress(DatabaseUnavailable):
                await self._session.connect_with_retry(once=True)
                find = partial(self._shards.find, tables=tables)
                await self._run(self._session, find, durable=False)

    def _session_of(self, worker: Server) -> Session:
        if worker not in self._workers:
            self._workers[worker] = Session(self._database, self._settings, worker)
        return self._workers[worker]

    async def _write(
        self, requests: Sequence[Append], session: Session | None = None
    ) -> list[Result | Locked]:
        in_doubt = self._locked.in_doubt
        sharded = session is not None
        session = session or self._session
        batch = Batch(requests, name=self.name, sharded=sharded, in_doubt=in_doubt)
        losses = retries = 0
        while True:
            try:
                _, raw = await session.connect_with_retry(once=sharded)
                async with asyncio.timeout(2 * self._busy_seconds):
                    await batch.write(raw)
                return batch.results
            except Exception as error:
                translated = translate(error, name=self.name)
                # The driver cannot use a statement that was prepared before a migration.
                stale = type(error).__name__ == "InvalidCachedStatementError"
                if (isinstance(translated, ConcurrentUpdate) or stale) and retries < MAX_RETRIES:
                    retries += 1
                    continue
                await session.disconnect()
                lost = isinstance(translated, DatabaseUnavailable)
                losses += lost
                if lost and sharded:
                    # Its tables wait, as if they were locked, and no other tables do.
                    batch.defer()
                elif lost and session.error is None and losses < MAX_LOST_CONNECTIONS:
                    continue
                else:
                    batch.fail(translated, self._outcome_unknown(reason(error)), lost=lost)
                return batch.results

    def _outcome_unknown(self, why: str) -> OutcomeUnknown:
        return OutcomeUnknown(
            f"The connection to {self.name} was lost before it answered ({why}): "
            "it is not known whether the events were written. Send the same command id again to "
            "find out."
        )

    async def _run(self, session: Session, work: Callable[[Connection], T], *, durable: bool) -> T:
        connection, raw = await self._database.with_retry(session.connect, seconds=0)
        wait = int(self._busy_seconds * 1000) if durable else SLICE_LOCK_MS
        begin = f"BEGIN; SET LOCAL lock_timeout = {wait}"
        try:
            await raw.execute(begin if durable else f"{begin}; SET LOCAL synchronous_commit = off")
            result = await connection.run_sync(work)
            await raw.execute("COMMIT")
        except BaseException as error:
            with suppress(Exception):
                await raw.execute("ROLLBACK")
            if raw.is_closed() or raw.is_in_transaction():
                await session.disconnect()
            if is_database_error(error):
                raise translate(error, name=self.name) from error
            raise
        return result


@dataclass(slots=True)
class _Table:
    backoff: Backoff = field(default_factory=_NEW_BACKOFF)
    queue: deque[Append] = field(default_factory=deque)
    since: float | None = None  # when it was found locked, None once it was free
    tried: float = 0.0
    due: float = 0.0


class LockedTables:
    """The tables that were locked when they were last tried, with their appends.

    A process that freezes in a transaction delays only the tables that it has locked. The order
    within a table is kept: later appends to it queue behind the locked ones. The delay between two
    attempts grows, so that a table that stays locked costs the batches of other tables little.

    If a table stays locked for `seconds`, all of its appends fail. `count` appends are queued.
    `in_doubt` are those that an earlier attempt may have written.
    """

    def __init__(self, *, seconds: float) -> None:
        self.count = 0
        self.in_doubt: set[Append] = set()
        self._seconds = seconds
        self._tables: dict[bytes, _Table] = {}
        self._trying: Sequence[Append] = ()  # taken, and without a result

    def take(self, requests: Sequence[Append]) -> Sequence[Append]:
        """What to try now, in the order of each table: what is due, and those of `requests` that
        do not queue behind it. Then call `record`.

        If a table was locked at the last attempt, one append is tried: the others need not be
        sent to the database each time.
        """
        if not self._tables:
            return requests
        now = monotonic()
        batch: list[Append] = []
        for table in self._tables.values():
            if table.due <= now:
                count = min(len(table.queue), _AT_ONCE if table.since is None else 1)
                batch += [table.queue.popleft() for _ in range(count)]
        for request in requests:
            known = self._tables.get(request.table)
            if known is not None and known.queue:
                known.queue.append(request)
            else:
                batch.append(request)
        self.count, self._trying = self._counted(), batch
        return batch

    def record(
        self, batch: Sequence[Append], results: Sequence[Result | Locked]
    ) -> tuple[Sequence[Append], Sequence[Result | Locked]]:
        """The decided appends and their results; the others are queued, before those of `take`.

        Those whose table has been locked for too long are decided, as `Locked`.
        """
        if not self._tables and Locked not in map(type, results):
            return batch, results
        now, self._trying = monotonic(), ()
        decided: list[tuple[Append, Result | Locked]] = []
        locked: dict[bytes, list[Append]] = {}
        for request, result in zip(batch, results, strict=True):
            if isinstance(result, Locked):
                locked.setdefault(request.table, []).append(request)
                if result.in_doubt:
                    self.in_doubt.add(request)
                continue
            decided.append((request, result))
            self.in_doubt.discard(request)
            table = self._tables.get(request.table)
            if table is not None:
                table.since, table.due = None, now
                table.backoff.reset()
        for table_id, requests in locked.items():
            table = self._tables.setdefault(table_id, _Table())
            table.queue.extendleft(reversed(requests))
            if table.since is None or now - table.tried >= SEEN_SECONDS:
                table.since = now
            table.tried, table.due = now, now + table.backoff.next()
            if now - table.since >= self._seconds:
                for request in table.queue:
                    decided.append((request, Locked(request in self.in_doubt)))
                    self.in_doubt.discard(request)
                table.queue.clear()
        self._tables = {
            table_id: table
            for table_id, table in self._tables.items()
            if table.queue or (table.since is not None and now - table.tried < SEEN_SECONDS)
        }
        self.count = self._counted()
        return [request for request, _ in decided], [result for _, result in decided]

    def seconds_until_due(self) -> float | None:
        """Seconds until the next attempt; None if nothing is queued."""
        due = [table.due for table in self._tables.values() if table.queue]
        return max(0.0, min(due) - monotonic()) if due else None

    def drain(self) -> list[Append]:
        """Remove and return all appends, also those that were taken and without a result."""
        queued = [request for table in self._tables.values() for request in table.queue]
        found = [*self._trying, *queued]
        self._tables.clear()
        self.count, self._trying = 0, ()
        return found

    def _counted(self) -> int:
        return sum([len(table.queue) for table in self._tables.values()])
