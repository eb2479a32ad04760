"""SQLite implementation of `dealer.eventlog.protocols.Store`: from BEGIN to COMMIT.

One connection writes, on the thread that holds the writer's lock, and a second one takes WAL
checkpoints. Every write begins with BEGIN IMMEDIATE: a transaction that starts with a read and then
writes fails at once, whatever the busy timeout, if another process wrote in between.

A batch of append requests is written in bulk: `write_batch` needs the same few statements for any
number of requests. It fails if a request has a version conflict, was written before or has invalid
values, which row counts and unique indexes show. Then the transaction is rolled back, and
`write_individually` gives each request its own result.

The statements of every append go to the driver's connection. It is in autocommit mode, so that
nothing but these statements begins a transaction.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from functools import partial
from logging import getLogger
from pathlib import Path
from threading import Event
from time import monotonic, perf_counter
from typing import Any, TypeVar

from dealer.backoff import LastingFailure
from dealer.errors import DatabaseLocked, DatabaseReplaced
from dealer.eventlog import rows as log_rows
from dealer.eventlog.db_errors import BAD_VALUES, FAULTS, is_bad_value, translate
from dealer.eventlog.protocols import Connection
from dealer.eventlog.schema import ALEMBIC, current_revision, is_newest, select_in, upgrade
from dealer.eventlog.sqlite.file_identity import FileIdentity, create_private, make_private
from dealer.eventlog.sqlite.wal import SqliteConnection, WalCheckpoints, open_file
from dealer.eventlog.stored_form import decode_command, encode_all, stored_command

T = TypeVar("T")

PAGE = 4096
CACHE_KIB = 32_768
"""Bound on the page cache of the writer's connection."""

LOOKS = 4
"""Calls of `maintenance_due` of which one reads the WAL: that takes 4 µs."""

