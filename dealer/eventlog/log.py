"""The event log: appends with an expected version, grouped into commits, and reads.

    log = await Log.open("sqlite:///dealer.db")
    result = await log.append(Append(table, expected, rows))    # Appended, Conflict or Duplicate
    rows = await log.read(table, after=0)

All appends of one event loop iteration share a commit. Results are delivered after the commit is
durable.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from dealer.errors import ConfigurationError
from dealer.eventlog.backends import backend, open_readonly
from dealer.eventlog.protocols import Connection, Reader
from dealer.eventlog.read_only_log import SELECT_METADATA, ReadOnlyLog
from dealer.eventlog.rows import Append, Result
from dealer.eventlog.writer import MODES, CommitPolicy, Slice, Writer

T = TypeVar("T")
P = ParamSpec("P")

_PUT_METADATA = "INSERT INTO house (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING"
_SYNCHRONOUS = ("FULL", "NORMAL", "EXTRA")


class Log(ReadOnlyLog):
    """The events of every table, for reading and writing; made by `Log.open`, ended by `close`.

    `writer` has the queue, its listeners and its histograms. Every method may raise a DatabaseError
    whose text says what to do.
    """

    def __init__(self, writer: Writer, reader: Reader) -> None:
        super().__init__(reader)
        self.writer = writer

    @classmethod
    async def open(
        cls,
        url: str,
        *,
        synchronous: str = "FULL",
        commit: str = "auto",
        queue: int = 8192,
        batch: int = 512,
        readers: int = 4,
        busy_seconds: float = 30.0,
        wal_pages: int = 2000,
    ) -> Log:
        """Open the database at `url`: an SQLite file, which is migrated, or a PostgreSQL database.

        With `synchronous="NORMAL"` commits are faster and a power failure can lose acknowledged
        events. `commit` is the thread that commits to an SQLite file: `thread` for the writer
        thread, `loop` for the event loop's, `auto` for the loop's while commits are quick;
        PostgreSQL has the writer thread. `busy_seconds` is how long to wait while another process
        locks the database or the server is unreachable. Raises DatabaseError (SchemaOutdated if a
        PostgreSQL schema is not the newest), or ConfigurationError on an invalid address.
        """
        if synchronous not in _SYNCHRONOUS:
            raise ConfigurationError(f"synchronous is FULL, EXTRA or NORMAL, not {synchronous!r}.")
        if commit not in MODES:
            raise ConfigurationError(f"commit is auto, thread or loop, not {commit!r}.")
        store, make_reader = backend(
            url,
            synchronous=synchronous,
            busy_seconds=busy_seconds,
            wal_pages=wal_pages,
            readers=readers,
        )
        writer = Writer(store, CommitPolicy(commit), queue=queue, batch=batch)
        await writer.start()
        return cls(writer, make_reader())

    @classmethod
    async def open_existing(cls, url: str) -> Log:
        """Open a database that exists, and migrate nothing; raises what `open_readonly` raises."""
        await (await open_readonly(url)).close()
        return await cls.open(url)

    async def close(self) -> None:
        """Write all queued requests and close the connections. Call it once, and await it."""
        try:
            await self.writer.close()
        finally:
            await super().close()

    @property
    def quick(self) -> bool:
        return self.writer.commits_on_loop  # a disk that commits quickly reads quickly

    async def require_file(self) -> None:
        """Raise DatabaseReplaced if the file of this log was deleted or replaced."""
        self.check()
        if self.reader.shrunk:
            # The store finds out after a commit, even of nothing, whether SQLite shrank the file.
            await self.run_in_transaction(lambda connection: None)

    def append(self, request: Append) -> asyncio.Future[Result]:
        """Queue a request, like `Writer.submit`; the future is resolved once the result is durable.

        It raises DatabaseError if the batch failed, of which then nothing was written. A cancelled
        caller loses the result, not the append: the command id finds it.
        """
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        request.future = future
        self.writer.submit(request)
        return future

    def put_checkpoint(self, table: bytes, size: int, note: str) -> asyncio.Future[Result]:
        """Store a checkpoint, or add the new signature lines of `note` to the stored one.

        The result is a Conflict, and nothing is written, if the table has fewer than `size`
        events in this database.
        """
        return self.append(Append(table, 0, (), ((size, note),)))

    def run_when_idle(self, work: Slice, *, by_worker: bool = False) -> asyncio.Future[None]:
        """Call `work(connection)` on the writer thread while no append is queued.

        Each call has a transaction of its own; it should take a few milliseconds and return True
        while more is left. The future is resolved after the call that returned False, or raises
        what a call raised (whose transaction was rolled back). A power failure may undo the newest
        slices, never an append. With `by_worker` each call is made for each server of a log in
        shards, with a connection to it (`dealer.eventlog.schema.near`).
        """
        return self.writer.enqueue(work, durable=False, by_worker=by_worker)

    async def run_in_transaction(
        self, work: Callable[Concatenate[Connection, P], T], *given: P.args, **named: P.kwargs
    ) -> T:
        """The result of `work(connection, …)`, called in a durable transaction of its own.

        It runs on the writer thread between two batches, in the order of these calls; an exception
        rolls it back.
        """
        result: T = await self.writer.enqueue(
            lambda connection: work(connection, *given, **named), durable=True
        )
        return result

    async def put_metadata(self, name: str, value: bytes) -> bytes:
        """Store `value` under `name` unless a value is stored there; returns the stored value."""

        def work(connection: Connection) -> bytes:
            connection.exec_driver_sql(_PUT_METADATA, (name, value))
            stored: bytes = connection.exec_driver_sql(SELECT_METADATA, (name,)).scalar_one()
            return stored

        return await self.run_in_transaction(work)
