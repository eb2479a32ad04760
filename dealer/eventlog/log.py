"""The log of the house: what was written down stays, in order, and is read from any place on.

    log = await Log.open("sqlite:///dealer.db")
    result = await log.append(Append(table, expected, rows))    # Appended, Conflict or Known
    rows = await log.read(table, after=0)

Appends of a whole turn of the loop share one commit. Nothing is answered before it is on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from sqlalchemy import Connection
from sqlalchemy.ext.asyncio import AsyncEngine

from dealer.errors import SetupError
from dealer.eventlog.file_identity import FileIdentity
from dealer.eventlog.postgres import PostgresStore
from dealer.eventlog.reading import HOUSE, Reading
from dealer.eventlog.rows import Append, Result
from dealer.eventlog.server import Server, is_postgres
from dealer.eventlog.sqlite import SqliteStore, database_file
from dealer.eventlog.wal import reader_engine
from dealer.eventlog.writer import Committed, Slice, Store, Writer, Written

T = TypeVar("T")

_PUT_HOUSE = "INSERT INTO house (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING"


class Log(Reading):
    """The store of every table's events; made by `Log.open`, ended by `close`.

    Every method may raise a DatabaseError whose text says what to do.
    """

    def __init__(
        self,
        writer: Writer,
        readers: AsyncEngine,
        name: str,
        *,
        server: Server | None,
        identity: FileIdentity | None,
    ) -> None:
        super().__init__(readers, name, server=server, identity=identity)
        self._writer = writer

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
        server = identity = None
        if is_postgres(url):
            server = Server(url, patience=busy_seconds)
            store = PostgresStore(server, synchronous=synchronous, busy_seconds=busy_seconds)
            make_readers = partial(server.engine, {})
        else:
            file = database_file(url)
            store = SqliteStore(
                file, synchronous=synchronous, busy_seconds=busy_seconds, wal_pages=wal_pages
            )
            identity = store.identity
            make_readers = partial(reader_engine, file, busy_seconds=busy_seconds)
        writer = Writer(store, committed=committed, queue=queue, batch=batch)
        await writer.start()
        engine = make_readers(pool_size=readers, max_overflow=0, pool_timeout=busy_seconds)
        return cls(writer, engine, store.name, server=server, identity=identity)

    async def close(self) -> None:
        """Writes what still waits, then lets go of the database. Call it once, and await it."""
        try:
            await self._writer.close()
        finally:
            await super().close()

    @property
    def committed(self) -> Committed | None:
        """The callback after each batch; may be set at any time."""
        return self._writer.committed

    @committed.setter
    def committed(self, callback: Committed | None) -> None:
        self._writer.committed = callback

    @property
    def written(self) -> Written | None:
        """Called with (requests, results) of each batch on the writer's thread, after COMMIT and
        before any result is delivered; may be set at any time.
        """
        return self._writer.written

    @written.setter
    def written(self, callback: Written | None) -> None:
        self._writer.written = callback

    @property
    def waiting(self) -> int:
        """How many requests wait to be written."""
        return self._writer.waiting

    @property
    def full(self) -> bool:
        """Whether as many requests wait as may: the next one would be refused."""
        return self._writer.full

    async def require_file(self) -> None:
        """Raise DatabaseReplaced if the file of this log is gone, or another has its name."""
        self.check()
        if self._identity is not None and self._identity.shrunk:
            # Whether SQLite shrank it is found out after a commit, even of nothing.
            await self.carry_out(lambda connection: None)

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
            found: bytes = connection.exec_driver_sql(HOUSE, (name,)).scalar_one()
            return found

        kept: bytes = await self._writer.enqueue(work, durable=True)
        return kept


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
