"""One file on the house's own disk as the archive: how it is opened, locked and written.

One connection on one thread writes, and has a second one for WAL checkpoints. Every write begins
with BEGIN IMMEDIATE: a transaction that starts by reading and then wants to write fails at once
when another process was quicker, whatever the time-out says.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from logging import getLogger
from pathlib import Path
from threading import Event
from typing import TypeVar

from sqlalchemy import Connection, make_url
from sqlalchemy.exc import ArgumentError

from dealer.errors import DatabaseLocked, DatabaseReplaced, SetupError
from dealer.eventlog import batch, migrate, upgrading
from dealer.eventlog.faults import FAULTS, explain
from dealer.eventlog.file_identity import FileIdentity, make_private
from dealer.eventlog.rows import Append, Result
from dealer.eventlog.wal import WalCheckpoints, writer_engine

T = TypeVar("T")

PAGE = 4096
_FRAME = PAGE + 24
_STREAMS_KEPT = 50_000
_ATTEMPTS = 40

_log = getLogger("dealer.eventlog")


def database_file(url: str) -> Path:
    """The file that a `sqlite:///…` address names; raises SetupError on any other address."""
    try:
        parsed = make_url(url)
    except ArgumentError:
        raise SetupError(
            "The database's address is no URL; write it like sqlite:///dealer.db."
        ) from None
    if parsed.get_backend_name() != "sqlite":
        raise SetupError(
            "The log is kept in SQLite or PostgreSQL; write the address like sqlite:///dealer.db "
            "or postgresql://host/dealer."
        )
    if not parsed.database or parsed.database.startswith((":memory:", "file:")):
        raise SetupError("The log needs a file of its own; write it like sqlite:///dealer.db.")
    file = Path(parsed.database)
    if file.is_dir():
        raise SetupError(f"{file} is a folder; name a file in it, like sqlite:///{file}/dealer.db.")
    return file


class SqliteStore:
    """The writer's hands: everything here is called on the writer's thread alone.

    `synchronous` is FULL (an acknowledged event survives a power cut) or NORMAL (it survives the
    end of the process only). `wal_pages` is the size that the write-ahead log is grown to at the
    start and checkpointed at: a commit into a growing file costs twice.
    """

    def __init__(
        self, file: Path, *, synchronous: str, busy_seconds: float, wal_pages: int
    ) -> None:
        self.file = file
        self.name = str(file)
        self.identity = FileIdentity(file)
        self._synchronous = synchronous
        self._wal_pages = wal_pages
        self._busy_ms = int(busy_seconds * 1000)
        self._engine = writer_engine(file, busy_seconds=busy_seconds)
        self._checkpoints = WalCheckpoints(file, pages=wal_pages, connect=self._connect_second)
        self._connection: Connection | None = None
        self._streams: dict[bytes, int] = {}

    def open(self) -> None:
        """Connects, migrates and grows the write-ahead log; raises DatabaseError."""
        try:
            make_private(self.file)
            connection = self._connect()
            if not migrate.is_current(connection):
                connection = self._upgrade()
            self._grow(connection)
            # A new database has a write-ahead log only from its first transaction on.
            self.identity.opened()
        except FAULTS as error:
            raise explain(error, name=self.name) from error

    def append(self, requests: Sequence[Append]) -> list[Result]:
        """One transaction for all requests, one answer for each.

        Raises DatabaseError if the database failed; then nothing of the batch was written.
        """
        self.identity.check()
        try:
            connection = self._connect()
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        except Exception as error:
            self._drop()
            raise explain(error, name=self.name) from error
        committing = False
        try:
            results = batch.together(connection, requests, self._streams)
            if results is None:
                connection.exec_driver_sql("ROLLBACK")
                self._forget(requests)
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                results = batch.one_by_one(connection, requests, self._streams, name=self.name)
            committing = True
            connection.exec_driver_sql("COMMIT")
            self._require_same_file(connection)
        except BaseException as error:
            self._roll_back(connection)
            self._forget(requests)
            raise explain(error, name=self.name, committing=committing) from error
        if len(self._streams) > _STREAMS_KEPT:
            self._streams.clear()
        return results

    def run(self, work: Callable[[Connection], T], *, durable: bool) -> T:
        """`work` in a transaction of its own; what it raises undoes it and is raised again.

        Not `durable`: a power cut may undo it, together with all that came after it.
        """
        self.identity.check()
        try:
            connection = self._connect()
            if not durable:
                connection.exec_driver_sql("PRAGMA synchronous=NORMAL")
            try:
                return self._transaction(connection, work)
            finally:
                if not durable and connection is self._connection:
                    connection.exec_driver_sql(f"PRAGMA synchronous={self._synchronous}")
        except FAULTS as error:
            raise explain(error, name=self.name) from error

    def maintain(self) -> None:
        """Takes a WAL checkpoint if one is due. One that fails costs nothing but space."""
        connection = self._connection
        if connection is None:
            return
        try:
            if self._checkpoints.due():
                # The second connection is opened by name, and must not find another file.
                self.identity.check()
                self._checkpoints.take(connection)
        except DatabaseReplaced:
            return  # and the connections stay open: they are all that is left of the file
        except FAULTS as error:
            fault = explain(error, name=self.name)
            if not isinstance(fault, DatabaseLocked):
                self._drop()
                _log.error("WAL checkpoint failed", extra={"told": {"says": str(fault)}})

    def close(self) -> None:
        self._drop()
        self._engine.dispose()
        self.identity.closed()

    def _require_same_file(self, connection: Connection) -> None:
        """Raise DatabaseReplaced if what was just committed is not in the file of that name."""
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
        self._connection = connection
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
        execute("PRAGMA cache_size=-32768")
        execute("PRAGMA temp_store=MEMORY")
        # INSERT OR REPLACE deletes too, and only with this does the trigger hear of it.
        execute("PRAGMA recursive_triggers=ON")

    def _use_wal(self, connection: Connection) -> None:
        if connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal":
            return
        # Two processes at the first start: SQLite does not wait for this lock, so we do.
        for _ in range(_ATTEMPTS):
            try:
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")
                return
            except FAULTS as error:
                fault = explain(error, name=self.name)
                if not isinstance(fault, DatabaseLocked):
                    raise
            Event().wait(self._busy_ms / 1000 / _ATTEMPTS)
        raise fault

    def _upgrade(self) -> Connection:
        """Migrates the file; raises DatabaseLocked if an older release may be writing to it."""
        for _ in range(_ATTEMPTS):
            connection = self._connect()
            if upgrading.upgrade(connection, name=self.name):
                self._use_wal(connection)
                return connection
            found = migrate.current(connection)
            # Of two processes that both wait to be alone, neither may keep its connection.
            self._drop()
            Event().wait(self._busy_ms / 1000 / _ATTEMPTS)
        raise upgrading.in_use(self.name, found)

    def _grow(self, connection: Connection) -> None:
        """Fills the write-ahead log with zeros up to the size it will have anyway.

        SQLite reads it up to the first frame whose checksum is wrong, so zeros are no content;
        and while this transaction is open nobody else writes to that file.
        """
        connection.exec_driver_sql("BEGIN IMMEDIATE")
        try:
            # On a file that is only readable SQLite begins without a word; this makes it speak.
            connection.exec_driver_sql("DELETE FROM house WHERE 0")
            with open(self.name + "-wal", "r+b") as wal:
                missing = self._wal_pages * _FRAME - wal.seek(0, os.SEEK_END)
                if missing > 0:
                    wal.write(bytes(missing))
                    wal.flush()
                    os.fsync(wal.fileno())
        except FileNotFoundError:
            # Nothing is lost but a little speed on a system that names the file otherwise.
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
            # A full disk or a failed one makes SQLite roll back by itself.
            if driver is not None and driver.in_transaction:
                connection.exec_driver_sql("ROLLBACK")
        except Exception:
            self._drop()

    def _drop(self) -> None:
        """Lets go of the connection; the next batch opens another."""
        connection, self._connection = self._connection, None
        self.identity.closing()
        with suppress(Exception):
            self._checkpoints.close()
        if connection is not None:
            with suppress(Exception):
                connection.close()

    def _forget(self, requests: Sequence[Append]) -> None:
        """The numbers of tables that would have begun in a batch that was undone."""
        for request in requests:
            if not request.expected:
                self._streams.pop(request.table, None)
