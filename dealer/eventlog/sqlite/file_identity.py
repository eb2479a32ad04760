"""Detects that an open SQLite database was deleted or replaced by another file.

A process that has a file open does not notice when its path is given to another file: it goes on
committing to the old one, which is removed when the process ends. So the store compares the inodes
at the paths with those that it opened, after each commit and before any result is delivered; two
stat calls cost about 2 µs per batch.

Nothing here opens the database: closing any descriptor of it would release all the locks that
SQLite holds in this process (POSIX advisory locks belong to a process and a file, not to a
descriptor).
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from dealer.errors import DatabaseReplaced

_RESCUE = " While this process runs, the old files can be copied out of /proc/{pid}/fd."

_OTHER_USERS = stat.S_IRWXO

_Inode = tuple[int, int]


class FileIdentity:
    """The inodes of a database and of its WAL.

    `check` may be called on any thread, the other methods only by the thread that uses the store
    (one at a time, which holds the writer's lock). `shrunk` is whether the file became smaller, by
    VACUUM or because a copy was written over it; `confirm` decides which, given the size that
    SQLite reports.
    """

    def __init__(self, file: Path) -> None:
        self._file = file.absolute()
        self._path = str(self._file)
        # SQLite follows symbolic links before it adds the suffix.
        self._wal_path = f"{os.path.realpath(self._path)}-wal"
        self._database: _Inode | None = None
        self._size = 0
        self._wal: _Inode | None = None
        self._fault: str | None = None
        self.shrunk = False

    def opened(self) -> None:
        """Record the files that a connection has opened; raises DatabaseReplaced if the database
        is not the one that was opened first.
        """
        if self._database is None:
            self._database, self._size = _inode(self._path)
        self._wal = None
        self.check()
        self._wal = _inode(self._wal_path)[0]

    def closing(self) -> None:
        """Call before a connection is closed; SQLite deletes the WAL with the last one."""
        self._wal = None

    def closed(self) -> None:
        """Call when the database is closed; a detected fault stays."""
        self._database = self._wal = None

    def check(self) -> None:
        """Raise DatabaseReplaced unless both paths lead to the files that were opened.

        Once it has raised, it always raises: a file that was moved back lacks what was committed
        in between.
        """
        if self._fault is None:
            self._compare()
        if self._fault is not None:
            raise DatabaseReplaced(self._fault)

    def _compare(self) -> None:
        expected, wal = self._database, self._wal
        if expected is None:
            return
        found, size = _inode(self._path)
        if found is None:
            self._fail("was deleted")
        elif found != expected:
            self._fail("was replaced by another file")
        elif wal is not None and _inode(self._wal_path)[0] != wal and self._wal is wal:
            # `self._wal is wal`: the connection may have been closed in between.
            self._fail("lost its write-ahead log (the file whose name ends with -wal)")
        else:
            self.shrunk = size < self._size
            self._size = max(self._size, size)

    def wal_bytes(self) -> int:
        """The size of the WAL, 0 if there is none."""
        return _inode(self._wal_path)[1]

    def confirm(self, expected: int) -> None:
        """Raise DatabaseReplaced if a file that shrank was not shrunk by SQLite.

        `expected` is the size of the database in bytes according to SQLite, pages in the WAL
        included. An overwritten file is smaller than both that and its earlier size.
        """
        _, size = _inode(self._path)
        if size < min(expected, self._size):
            self._fail("was overwritten by a smaller one", rescue="")
        else:
            self._size, self.shrunk = size, False
        self.check()

    def _fail(self, what: str, *, rescue: str = _RESCUE) -> None:
        self._fault = (
            f"The database file {self._path} {what} while the server had it open. Nothing since "
            "then is acknowledged. Put the file back, or restore a backup, then restart the "
            f"server.{rescue.format(pid=os.getpid())}"
        )


def create_private(file: Path) -> None:
    """Create the database for its owner alone, mode 0600, if it does not exist.

    SQLite gives its other files the mode of the database.
    """
    # An error here occurs again when SQLite opens the file, and is reported then.
    with suppress(OSError):
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def make_private(file: Path) -> None:
    """Remove all permissions but the owner's from a database that every user may access.

    Permissions of the group alone were granted on purpose and are kept.
    """
    for path in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
        with suppress(OSError):
            if os.name == "posix" and path.stat().st_mode & _OTHER_USERS:
                path.chmod(0o600)


def _inode(path: str) -> tuple[_Inode | None, int]:
    """The inode and size in bytes of the file at a path; None and 0 if there is none."""
    try:
        found = os.stat(path)
    except OSError:
        return None, 0
    return (found.st_dev, found.st_ino), found.st_size
