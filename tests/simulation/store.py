"""The program's store interface on the simulated database: a store, a reader, and hints.

The statements of an append are those of the SQLite store.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from dealer.errors import DatabaseError, DatabaseFull, DatabaseLocked, OutcomeUnknown
from dealer.eventlog.backends import Backend
from dealer.eventlog.db_errors import FAULTS, translate
from dealer.eventlog.postgres.batch import Locked
from dealer.eventlog.postgres.store import LockedTables
from dealer.eventlog.protocols import Connection, Dialect, OnNotification, PoolUse, Reader
from dealer.eventlog.rows import Append, Appended, Result
from dealer.eventlog.sqlite.store import write_batch, write_individually
from dealer.projector.scheduler import ProjectionScheduler
from tests.simulation.database import NAME, Database
from tests.simulation.loop import DOMAIN

T = TypeVar("T")


PATIENT = 3600.0
"""Seconds: no simulated lock lasts so long."""


def backend(database: Database) -> Backend:
    """What `Log.open` opens: a store and readers; on a file both threads may commit."""
    return Backend(SimulatedStore(database), lambda: SimulatedReader(database))


class SimulatedStore:
    """`dealer.eventlog.protocols.Store` on the simulated database."""

    def __init__(self, database: Database) -> None:
        self.name = NAME
        self.commit_seconds = 0.0
        self.on_loop = not database.is_server
        self.undecided = 0
        self._locked = LockedTables(seconds=PATIENT)
        self._database = database
        self._streams: dict[bytes, int] = {}
        self._restored = database.restored

    def open(self) -> None:
        self._pause()
        self._database.check()

    def append(self, requests: Sequence[Append], *, wait: bool = True) -> Any:
        """`Store.append`; of a server it decides the requests of a locked table later."""
        if self.on_loop:
            return requests, self._append(requests, wait=wait)
        now, locked = self._database.loop.now, self._database.locked_tables
        batch = self._locked.take(requests)
        free = [request for request in batch if locked.get(request.table, 0.0) <= now]
        try:
            written = iter(self._append(free, wait=wait) if free else ())
        except DatabaseError as error:
            for request in free:
                if request.chain is not None:
                    request.chain.broken = True
            written = iter([error] * len(free))
        is_free = set(map(id, free))
        results = [next(written) if id(one) in is_free else Locked() for one in batch]
        decided = self._locked.record(batch, results)
        self.undecided = self._locked.count
        return decided

    def seconds_until_due(self) -> float | None:
        return self._locked.seconds_until_due()

    def _append(self, requests: Sequence[Append], *, wait: bool) -> Sequence[Result]:
        database = self._database
        if wait:
            self._pause()
        while database.loop.now < database.locked_until:
            if not wait:
                raise DatabaseLocked(f"{NAME} is locked.")
            database.threads.pause(database.locked_until - database.loop.now)
        self.commit_seconds = database.wait_seconds() if wait else database.random.random() / 500
        database.check()
        if database.loop.now < database.full:
            raise DatabaseFull(f"The disk that holds {NAME} is full.")
        if database.failing > 0:
            database.failing -= 1
            raise DatabaseError(f"The disk that holds {NAME} failed.")
        outcome_unknown, written = database.unknown > 0, True
        if outcome_unknown:
            database.unknown -= 1
            written = database.random.random() < 0.5
        results: Sequence[Result] = []
        if written:
            results = self._write(requests)
        if wait:
            self._pause()
        if outcome_unknown:
            self._streams.clear()
            raise OutcomeUnknown(f"The disk that holds {NAME} failed during COMMIT.")
        return results

    def _write(self, requests: Sequence[Append]) -> Sequence[Result]:
        if self._restored != self._database.restored:
            self._restored = self._database.restored
            self._streams.clear()

        def work(connection: Connection) -> Sequence[Result]:
            raw = self._database.raw
            raw.execute("SAVEPOINT batch")
            results = write_batch(connection, raw, requests, self._streams)
            if results is None:
                raw.execute("ROLLBACK TO batch")
                self._streams.clear()
                results = write_individually(connection, requests, self._streams, name=NAME)
            raw.execute("RELEASE batch")
            return results

        def committed(results: Sequence[Result]) -> None:
            for listener in self._database.written:
                listener(requests, results)

        try:
            return self._database.transaction(work, durable=True, committed=committed)
        except BaseException as error:
            self._streams.clear()
            raise translate(error, name=NAME) from error

    def run_by_worker(self, work: Callable[[Connection], bool]) -> bool:
        return self.run(work, durable=False)

    def unreachable(self) -> list[str]:
        return []

    def run(self, work: Callable[[Connection], T], *, durable: bool) -> T:
        database = self._database
        self._pause()
        projection = getattr(work, "__self__", None)
        if isinstance(projection, ProjectionScheduler):
            while database.loop.now < database.models_locked_until:
                database.threads.pause(database.models_locked_until - database.loop.now)
        database.check()
        if database.loop.now < database.full:
            raise DatabaseFull(f"The disk that holds {NAME} is full.")
        try:
            result = database.transaction(work, durable=durable)
        except FAULTS as error:
            raise translate(error, name=NAME) from error
        if isinstance(projection, ProjectionScheduler):
            for stopped in projection.projector.stopped.values():
                database.projections_stopped[stopped.table] = stopped.sentence
        self._pause()
        return result

    def maintenance_due(self) -> bool:
        return False

    def maintain(self) -> None:
        pass

    def close(self) -> list[Append]:
        return self._locked.drain()

    def _pause(self) -> None:
        if not self._database.threads.on_loop():
            self._database.threads.pause(self._database.wait_seconds())


class SimulatedReader(Reader):
    """`dealer.eventlog.protocols.Reader` on the simulated database."""

    dialect: Dialect = "sqlite"
    shared = True

    def __init__(self, database: Database) -> None:
        self.name = NAME
        self._database = database

    async def fetch(
        self, sql: str, parameters: tuple[Any, ...], *, named: bool = False
    ) -> list[Any]:
        database = self._database
        # Mostly the wait is on one side of the read, which costs half as much as on both.
        where = database.random.random()
        if where < 0.6:
            await asyncio.sleep(database.wait_seconds())
        database.check()
        try:
            rows = database.fetch(sql, parameters)
        except FAULTS as error:
            raise translate(error, name=NAME) from error
        if where > 0.4:
            await asyncio.sleep(database.wait_seconds())
        return rows

    async def identity(self) -> str:
        self._database.check()
        return f"copy-{self._database.restored}"

    async def version(self) -> str:
        return NAME

    @property
    def pool(self) -> PoolUse:
        return PoolUse(0, 4)

    def notifier(self, on_notification: OnNotification) -> SimulatedNotifier:
        return SimulatedNotifier(self._database, on_notification)

    async def close(self) -> None:
        pass


class SimulatedNotifier:
    """Hints between nodes, which may be lost, late, doubled and in another order."""

    def __init__(self, database: Database, on_notification: OnNotification) -> None:
        self.sent = 0
        self.received = 0
        self.domain = DOMAIN.get()
        self._database = database
        self._on_notification = on_notification

    def start(self) -> None:
        self._database.notifiers.append(self)

    def notify(self, tables: Iterable[bytes]) -> None:
        database, found = self._database, set(tables)
        if not found:
            return
        self.sent += len(found)
        for other in database.notifiers:
            if other is self:
                continue
            while database.random.random() >= database.hint_loss:
                delay = database.random.choice((0.001, 0.02, 0.4))
                context = None if other.domain is None else other.domain.context
                database.loop.call_later(delay, other.receive, found, context=context)
                if database.random.random() < 0.9:
                    break

    def receive(self, tables: set[bytes]) -> None:
        """Pass a hint on."""
        self.received += len(tables)
        self._on_notification(tables)

    async def close(self) -> None:
        if self in self._database.notifiers:
            self._database.notifiers.remove(self)


def new_rows(requests: Sequence[Append], results: Sequence[Result]) -> Iterable[Append]:
    """The requests of a transaction whose events were written by it."""
    for request, result in zip(requests, results, strict=True):
        if isinstance(result, Appended) and request.rows:
            yield request