_USUAL_PAGES = 1000
_FRAME = PAGE + 24
_ZEROS = bytes(2**16)
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
        self._checkpoints = WalCheckpoints(file, pages=wal_pages, connect=self._connect_second)
        self._connection: SqliteConnection | None = None
        self._driver: sqlite3.Connection  # the driver's of `_connection`
        self._waits = True
        self._looks = 0
        self._streams: dict[bytes, int] = {}
        self._failure = LastingFailure(_log, "WAL checkpoint failed")

    def open(self) -> None:
        """Connect, migrate and grow the WAL; raises DatabaseError."""
        try:
            create_private(self.file)
            with closing(self._open()) as first:
                # Before its mode or its journal changes: it may be another program's database.
                current_revision(first)
            make_private(self.file)
            connection = self._connect()
            if not is_newest(current_revision(connection)):
                self._migrate()
            self._grow(connection)
            # SQLite creates the WAL of a new database with the first transaction.
            self.identity.opened()
        except FAULTS as error:
            raise translate(error, name=self.name) from error

    def append(
        self, requests: Sequence[log_rows.Append], *, wait: bool = True
    ) -> tuple[Sequence[log_rows.Append], Sequence[log_rows.Result]]:
        """Write the requests in one transaction; see `Store.append`."""
        self.identity.check()
        connection = self._begin_append(wait=wait)
        committing = False
        try:
            driver = self._driver
            results = write_batch(connection, driver, requests, self._streams)
            if results is None:
                connection.exec_driver_sql("ROLLBACK")
                self._forget(requests)
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                results = write_individually(connection, requests, self._streams, name=self.name)
            committing, begun = True, perf_counter()
            direct_execute(driver, "COMMIT")
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

    def run_by_worker(self, work: Callable[[Connection], bool]) -> bool:
        return self.run(work, durable=False)

    def unreachable(self) -> list[str]:
        return []

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
        except DatabaseReplaced:
            return  # keeps the connections open: the old file can be copied out of /proc only then
        except FAULTS as error:
            fault = translate(error, name=self.name)
            if not isinstance(fault, DatabaseLocked):
                self._disconnect()
                self._failure.met(fault, monotonic())

    def maintenance_due(self) -> bool:
        # Every fourth look is soon enough for a WAL of the usual size.
        self._looks = (self._looks + 1) % LOOKS
        if self._looks and self._wal_pages >= _USUAL_PAGES:
            return False
        try:
            return self._connection is not None and self._checkpoints.due()
        except OSError:
            return True  # `maintain` reports it

    def close(self) -> list[log_rows.Append]:
        self._disconnect()
        self.identity.closed()
        return []

    def _begin_append(self, *, wait: bool) -> SqliteConnection:
        """A connection on which a transaction was begun."""
        if not wait and self._connection is None:
            raise DatabaseLocked(f"The database {self.name} has to be opened again.")
        try:
            connection = self._connect()
            self._set_waiting(connection, wait)
            direct_execute(self._driver, "BEGIN IMMEDIATE")
        except Exception as error:
            fault = translate(error, name=self.name)
            if wait or not isinstance(fault, DatabaseLocked):
                self._disconnect()
            raise fault from error
        return connection

    def _set_waiting(self, connection: SqliteConnection, wait: bool) -> None:
        """Whether the next statements wait for locks of other processes."""
        if wait != self._waits:
            connection.exec_driver_sql(f"PRAGMA busy_timeout={self._busy_ms if wait else 0}")
            self._waits = wait

    def _require_same_file(self, connection: SqliteConnection) -> None:
        """Raise DatabaseReplaced if the last commit did not go to the file at this path."""
        self.identity.check()
        if self.identity.shrunk:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
            size = connection.exec_driver_sql("PRAGMA page_size").scalar_one()
            self.identity.confirm(pages * size)

    def _open(self) -> SqliteConnection:
        return SqliteConnection(open_file(self.file, busy_seconds=self._busy_ms / 1000))

    def _migrate(self) -> None:
        """Bring the schema to the newest revision, in a transaction of a connection of its own."""
        from sqlalchemy import create_engine
        from sqlalchemy.exc import DBAPIError
        from sqlalchemy.pool import NullPool

        driver = partial(open_file, self.file, busy_seconds=self._busy_ms / 1000)
        engine = create_engine("sqlite://", creator=driver, poolclass=NullPool)
        try:
            options = {"isolation_level": "AUTOCOMMIT"}
            with ALEMBIC, engine.connect().execution_options(**options) as connection:
                connection.exec_driver_sql("PRAGMA recursive_triggers=ON")
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                upgrade(connection)
                connection.exec_driver_sql("COMMIT")
        except DBAPIError as error:
            raise translate(error, name=self.name) from error

    def _connect(self) -> SqliteConnection:
        if self._connection is not None:
            return self._connection
        connection = self._open()
        try:
            self._prepare(connection)
            self.identity.opened()
        except BaseException:
            connection.close()
            raise
        self._connection, self._waits = connection, True
        self._driver = connection.driver
        return connection

    def _connect_second(self) -> SqliteConnection:
        connection = self._open()
        connection.exec_driver_sql(f"PRAGMA synchronous={self._synchronous}")
        return connection

    def _prepare(self, connection: SqliteConnection) -> None:
        execute = connection.exec_driver_sql
        execute(f"PRAGMA synchronous={self._synchronous}")
        self._use_wal(connection)
        execute(f"PRAGMA cache_size=-{CACHE_KIB}")
        execute("PRAGMA temp_store=MEMORY")
        # Without it, INSERT OR REPLACE deletes rows without firing the triggers that forbid it.
        execute("PRAGMA recursive_triggers=ON")

    def _use_wal(self, connection: SqliteConnection) -> None:
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

    def _grow(self, connection: SqliteConnection) -> None:
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
                    # Not one string of this size: its pages would cost more than the writing.
                    wal.writelines([_ZEROS] * (missing // len(_ZEROS)))
                    wal.write(_ZEROS[: missing % len(_ZEROS)])
                    wal.flush()
                    os.fsync(wal.fileno())
        except FileNotFoundError:
            # The WAL has another name on this system; without the zeros commits are slower.
            return
        finally:
            connection.exec_driver_sql("ROLLBACK")

    def _transaction(self, connection: SqliteConnection, work: Callable[[Connection], T]) -> T:
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            result = work(connection)
            connection.exec_driver_sql("COMMIT")
            self._require_same_file(connection)
        except BaseException:
            self._roll_back(connection)
            raise
        return result

    def _roll_back(self, connection: SqliteConnection) -> None:
        try:
            # SQLite itself rolls back after some errors, such as a full disk.
            if connection.driver.in_transaction:
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

    def _forget(self, requests: Sequence[log_rows.Append]) -> None:
        """Remove the row numbers of tables whose creation was rolled back with a batch."""
        for request in requests:
            if not request.expected:
                self._streams.pop(request.table, None)


def direct_execute(driver: sqlite3.Connection, sql: str) -> None:
    """Execute a statement without parameters or rows."""
    driver.execute(sql)


def direct_executemany(
    driver: sqlite3.Connection, sql: str, rows: Sequence[tuple[Any, ...]]
) -> int:
    """Execute a statement for each row of parameters; the number of rows it changed."""
    return driver.executemany(sql, rows).rowcount


_FIND = "SELECT table_id, id FROM stream"
_CREATE = "INSERT INTO stream (table_id, version, projected) VALUES (?, 0, 0)"
_MOVE = "UPDATE stream SET version = ? WHERE id = ? AND version = ?"
_ADD = f"INSERT INTO event (stream, {log_rows.COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_NOTE = "INSERT INTO checkpoint (stream, size, note) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
_STORED_NOTE = "SELECT note FROM checkpoint WHERE stream = ? AND size = ?"
_UPDATE_NOTE = "UPDATE checkpoint SET note = ? WHERE stream = ? AND size = ?"
_COSIGNED = "UPDATE stream SET cosigned = cosigned + 1 WHERE id = ?"
_COMMAND = "SELECT version, command, digest FROM event WHERE stream = ? AND command = ?"
_HEAD = "SELECT version FROM stream WHERE id = ?"
_HEAD_UNLESS_ARCHIVED = f"{_HEAD} AND NOT EXISTS (SELECT 1 FROM archived WHERE stream = ?)"


def write_batch(
    connection: Connection,
    driver: sqlite3.Connection,
    requests: Sequence[log_rows.Append],
    streams: dict[bytes, int],
) -> list[log_rows.Result] | None:
    """Write all requests; None if that failed, and then the transaction must be rolled back.

    `driver` is the driver's connection of `connection`. `streams` caches the row numbers of tables
    by id; numbers found here are added to it.
    """
    for request in requests:
        if request.chain is not None and request.chain.broken:
            return None
    try:
        if not _load_numbers(connection, requests, streams):
            return None
        moves, parts = [], []
        for request in requests:
            if request.rows:
                number, expected = streams[request.table], request.expected
                moves.append((expected + len(request.rows), number, expected))
                parts.append((number, request.rows))
        if moves:
            # Each of several appends to one table expects the version of the one before.
            if direct_executemany(driver, _MOVE, moves) != len(moves):
                return None
            direct_executemany(driver, _ADD, encode_all(parts))
        for request in requests:
            if request.checkpoints:
                number = streams[request.table]
                if (
                    not request.rows
                    and _conflict_if_missing(connection, number, request) is not None
                ):
                    return None
                _note(connection, number, request.checkpoints)
    except (sqlite3.Error, *BAD_VALUES) as error:
        if not is_bad_value(error):
            raise
        return None
    return [log_rows.Appended(request.expected + len(request.rows)) for request in requests]


def write_individually(
    connection: Connection,
    requests: Sequence[log_rows.Append],
    streams: dict[bytes, int],
    *,
    name: str,
) -> list[log_rows.Result]:
    """Write each request under a savepoint, in order; a request that fails writes nothing."""
    results: list[log_rows.Result] = []
    for request in requests:
        connection.exec_driver_sql("SAVEPOINT request")
        try:
            result = _write_one(connection, request, streams)
        except (sqlite3.Error, *BAD_VALUES) as error:
            if not is_bad_value(error):
                raise
            connection.exec_driver_sql("ROLLBACK TO request")
            # The row of a table that this request created is rolled back with it.
            streams.pop(request.table, None)
            result = translate(error, name=name)
        if request.chain is not None and not isinstance(result, log_rows.Appended):
            request.chain.broken = True
        connection.exec_driver_sql("RELEASE request")
        results.append(result)
    return results


def _write_one(
    connection: Connection, request: log_rows.Append, streams: dict[bytes, int]
) -> log_rows.Result:
    execute = connection.exec_driver_sql
    if not _load_numbers(connection, (request,), streams):
        return log_rows.Conflict(0)
    number = streams[request.table]
    if request.rows:
        # A command that was carried out is Duplicate, whatever version this request expects.
        known = _find_command(connection, number, request)
        if known is not None:
            return known
        head = execute(_HEAD, (number,)).first()
        if head is None:
            del streams[request.table]  # cached before the log was restored from a backup
            return log_rows.Conflict(0)
        (version,) = head
        broken = request.chain is not None and request.chain.broken
        if broken or version != request.expected:
            return log_rows.Conflict(version)
        execute(_MOVE, (version + len(request.rows), number, version))
        execute(_ADD, encode_all([(number, request.rows)]))
    else:
        conflict = _conflict_if_missing(connection, number, request)
        if conflict is not None:
            return conflict
    _note(connection, number, request.checkpoints)
    return log_rows.Appended(request.end)


def _find_command(
    connection: Connection, number: int, request: log_rows.Append
) -> log_rows.Duplicate | None:
    """Where the log has the request's command."""
    command = request.rows[0].command
    if command is None:
        return None
    found = connection.exec_driver_sql(_COMMAND, (number, stored_command(command))).first()
    if found is None:
        return None
    version, stored, digest = found
    return log_rows.Duplicate(version, decode_command(stored, digest)[1])


def _load_numbers(
    connection: Connection, requests: Sequence[log_rows.Append], streams: dict[bytes, int]
) -> bool:
    """Cache the tables' row numbers, and create new tables; False if a table does not exist."""
    unknown = {r.table: r for r in reversed(requests) if r.table not in streams}
    if not unknown:
        return True
    _find(connection, list(unknown), streams)
    created = []
    for table, request in unknown.items():
        if table not in streams:
            if request.expected or not request.rows:
                return False
            created.append(table)
    if created:
        connection.exec_driver_sql(_CREATE, [(table,) for table in reversed(created)])
        _find(connection, created, streams)
    return True


def _find(connection: Connection, tables: list[bytes], streams: dict[bytes, int]) -> None:
    for sql, part in select_in("sqlite", _FIND, "table_id", tables):
        for table, number in connection.exec_driver_sql(sql, part):
            streams[table] = number


def _conflict_if_missing(
    connection: Connection, number: int, request: log_rows.Append
) -> log_rows.Conflict | None:
    """The result for checkpoints whose events are not stored: archived, or lost by a restore."""
    found = connection.exec_driver_sql(_HEAD_UNLESS_ARCHIVED, (number, number)).first()
    return log_rows.conflict_if_missing(request, 0 if found is None else found[0])


def _note(connection: Connection, number: int, notes: Sequence[tuple[int, str]]) -> None:
    for size, note in notes:
        if connection.exec_driver_sql(_NOTE, (number, size, note)).rowcount:
            continue
        (stored,) = connection.exec_driver_sql(_STORED_NOTE, (number, size)).one()
        merged = log_rows.merge_signatures(stored, note)
        if merged != stored:
            connection.exec_driver_sql(_UPDATE_NOTE, (merged, number, size))
            connection.exec_driver_sql(_COSIGNED, (number,))
