"""The simulated database: one SQLite database in memory, behind the program's store interface.

A transaction happens in one instant, with waiting before and after it, so that transactions of
several nodes are in one order, and a node may die, or lose the connection, on either side of it. The
statements of an append are those of the SQLite store. The database can lose what was not synced, be
put back to an earlier copy, refuse, be full, and leave it unknown whether a COMMIT happened.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from math import nan
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import RLock
from typing import Any, TypeVar

from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import StaticPool

from dealer.errors import (
    DatabaseError,
    DatabaseFull,
    DatabaseLocked,
    DatabaseUnavailable,
    OutcomeUnknown,
)
from dealer.eventlog import event_form
from dealer.eventlog.backends import Backend
from dealer.eventlog.db_errors import FAULTS, translate
from dealer.eventlog.event_form import Form
from dealer.eventlog.read_pool import PoolUse
from dealer.eventlog.rows import Append, Appended, Result
from dealer.eventlog.sqlite import batch
from dealer.eventlog.sqlite.store import SqliteStore
from dealer.eventlog.store import Dialect, OnNotification
from tests.simulation.loop import DOMAIN, SimulatedLoop
from tests.simulation.threads import Threads

T = TypeVar("T")

Written = Callable[[Sequence[Append], Sequence[Result]], None]

NAME = "the simulated database"


@cache
def empty_database() -> bytes:
    """A migrated database without events, as bytes; the pages are small, so copies are quick."""
    with TemporaryDirectory() as folder:
        file = Path(folder) / "log.db"
        store = SqliteStore(file, synchronous="NORMAL", wal_pages=50)
        store.open()
        store.close()
        raw = sqlite3.connect(file, isolation_level=None)
        raw.execute("PRAGMA journal_mode=DELETE")
        raw.execute("PRAGMA page_size=1024")
        raw.execute("VACUUM")
        data = raw.serialize()
        raw.close()
    return data


class _NamedRow(tuple[Any, ...]):
    names: tuple[str, ...]

    @property
    def _mapping(self) -> dict[str, Any]:
        return dict(zip(self.names, self, strict=True))

    def __getattr__(self, name: str) -> Any:
        try:
            return self[self.names.index(name)]
        except ValueError:
            raise AttributeError(name) from None


@cache
def _row_type(names: tuple[str, ...]) -> type[_NamedRow]:
    return type("Row", (_NamedRow,), {"names": names})


class Database:
    """The data, and the faults that are on; `written` is called inside of each transaction.

    `refusing` is the time until which every use fails, `full` until which nothing is written;
    `slow` multiplies every wait. `unknown` is how many of the next appends end with an unknown
    outcome, `failing` how many fail before they are written.
    """

    def __init__(self, loop: SimulatedLoop, threads: Threads, random: Random) -> None:
        self.loop = loop
        self.threads = threads
        self.random = random
        self.raw = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self.raw.deserialize(empty_database())
        for pragma in ("recursive_triggers=ON", "synchronous=OFF", "temp_store=MEMORY"):
            self.raw.execute(f"PRAGMA {pragma}")
        # Read models and presence ask the database for its time.
        self.raw.create_function("julianday", 1, lambda _: 2440587.5 + 20_000 + loop.now / 86_400)
        self.engine = create_engine("sqlite://", creator=lambda: self.raw, poolclass=StaticPool)
        self.connection = self.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        self.refusing = 0.0
        self.full = 0.0
        self.slow = 1.0
        self.unknown = 0
        self.failing = 0
        self.locked_until = 0.0
        self.written: list[Written] = []
        self.notifiers: list[SimulatedNotifier] = []
        self.hint_loss = 0.2
        self.transactions = 0
        self._synced: bytes | None = None  # as of the last sync, if something was written since
        self.restored = 0
        # In a simulation one thread runs at a time; the conformance tests have several.
        self._lock = RLock()

    def check(self) -> None:
        """Raise the error of a database that cannot be reached."""
        if self.loop.now < self.refusing:
            raise DatabaseUnavailable(f"{NAME} cannot be reached: the connection was lost.")

    def wait_seconds(self) -> float:
        random = self.random
        return self.slow * (random.uniform(0, 0.002) if random.random() < 0.95 else 0.05)

    def transaction(self, work: Callable[[Connection], T], *, durable: bool) -> T:
        """One transaction, in one instant."""
        self.transactions += 1
        if not durable and self._synced is None:
            self._synced = self.raw.serialize()
        execute = self.raw.execute
        with self._lock:
            execute("BEGIN IMMEDIATE")
            try:
                result = work(self.connection)
                execute("COMMIT")
            except BaseException:
                if self.raw.in_transaction:
                    execute("ROLLBACK")
                raise
        if durable:
            self._synced = None
        return result

    def copy(self) -> bytes:
        return self.raw.serialize()

    def put_back(self, data: bytes) -> None:
        """Replace the database by an earlier copy of it."""
        self.raw.deserialize(data)
        self._synced = None
        self.restored += 1

    def lose_unsynced(self) -> bool:
        """Undo what was written since the last sync; whether there was something."""
        data, self._synced = self._synced, None
        if data is not None:
            self.raw.deserialize(data)
        return data is not None

    def fetch(self, sql: str, parameters: Sequence[Any] = ()) -> list[Any]:
        """Rows as tuples, with the names of their columns as SQLAlchemy's have them."""
        with self._lock:
            cursor = self.raw.execute(sql, parameters)
            rows = cursor.fetchall()
        if not rows:
            return rows
        kind = _row_type(tuple(name for name, *_ in cursor.description))
        return [kind(row) for row in rows]

    def backend(self) -> Backend:
        store = SimulatedStore(self)
        return Backend(store, store, lambda: SimulatedReader(self))


