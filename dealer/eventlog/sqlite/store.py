"""SQLite implementation of `dealer.eventlog.store.Store`.

One connection writes, on the thread that holds the writer's lock, and a second one takes WAL
checkpoints. Every write begins with BEGIN IMMEDIATE: a transaction that starts with a read and then
writes fails at once, whatever the busy timeout, if another process wrote in between.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from logging import getLogger
from pathlib import Path
from threading import Event
from time import monotonic, perf_counter
from typing import TypeVar

from sqlalchemy import Connection

from dealer.backoff import LastingFailure
from dealer.errors import DatabaseLocked, DatabaseReplaced
from dealer.eventlog import migrate
from dealer.eventlog.db_errors import FAULTS, translate
from dealer.eventlog.rows import Append, Result
from dealer.eventlog.sqlite import batch, direct
from dealer.eventlog.sqlite.file_identity import FileIdentity, create_private, make_private
from dealer.eventlog.sqlite.wal import WalCheckpoints, writer_engine

T = TypeVar("T")

PAGE = 4096
CACHE_KIB = 32_768
"""Bound on the page cache of the writer's connection."""

LOOKS = 4
"""Calls of `maintenance_due` of which one reads the WAL: that takes 4 µs."""

_USUAL_PAGES = 1000
_FRAME = PAGE + 24
_MAX_CACHED_STREAMS = 50_000
_ATTEMPTS = 40
"""Attempts to get an exclusive lock that SQLite does not wait for, within the busy timeout."""

_log = getLogger("dealer.eventlog")


