"""The interfaces of a database: `Store` for the writer, `Reader` for the event loop.

`dealer.eventlog.backends` chooses the implementation: `dealer.eventlog.sqlite` or
`dealer.eventlog.postgres`. The tests in `tests/eventlog/test_store_conformance.py` run on both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from math import nan
from typing import Any, Literal, NamedTuple, Protocol, TypeVar

from dealer.errors import Overloaded
from dealer.eventlog.rows import Append, Result

T = TypeVar("T")

Dialect = Literal["sqlite", "postgresql"]


class Rows(Protocol):
    """The result of a statement: rows with the names of their columns as attributes."""

    @property
    def rowcount(self) -> int:
        """How many rows were changed."""

    def __iter__(self) -> Iterator[Any]: ...

    def fetchall(self) -> Sequence[Any]: ...

    def first(self) -> Any:
        """The first row, or None."""

    def one(self) -> Any:
        """The only row."""

    def scalar(self) -> Any:
        """The first column of the first row, or None."""

    def scalar_one(self) -> Any:
        """The only column of the only row."""


class Connection(Protocol):
    """A connection on which work in a transaction runs: SQLAlchemy's, or one to an SQLite file."""

    @property
    def dialect(self) -> Any:
        """Its `name` is sqlite or postgresql."""

    def exec_driver_sql(self, statement: str, parameters: Any = ..., /) -> Rows:
        """Execute a statement with `?` for its parameters, once for each tuple of a list."""


class PoolUse(NamedTuple):
    """Connections that are in use, and the most that may be."""

    busy: int
    size: int


class Store(Protocol):
    """Writes to a database; the methods are called on one thread at a time.

    That is the writer's, and with `on_loop` also the event loop's. `name` is the file, or the
    server's address without a password. `commit_seconds` is the duration of the last COMMIT,
    without the statements before it; `undecided` the number of requests that `append` was given
    and has not decided.
    """

    name: str
    on_loop: bool
    commit_seconds: float
    undecided: int

    def open(self) -> None:
        """Connect, and check or migrate the schema; raises DatabaseError."""

    def append(
        self, requests: Sequence[Append], *, wait: bool = True
    ) -> tuple[Sequence[Append], Sequence[Result]]:
        """Write the requests, durable on return; those that are decided, and a result for each.

        These are the requests in their order, unless the store keeps some of them to decide them
        in a later call, in the order of each table. Raises DatabaseError if the batch failed, of
        which then nothing was written.

        Without `wait` it waits for nothing but the disk: it raises DatabaseLocked, and has decided
        nothing, if another process holds the lock, or if the connection has to be opened again.
        """

    def seconds_until_due(self) -> float | None:
        """Seconds until `append` is to be called even without requests; None if it need not be."""

    def run(self, work: Callable[[Connection], T], *, durable: bool) -> T:
        """Run `work` in a transaction of its own and return its result.

        An exception of `work` rolls the transaction back and is raised again. Without `durable` a
        power failure may undo the transaction.
        """

    def run_by_worker(self, work: Callable[[Connection], bool]) -> bool:
        """Run `work`, which is not durable, in a transaction at each server that has tables.

        Whether there is more at any of them. At one server it is given `near` tables only.
        """

    def unreachable(self) -> list[str]:
        """A sentence for each server but the first that could not be reached; on any thread."""

    def maintenance_due(self) -> bool:
        """Whether `maintain` has something to do; this takes a few microseconds."""

    def maintain(self) -> None:
        """Do maintenance that is due, after the results of a batch were delivered."""

    def close(self) -> list[Append]:
        """Close all connections; the requests that were never decided."""


class Notifier(Protocol):
    """Sends hints of appends to other nodes, and receives theirs.

    `sent` and `received` count the tables in them.
    """

    sent: int
    received: int

    def start(self) -> None: ...

    def notify(self, tables: Iterable[bytes]) -> None:
        """Send a hint soon that these tables were appended to."""

    async def close(self) -> None: ...


OnNotification = Callable[[set[bytes]], None]


_CLOSE_SECONDS = 5.0


class Reader:
    """Reads a database from the event loop, by pooled connections; `name` as in `Store`.

    `shared` says whether several nodes serve the same tables from this database.
    """

    dialect: Dialect
    shared: bool

    def __init__(self, name: str) -> None:
        self.name = name
        self._reads: set[asyncio.Future[list[Any]]] = set()  # that `close` waits for

    async def fetch(self, sql: str, parameters: tuple[Any, ...]) -> list[Any]:
        """All rows of a SELECT with `?` for its parameters, with the names of its columns.

        Raises DatabaseError, and Overloaded if no connection became free in time.
        """
        raise NotImplementedError

    def fetch_now(self, sql: str, parameters: tuple[Any, ...]) -> list[Any] | None:
        """The few rows of a SELECT by a key, read at once; None if that could take longer.

        That would wait for a server, or for a lock.
        """
        return None

    async def identity(self) -> str:
        """A word that a restored copy of a server's database does not share with it.

        It also differs after a recovery to a point in time and after a failover. A copy of an
        SQLite file has the same one, `file`.
        """
        return "file"

    async def fence(self, known: Iterable[str]) -> str:
        """The identity, which connections are compared with from now on.

        Raises ServerReplaced, now and at each later connection, if a server has replaced this one:
        of those whose identities are `known`, or one that this process has used since.
        """
        return await self.identity()

    async def version(self) -> str:
        """Product and version of the database, with a remark on known faults of that version."""
        raise NotImplementedError

    async def require_whole(self) -> None:
        """Raise ConfigurationError if the log is distributed, and only a part of it is."""

    def check(self) -> None:
        """Raise DatabaseReplaced if the database is not the one that was opened.

        A server's cannot be replaced under a connection.
        """

    @property
    def shrunk(self) -> bool:
        """Whether the database's file became smaller for a reason that a commit has to find out."""
        return False

    @property
    def pool(self) -> PoolUse:
        """The connections for reading."""
        raise NotImplementedError

    @property
    def wal_bytes(self) -> float:
        """Size of an SQLite file's write-ahead log; NaN for a server's database."""
        return nan

    def notifier(self, on_notification: OnNotification) -> Notifier | None:
        """A notifier between the nodes of this database; None if it supports none.

        `on_notification` is called on the event loop with the ids of tables that other nodes
        appended to. Notifications are hints: they may be lost, repeated or late.
        """
        return None

    async def close(self) -> None:
        """Wait for reads under way, for a limited time, and close all connections."""
        # A server that no longer answers is not waited for.
        with suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_SECONDS):
                if self._reads:
                    await asyncio.wait(self._reads)
                await self._close()

    async def _close(self) -> None:
        raise NotImplementedError

    async def _completed(self, read: asyncio.Future[list[Any]]) -> list[Any]:
        """The rows of a read, which goes on if the caller is cancelled."""
        self._reads.add(read)
        read.add_done_callback(self._on_read_done)
        return await asyncio.shield(read)

    def _on_read_done(self, read: asyncio.Future[list[Any]]) -> None:
        self._reads.discard(read)
        if not read.cancelled():
            read.exception()  # retrieved, so that asyncio does not log it if the caller has gone


def no_connection() -> Overloaded:
    """For a read that no connection became free for."""
    return Overloaded("The server has too many reads waiting; try again shortly.")