class SimulatedStore:
    """`dealer.eventlog.store.LoopStore` on the simulated database."""

    def __init__(self, database: Database) -> None:
        self.name = NAME
        self.commit_seconds = 0.0
        self._database = database
        self._streams: dict[bytes, int] = {}
        self._restored = database.restored
        self._form = Form.MIXED

    def open(self) -> None:
        self._pause()
        self._database.check()
        self._form = event_form.read(self._database.connection)

    def append(self, requests: Sequence[Append], *, wait: bool = True) -> Sequence[Result]:
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
            for listener in database.written:
                listener(requests, results)
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
            results = batch.write_batch(connection, requests, self._streams, form=self._form)
            if results is None:
                raw.execute("ROLLBACK TO batch")
                self._streams.clear()
                results = batch.write_individually(
                    connection, requests, self._streams, name=NAME, form=self._form
                )
            raw.execute("RELEASE batch")
            return results

        try:
            return self._database.transaction(work, durable=True)
        except BaseException as error:
            self._streams.clear()
            raise translate(error, name=NAME) from error

    def run(self, work: Callable[[Connection], T], *, durable: bool) -> T:
        database = self._database
        self._pause()
        database.check()
        if database.loop.now < database.full:
            raise DatabaseFull(f"The disk that holds {NAME} is full.")
        try:
            result = database.transaction(work, durable=durable)
        except FAULTS as error:
            raise translate(error, name=NAME) from error
        self._pause()
        return result

    def maintenance_due(self) -> bool:
        return False

    def maintain(self) -> None:
        pass

    def close(self) -> None:
        pass

    def _pause(self) -> None:
        if not self._database.threads.on_loop():
            self._database.threads.pause(self._database.wait_seconds())


class SimulatedReader:
    """`dealer.eventlog.store.Reader` on the simulated database."""

    dialect: Dialect = "sqlite"
    shared = True
    shrunk = False
    wal_bytes = nan
    pool = PoolUse(0, 4)

    def __init__(self, database: Database) -> None:
        self.name = NAME
        self._database = database

    async def fetch(self, sql: str, parameters: tuple[Any, ...]) -> list[Any]:
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

    async def version(self) -> str:
        return NAME

    def check(self) -> None:
        pass

    def notifier(self, on_notification: OnNotification) -> SimulatedNotifier:
        return SimulatedNotifier(self._database, on_notification)

    async def close(self) -> None:
        pass


class SimulatedNotifier:
    """Hints between nodes, which may be lost, late, doubled and in another order."""

    def __init__(self, database: Database, on_notification: OnNotification) -> None:
        self.sent = 0
        self.received = 0
        self._database = database
        self._on_notification = on_notification
        self._domain = DOMAIN.get()

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
                context = None if other._domain is None else other._domain.context
                database.loop.call_later(delay, other._receive, found, context=context)
                if database.random.random() < 0.9:
                    break

    def _receive(self, tables: set[bytes]) -> None:
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
