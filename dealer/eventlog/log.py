"""The log of the house: what was written down stays, in order, and is read from any place on.

    log = await Log.open("sqlite:///dealer.db")
    result = await log.append(Append(table, expected, rows))    # Appended, Conflict or Known
    rows = await log.read(table, after=0)

Appends of a whole turn of the loop share one commit. Nothing is answered before it is on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.engine import URL
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.ext.asyncio import AsyncEngine, create_async_engine

from dealer.errors import Overloaded, SetupError
from dealer.eventlog.asking import Asking
from dealer.eventlog.faults import FAULTS, explain
from dealer.eventlog.postgres import PostgresStore
from dealer.eventlog.rows import Append, Result, Row
from dealer.eventlog.server import Server, is_postgres
from dealer.eventlog.sqlite import SqliteStore, database_file
from dealer.eventlog.writer import Committed, Slice, Store, Writer

T = TypeVar("T")

_HOUSE = "SELECT value FROM house WHERE name = ?"
_PUT_HOUSE = "INSERT INTO house (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING"

CLOSE_SECONDS = 5.0
_ALL = 2**63 - 1


class Log:
    """The store of every table's events; made by `Log.open`, ended by `close`.

    Every method may raise a DatabaseError whose text says what to do.
    """

    def __init__(
        self, writer: Writer, readers: AsyncEngine, name: str, *, server: Server | None = None
    ) -> None:
        self.server = server
        self._writer = writer
        self._readers = readers
        self._name = name
        self._asking = Asking(postgres=server is not None)

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        synchronous: str = "FULL",
        committed: Committed | None = None,
        queue: int = 8192,
        batch: int = 512,
        readers: int = 4,
        busy_seconds: float = 30.0,
        wal_pages: int = 2000,
    ) -> Log:
        """Opens the database: an SQLite file, whose schema is brought up to date, or a server's.

        `committed` is called on the loop once a batch, with (request, result) in commit order,
        before any future wakes anyone. `synchronous="NORMAL"` is quicker and can lose
        acknowledged events at a power cut. `busy_seconds` is how long another process may hold
        the database, or a server be away. Raises DatabaseError (DatabaseOld where the schema of a
        server's database is not the newest), or SetupError on an address that is neither.
        """
        if synchronous not in ("FULL", "NORMAL", "EXTRA"):
            raise SetupError(f"synchronous is FULL, EXTRA or NORMAL, not {synchronous!r}.")
        store: Store
        server = None
        if is_postgres(url):
            server = Server(url, patience=busy_seconds)
            store = PostgresStore(server, synchronous=synchronous, busy_seconds=busy_seconds)
            make_readers = partial(server.engine, {})
        else:
            file = database_file(url)
            store = SqliteStore(
                file, synchronous=synchronous, busy_seconds=busy_seconds, wal_pages=wal_pages
            )
            make_readers = partial(
                create_async_engine,
                URL.create("sqlite+aiosqlite", database=str(file)),
                isolation_level="AUTOCOMMIT",
                pool_reset_on_return=None,
                connect_args={"timeout": busy_seconds},
            )
        writer = Writer(store, committed=committed, queue=queue, batch=batch)
        await writer.start()
        engine = make_readers(pool_size=readers, max_overflow=0, pool_timeout=busy_seconds)
        return cls(writer, engine, store.name, server=server)

    async def __aenter__(self) -> Log:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Writes what still waits, then lets go of the database. Call it once, and await it."""
        try:
            await self._writer.close()
        finally:
            # A server that does not answer any more is not waited for.
            with suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_SECONDS):
                    await asyncio.shield(self._readers.dispose())

    @property
    def committed(self) -> Committed | None:
        """The callback after each batch; may be set at any time."""
        return self._writer.committed

    @committed.setter
    def committed(self, callback: Committed | None) -> None:
        self._writer.committed = callback

    @property
    def waiting(self) -> int:
        """How many requests wait to be written."""
        return self._writer.waiting

    # Writing

    def submit(self, request: Append) -> None:
        """Queues a request whose result comes to `committed` alone: the cheap way in.

        Requests are decided in the order of these calls. A failed batch comes there too, with a
        DatabaseError as each result. Raises ValueError if the rows do not follow `expected`,
        Overloaded when too much waits, Unavailable after `close`.
        """
        _require_order(request)
        self._writer.submit(request, None)

    def append(self, request: Append) -> asyncio.Future[Result]:
        """Queues a request, like `submit`; the future has its result once it is on disk.

        It raises DatabaseError if the batch failed, of which then nothing was written. Who is
        cancelled while waiting loses the answer, not the append: the command id finds it.
        """
        _require_order(request)
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._writer.submit(request, future)
        return future

    def put_note(self, table: bytes, size: int, note: str) -> asyncio.Future[Result]:
        """Adds a checkpoint, or the new signature lines of `note` to the one that is there.

        A Conflict, and nothing is written, if the table has not got so many events here any more.
        """
        return self.append(Append(table, 0, (), ((size, note),)))

    def schedule(self, work: Slice) -> asyncio.Future[None]:
        """Runs `work(connection)` on the writer's thread while nothing waits to be appended.

        Each call has a transaction of its own, begun and committed by the writer; it should take
        a few milliseconds and return True while more is left. The future is done after the call
        that returned False, or raises what a call raised (whose transaction was undone). A power
        cut may undo slices, from the last back; never an append.
        """
        return self._writer.enqueue(work, durable=False)

    async def carry_out(self, work: Callable[[Connection], T]) -> T:
        """What `work(connection)` gives, done in a transaction of its own and on disk.

        It runs on the writer's thread between two batches; what it raises undoes it.
        """
        done: T = await self._writer.enqueue(work, durable=True)
        return done

    async def put_house(self, name: str, value: bytes) -> bytes:
        """Keeps `value` under `name` if nothing is there; returns what is there now."""

        def work(connection: Connection) -> bytes:
            connection.exec_driver_sql(_PUT_HOUSE, (name, value))
            found: bytes = connection.exec_driver_sql(_HOUSE, (name,)).scalar_one()
            return found

        kept: bytes = await self._writer.enqueue(work, durable=True)
        return kept

    # Reading

    async def head(self, table: bytes) -> int | None:
        """The version that the table stands at; None if there is no such table."""
        found = await self.fetch(self._asking.head, (table,))
        return found[0][0] if found else None

    async def heads(self, tables: Iterable[bytes]) -> dict[bytes, int]:
        """The versions of those of `tables` that exist."""
        heads: dict[bytes, int] = {}
        for sql, parameters in self._asking.heads(list(tables)):
            heads.update(dict(map(tuple, await self.fetch(sql, parameters))))
        return heads

    async def tables_between(self, low: bytes, high: bytes, *, limit: int) -> list[bytes]:
        """Ids of at most `limit` tables from `low` to `high`, both included."""
        found = await self.fetch(self._asking.between, (low, high, limit))
        return [table for (table,) in found]

    async def read(
        self, table: bytes, *, after: int = 0, upto: int | None = None, limit: int = 1000
    ) -> list[Row]:
        """At most `limit` events with versions after+1 … upto, in order."""
        rows = await self.fetch(
            self._asking.read, (table, after, _ALL if upto is None else upto, limit)
        )
        return list(map(Row._make, rows))

    async def stream(
        self, table: bytes, *, after: int = 0, upto: int | None = None, chunk: int = 1000
    ) -> AsyncIterator[list[Row]]:
        """All events with versions after+1 … upto, in lists of at most `chunk`.

        Each list is a read of its own, so a slow consumer does not keep the database from tidying
        its write-ahead log.
        """
        while rows := await self.read(table, after=after, upto=upto, limit=chunk):
            yield rows
            after = rows[-1].version

    async def find_command(self, table: bytes, command: str) -> Row | None:
        """The first event of the append that carried out this command."""
        found = await self.fetch(self._asking.command, (table, command))
        return Row._make(found[0]) if found else None

    async def checkpoints(
        self, table: bytes, *, after: int = -1, limit: int = 1000
    ) -> list[tuple[int, str]]:
        """(size, note) of the table's checkpoints with size > `after`, by size."""
        found = await self.fetch(self._asking.checkpoints, (table, after, limit))
        return [(size, note) for size, note in found]

    async def newest_checkpoint(
        self, table: bytes, *, upto: int | None = None
    ) -> tuple[int, str] | None:
        """(size, note) of the largest checkpoint, of those with size <= `upto` if given."""
        found = await self.fetch(self._asking.newest, (table, _ALL if upto is None else upto))
        return (found[0][0], found[0][1]) if found else None

    async def house(self, name: str) -> bytes | None:
        """What `put_house` kept under `name`."""
        found = await self.fetch(_HOUSE, (name,))
        return found[0][0] if found else None

    async def fetch(self, sql: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        """All rows of a SELECT with `?` for its parameters, on a reader's connection.

        A server that is away is waited for, as long as `busy_seconds` says, and so is a
        connection; Overloaded if none was free.
        """
        if self.server is not None:
            asked = partial(self._fetch, sql, parameters)
            return await self.server.patiently(asked, patience=self.server.patience)
        try:
            return await self._fetch(sql, parameters)
        except FAULTS as error:
            raise explain(error, name=self._name) from error

    async def _fetch(self, sql: str, parameters: tuple[Any, ...]) -> list[Any]:
        try:
            async with self._readers.connect() as connection:
                return list((await connection.exec_driver_sql(sql, parameters)).fetchall())
        except PoolTimeout:
            raise Overloaded(
                "The house has too much to look up just now; try again shortly."
            ) from None


def _require_order(request: Append) -> None:
    if len(request.table) != 16:
        raise ValueError("a table's id has 16 bytes")
    if not request.rows and not request.checkpoints:
        raise ValueError("an append needs rows or checkpoints")
    version = request.expected
    for row in request.rows:
        version += 1
        if row[0] != version:
            raise ValueError(f"a row has version {row[0]} where {version} follows")
