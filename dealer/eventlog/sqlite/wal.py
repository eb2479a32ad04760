"""SQLite connections without automatic checkpoints, and WAL checkpoints under the write lock.

SQLite 3.7.0 to 3.51.2 has the WAL-reset bug (https://sqlite.org/wal.html#walresetbug): a checkpoint
reads how many frames the WAL has; another connection, which needs only the write lock for it,
restarts the WAL; the checkpoint then marks all those frames as copied to the database. Frames that
are written there later are never copied, and their commits are lost. By default every connection
that commits also checkpoints, without the write lock.

So no connection of this program checkpoints automatically. The writer's connection takes the write
lock and a second connection of the process checkpoints meanwhile: no connection of any process can
restart the WAL while any process checkpoints. The lock is SQLite's own, so the operating system
releases it when a process dies. The last connection to close checkpoints too, and a WAL is
recovered after a crash; SQLite does the first under an exclusive lock on the database file, the
second under the write lock. `tests/chaos/walwatch.c` traces the locks.

Work on the log uses of SQLAlchemy no more than statements as text and rows with names.
`SqliteConnection` has that under SQLAlchemy's names, so that the same work runs on both databases.
SQLAlchemy takes a quarter of a server's start and of its memory, and 10 µs for each statement: only
a migration or a rebuild of an SQLite file imports it.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from functools import cache
from io import FileIO
from logging import getLogger
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import quote

GROWN = 8
"""A warning is logged when the WAL has this many times the pages at which it is checkpointed."""

_FIXED = (3, 51, 3)
_BACKPORTS = {(3, 50): 7, (3, 44): 6}
_SINCE = (3, 7, 0)

# Longer than another process's commit, shorter than a tolerable delay of a batch.
_LOCK_MS = 100

# https://sqlite.org/fileformat2.html#walformat: where the page size and the two salts are in the
# header of the WAL, and the salts in the header of a frame.
_HEADER = 32
_PAGE_SIZE = slice(8, 12)
_SALTS = slice(16, 24)
_FRAME_HEADER = 24
_FRAME_SALTS = 8

_log = getLogger("dealer.eventlog")


def is_affected(version: tuple[int, int, int]) -> bool:
    """Whether a version of SQLite has the WAL-reset bug, by its number alone."""
    backport = _BACKPORTS.get(version[:2])
    if backport is not None:
        return version[2] < backport
    return _SINCE <= version < _FIXED


def library_version(number: str = sqlite3.sqlite_version) -> str:
    """The version of the SQLite library in this process, with a remark if it has the bug."""
    major, minor, patch = map(int, number.split(".")[:3])
    if not is_affected((major, minor, patch)):
        return number
    return (
        f"{number} (affected by the WAL-reset bug; WAL checkpoints are taken under the write lock)"
    )


_DIALECT = SimpleNamespace(name="sqlite")


def file_uri(file: Path) -> str:
    """A file as SQLite's URI, to which a mode is added: `?mode=ro`, `rw` or `rwc`."""
    return f"file:{quote(os.fsencode(file.absolute()))}"


def open_file(file: Path, *, busy_seconds: float, mode: str = "rw") -> sqlite3.Connection:
    """A connection to an existing file, in autocommit mode and for one thread at a time.

    It never creates a file by default: a connection that is opened later must not create an empty
    one if the database was deleted. It takes no automatic checkpoints.
    """
    driver = sqlite3.connect(
        f"{file_uri(file)}?mode={mode}",
        uri=True,
        timeout=busy_seconds,
        isolation_level=None,
        check_same_thread=False,
    )
    driver.execute("PRAGMA wal_autocheckpoint=0")
    return driver


class NamedRow(tuple[Any, ...]):
    """A row; its columns are attributes, too, and `_mapping` has them by name."""

    names: tuple[str, ...]

    @property
    def _mapping(self) -> dict[str, Any]:
        return dict(zip(self.names, self, strict=True))


def fetch_named(cursor: sqlite3.Cursor) -> list[Any]:
    """The rows of a cursor, with the names of their columns."""
    rows = cursor.fetchall()
    if not rows:
        return rows
    kind = _kind(tuple(name for name, *_ in cursor.description))
    return [*map(kind, rows)]


@cache
def _kind(names: tuple[str, ...]) -> type[NamedRow]:
    columns = {name: property(itemgetter(place)) for place, name in enumerate(names)}
    return type("Row", (NamedRow,), columns | {"names": names, "__slots__": ()})


