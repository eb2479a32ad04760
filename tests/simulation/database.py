"""The simulated database: one SQLite database in memory.

A transaction happens in one instant, with waiting before and after it, so that transactions of
several nodes are in one order, and a node may die, or lose the connection, on either side of it.
It can lose what was not synced, be put back to an earlier copy, refuse, be full, and leave it
unknown whether a COMMIT happened.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import StaticPool

from dealer.errors import DatabaseUnavailable
from dealer.eventlog.rows import Append, Result
from dealer.eventlog.sqlite.store import SqliteStore
from tests.simulation.loop import SimulatedLoop
from tests.simulation.threads import Threads

if TYPE_CHECKING:
    from tests.simulation.store import SimulatedNotifier

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


def _connect() -> tuple[sqlite3.Connection, Connection]:
    raw = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
    for pragma in ("recursive_triggers=ON", "synchronous=OFF", "temp_store=MEMORY"):
        raw.execute(f"PRAGMA {pragma}")
    engine = create_engine("sqlite://", creator=lambda: raw, poolclass=StaticPool)
    return raw, engine.connect().execution_options(isolation_level="AUTOCOMMIT")


_shared = cache(_connect)
"""One connection for all runs of a process, which are made one after another."""


class Database:
    """The data, and the faults that are on; `written` is called inside of each transaction,
    `watched` with "before" or "after" and what begins or ends one.

    `refusing` is the time until which every use fails, `full` until which nothing is written;
    `slow` multiplies every wait. `unknown` is how many of the next appends end with an unknown
    outcome, `failing` how many fail before they are written. `models_locked_until` is the time
    until which another transaction locks a read model. With `is_server` only the writer's thread
    commits, and other transactions lock single tables, those in `locked_tables`, until a time.
    """

    def __init__(
        self,
        loop: SimulatedLoop,
        threads: Threads,
        random: Random,
        data: bytes | None = None,
        *,
        shared: bool = False,
    ) -> None:
        self.loop = loop
        self.threads = threads
        self.random = random
        self.raw, self.connection = _shared() if shared else _connect()
        self.raw.deserialize(empty_database() if data is None else data)
        # Read models and presence ask the database for its time.
        self.raw.create_function("julianday", 1, lambda _: 2440587.5 + 20_000 + loop.now / 86_400)
        self.refusing = 0.0
        self.full = 0.0
        self.slow = 1.0
        self.unknown = 0
        self.failing = 0
        self.locked_until = 0.0
        self.models_locked_until = 0.0
        self.is_server = False
        self.locked_tables: dict[bytes, float] = {}
        self.written: list[Written] = []
        self.watched: list[tuple[str, Callable[[str], None]]] = []
        self.notifiers: list[SimulatedNotifier] = []
        self.loses_unsynced = True  # whether `lose_unsynced` will be called
        self.hint_loss = 0.2
        self.transactions = 0
        self._synced: bytes | None = None  # as of the last sync, if something was written since
        self.restored = 0
        self.projections_stopped: dict[str, str] = {}  # why, by table, at any node
        # In a simulation one thread runs at a time; the conformance tests have several.
        self._lock = RLock()

    def check(self) -> None:
        """Raise the error of a database that cannot be reached."""
        if self.loop.now < self.refusing:
            raise DatabaseUnavailable(f"{NAME} cannot be reached: the connection was lost.")

    def wait_seconds(self) -> float:
        random = self.random
        return self.slow * (random.uniform(0, 0.002) if random.random() < 0.95 else 0.05)

    def transaction(
        self,
        work: Callable[[Connection], T],
        *,
        durable: bool,
        committed: Callable[[T], None] = lambda _: None,
    ) -> T:
        """One transaction, in one instant; `committed` is called in that of its COMMIT."""
        self.transactions += 1
        if not durable and self.loses_unsynced and self._synced is None:
            self._synced = self.raw.serialize()
        with self._lock:
            self._executes("before", "BEGIN IMMEDIATE")
            self.raw.execute("BEGIN IMMEDIATE")
            self._executes("after", "BEGIN IMMEDIATE")
            try:
                result = work(self.connection)
                self._executes("before", "COMMIT")
                self.raw.execute("COMMIT")
            except BaseException:
                self.roll_back()
                raise
            committed(result)
        if durable:
            self._synced = None
        self._executes("after", "COMMIT")
        return result

    def _executes(self, when: str, sql: str) -> None:
        for at, callback in self.watched:
            if at == when:
                callback(sql)

    def roll_back(self) -> None:
        """Undo what the present transaction has written, if there is one."""
        if self.raw.in_transaction:
            self.raw.execute("ROLLBACK")

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