class SqliteStore:
    """Writes an SQLite file.

    `synchronous` is FULL (an acknowledged event survives a power failure) or NORMAL (it survives
    the end of the process only). `wal_pages` is the size to which the WAL is grown on open, and at
    which it is checkpointed: a commit that extends a file takes twice as long.
    """

    on_loop = True
    undecided = 0

    def __init__(
        self,
        file: Path,
        *,
        synchronous: str = "FULL",
        busy_seconds: float = 30.0,
        wal_pages: int = 2000,
    ) -> None:
        self.file = file
        self.name = str(file)
        self.identity = FileIdentity(file)
        self.commit_seconds = 0.0
        self._synchronous = synchronous
        self._wal_pages = wal_pages
        self._busy_ms = int(busy_seconds * 1000)
        self._engine = writer_engine(file, busy_seconds=busy_seconds)
        self._checkpoints = WalCheckpoints(file, pages=wal_pages, connect=self._connect_second)
        self._connection: Connection | None = None
        self._driver: sqlite3.Connection  # the driver's of `_connection`
        self._waits = True
        self._looks = 0
        self._streams: dict[bytes, int] = {}
        self._failure = LastingFailure()  # of the WAL checkpoints

    def open(self) -> None:
        """Connect, migrate and grow the WAL; raises DatabaseError."""
        try:
            create_private(self.file)
            with self._engine.connect() as first:
                # Before its mode or its journal changes: it may be another program's database.
                migrate.current(first)
            make_private(self.file)
            connection = self._connect()
            if not migrate.is_current(connection):
                self._transaction(connection, migrate.upgrade)
            self._grow(connection)
            # SQLite creates the WAL of a new database with the first transaction.
            self.identity.opened()
        except FAULTS as error:
            raise translate(error, name=self.name) from error

    def append(
        self, requests: Sequence[Append], *, wait: bool = True
    ) -> tuple[Sequence[Append], Sequence[Result]]:
        """Write the requests in one transaction; see `Store.append`."""
        self.identity.check()
        connection = self._begin_append(wait=wait)
        committing = False
        try:
            driver = self._driver
            results = batch.write_batch(connection, driver, requests, self._streams)
            if results is None:
                connection.exec_driver_sql("ROLLBACK")
                self._forget(requests)
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                results = batch.write_individually(
                    connection, requests, self._streams, name=self.name
                )
            committing, begun = True, perf_counter()
            direct.execute(driver, "COMMIT")
            self.commit_seconds = perf_counter() - begun
            self._require_same_file(connection)
        except BaseException as error:
            self._roll_back(connection)
            self._forget(requests)
            raise translate(error, name=self.name, committing=committing) from error
        if len(self._streams) > _MAX_CACHED_STREAMS:
            self._streams.clear()
        return requests, results

    def seconds_until_due(self) -> None:
        """None: every append decides its requests."""

    def run(self, work: Callable[[Connection], T], *, durable: bool) -> T:
        """See `Store.run`; transactions after one that is not durable may be undone with it."""
        self.identity.check()
        try:
            connection = self._connect()
            self._set_waiting(connection, True)
            if not durable:
                connection.exec_driver_sql("PRAGMA synchronous=NORMAL")
            try:
                return self._transaction(connection, work)
            finally:
                if not durable and connection is self._connection:
                    connection.exec_driver_sql(f"PRAGMA synchronous={self._synchronous}")
        except FAULTS as error:
            raise translate(error, name=self.name) from error

    def maintain(self) -> None:
        """Take a WAL checkpoint if one is due; if it fails the WAL grows, with no other effect."""
        connection = self._connection
        if connection is None:
            return
        try:
            if self._checkpoints.due():
                # The second connection is opened by path, and must not open another file.
                self.identity.check()
                self._checkpoints.take(connection)
                self._failure.ended()
        except DatabaseReplaced:
            return  # keeps the connections open: the old file can be copied out of /proc only then
        except FAULTS as error:
            fault = translate(error, name=self.name)
            if not isinstance(fault, DatabaseLocked):
                self._disconnect()
                if self._failure.to_be_logged(monotonic()):
                    _log.error("WAL checkpoint failed", extra={"fields": {"says": str(fault)}})

    def maintenance_due(self) -> bool:
        # Every fourth look is soon enough for a WAL of the usual size.
        self._looks = (self._looks + 1) % LOOKS
        if self._looks and self._wal_pages >= _USUAL_PAGES:
            return False
        try:
            return self._connection is not None and self._checkpoints.due()
        except OSError:
            return True  # `maintain` reports it

    def close(self) -> list[Append]:
        self._disconnect()
        self._engine.dispose()
        self.identity.closed()
        return []

    def _begin_append(self, *, wait: bool) -> Connection:
        """A connection on which a transaction was begun."""
        if not wait and self._connection is None:
            raise DatabaseLocked(f"The database {self.name} has to be opened again.")
        try:
            connection = self._connect()
            self._set_waiting(connection, wait)
            direct.execute(self._driver, "BEGIN IMMEDIATE")
        except Exception as error:
            fault = translate(error, name=self.name)
            if wait or not isinstance(fault, DatabaseLocked):
                self._disconnect()
            raise fault from error
        return connection

    def _set_waiting(self, connection: Connection, wait: bool) -> None:
        """Whether the next statements wait for locks of other processes."""
        if wait != self._waits:
            connection.exec_driver_sql(f"PRAGMA busy_timeout={self._busy_ms if wait else 0}")
            self._waits = wait

    def _require_same_file(self, connection: Connection) -> None:
        """Raise DatabaseReplaced if the last commit did not go to the file at this path."""
        self.identity.check()
        if self.identity.shrunk:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
            size = connection.exec_driver_sql("PRAGMA page_size").scalar_one()
            self.identity.confirm(pages * size)

    def _connect(self) -> Connection:
        if self._connection is not None:
            return self._connection
        connection = self._engine.connect()
        try:
            self._prepare(connection)
            self.identity.opened()
        except BaseException:
            connection.close()
            raise
        self._connection, self._waits = connection, True
        self._driver = direct.driver_of(connection)
        return connection

    def _connect_second(self) -> Connection:
        connection = self._engine.connect()
        connection = connection.execution_options(isolation_level="AUTOCOMMIT")
        connection.exec_driver_sql(f"PRAGMA synchronous={self._synchronous}")
        return connection

    def _prepare(self, connection: Connection) -> None:
        execute = connection.execution_options(isolation_level="AUTOCOMMIT").exec_driver_sql
        execute(f"PRAGMA synchronous={self._synchronous}")
        self._use_wal(connection)
        execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        execute("PRAGMA temp_store=MEMORY")
        # Without it, INSERT OR REPLACE deletes rows without firing the triggers that forbid it.
        execute("PRAGMA recursive_triggers=ON")

    def _use_wal(self, connection: Connection) -> None:
        if connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal":
            return
        # Two processes may start on a new file: SQLite does not wait for this lock.
        for _ in range(_ATTEMPTS):
            try:
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")
                return
            except FAULTS as error:
                locked = translate(error, name=self.name)
                if not isinstance(locked, DatabaseLocked):
                    raise
            Event().wait(self._busy_ms / 1000 / _ATTEMPTS)
        raise locked

    def _grow(self, connection: Connection) -> None:
        """Extend the WAL with zeros to the size at which it is checkpointed.

        SQLite reads the WAL up to the first frame with a wrong checksum, so zeros are ignored. The
        open transaction keeps every other connection from writing to the file.
        """
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            # On a read-only file BEGIN IMMEDIATE succeeds; this statement raises the error.
            connection.exec_driver_sql("DELETE FROM house WHERE 0")
            with open(self.name + "-wal", "r+b") as wal:
                missing = self._wal_pages * _FRAME - wal.seek(0, os.SEEK_END)
                if missing > 0:
                    wal.write(bytes(missing))
                    wal.flush()
                    os.fsync(wal.fileno())
        except FileNotFoundError:
            # The WAL has another name on this system; without the zeros commits are slower.
            return
        finally:
            connection.exec_driver_sql("ROLLBACK")

    def _transaction(self, connection: Connection, work: Callable[[Connection], T]) -> T:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            result = work(connection)
            connection.exec_driver_sql("COMMIT")
            self._require_same_file(connection)
        except BaseException:
            self._roll_back(connection)
            raise
        return result

    def _roll_back(self, connection: Connection) -> None:
        driver = connection.connection.driver_connection
        try:
            # SQLite itself rolls back after some errors, such as a full disk.
            if driver is not None and driver.in_transaction:
                connection.exec_driver_sql("ROLLBACK")
        except Exception:
            self._disconnect()

    def _disconnect(self) -> None:
        """Close the connection; the next batch opens another."""
        connection, self._connection = self._connection, None
        self.identity.closing()
        with suppress(Exception):
            self._checkpoints.close()
        if connection is not None:
            with suppress(Exception):
                connection.close()

    def _forget(self, requests: Sequence[Append]) -> None:
        """Remove the row numbers of tables whose creation was rolled back with a batch."""
        for request in requests:
            if not request.expected:
                self._streams.pop(request.table, None)