class Rows:
    """The result of a statement; see `dealer.eventlog.protocols.Rows`."""

    def __init__(self, rows: list[Any], rowcount: int) -> None:
        self._rows = rows
        self.rowcount = rowcount

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows)

    def fetchall(self) -> list[Any]:
        return self._rows

    def first(self) -> Any:
        return self._rows[0] if self._rows else None

    def one(self) -> Any:
        (row,) = self._rows
        return row

    def scalar(self) -> Any:
        return self._rows[0][0] if self._rows else None

    def scalar_one(self) -> Any:
        return self.one()[0]


class SqliteConnection:
    """Implements `dealer.eventlog.protocols.Connection`; `driver` is the driver's connection."""

    dialect = _DIALECT

    def __init__(self, driver: sqlite3.Connection) -> None:
        self.driver = driver

    def exec_driver_sql(self, statement: str, parameters: Any = (), /) -> Rows:
        """Execute a statement, once for each tuple of a list; all its rows are read at once."""
        if isinstance(parameters, list):
            cursor = self.driver.executemany(statement, parameters)
        else:
            cursor = self.driver.execute(statement, parameters)
        return Rows(fetch_named(cursor), cursor.rowcount)

    def close(self) -> None:
        self.driver.close()


class WalCheckpoints:
    """Decides when a file's WAL is due for a checkpoint, and takes it.

    `take` is called by the writer thread, `due` also by the event loop's, one at a time.
    `pages` is the number of frames after which a checkpoint is due, and after which the next one
    is due if the WAL could not be restarted. `connect` opens a second connection to the file.
    """

    def __init__(self, file: Path, *, pages: int, connect: Callable[[], SqliteConnection]) -> None:
        self._file = Path(f"{file}-wal")
        self._pages = pages
        self._connect = connect
        self._connection: SqliteConnection | None = None
        self._wal: FileIO | None = None
        self._salts = b""
        self._next = pages
        self._warn = pages * GROWN

    def due(self) -> bool:
        """Whether the WAL has reached the frame at which the next checkpoint is due; costs 4 µs.

        All frames since the WAL was last restarted carry the salts of its header, whichever
        process wrote them. The file's length says nothing, for a WAL does not shrink.
        """
        if self._wal is None:
            try:
                self._wal = FileIO(self._file)
            except FileNotFoundError:
                return False
        header = self._read(0, _HEADER)
        page_size = int.from_bytes(header[_PAGE_SIZE])
        if not page_size:
            return False
        salts = header[_SALTS]
        if salts != self._salts:
            self._salts, self._next, self._warn = salts, self._pages, self._pages * GROWN
        frame = _HEADER + (self._next - 1) * (_FRAME_HEADER + page_size)
        return self._read(frame + _FRAME_SALTS, len(salts)) == salts

    def take(self, writer: SqliteConnection) -> None:
        """Copy the WAL's frames to the database, except those that a reader needs.

        `writer` must be outside of a transaction, and is so on return. Raises the driver's errors:
        SQLITE_BUSY if another process holds the write lock, and the checkpoint stays due.
        """
        execute = writer.exec_driver_sql
        busy_timeout = execute("PRAGMA busy_timeout").scalar_one()
        execute(f"PRAGMA busy_timeout={_LOCK_MS}")
        try:
            execute("BEGIN IMMEDIATE")
        finally:
            execute(f"PRAGMA busy_timeout={busy_timeout}")
        try:
            if self._connection is None:
                self._connection = self._connect()
            # PASSIVE takes no write lock of its own; RESTART and TRUNCATE would.
            checkpoint = self._connection.exec_driver_sql("PRAGMA wal_checkpoint(PASSIVE)")
            _, frames, copied = checkpoint.one()
        except BaseException:
            self._next += self._pages
            raise
        finally:
            execute("ROLLBACK")
        if frames > 0:
            self._next = frames + self._pages
        if frames >= self._warn:
            self._warn = 2 * frames
            details = {"frames": frames, "copied": copied}
            _log.warning("the WAL is not restarted", extra={"fields": details})

    def close(self) -> None:
        """Close the second connection and the file; both are opened again when needed."""
        connection, self._connection = self._connection, None
        wal, self._wal = self._wal, None
        if wal is not None:
            wal.close()
        if connection is not None:
            connection.close()

    def _read(self, offset: int, length: int) -> bytes:
        assert self._wal is not None
        self._wal.seek(offset)
        return self._wal.read(length)
