"""Detects that an open SQLite database was deleted or replaced under the process.

A process that has a file open does not notice when the name is given to another file: what it
commits goes to the old one, which disappears with the process. So the store compares the files
that the names stand for with those that it opened, after each commit and before any result is
delivered; two stat calls cost about 2 µs a batch.

Nothing here opens the database: closing any descriptor of it would drop all the locks that SQLite
holds in this process (POSIX advisory locks belong to process and file, not to a descriptor).
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from dealer.errors import DatabaseReplaced

_RESCUE = " While this process lives, the old files can be copied out of /proc/{pid}/fd."

_OTHERS = stat.S_IRWXO

_Inode = tuple[int, int]


class FileIdentity:
    """The inodes of a database and of its write-ahead log.

    `check` may be called on any thread. The other methods belong to the thread that opens and
    closes the connections. `shrunk` says that the file is smaller than it was, which VACUUM
    explains or a copy written over it: SQLite knows which, and `confirm` is told its answer.
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
        """The names stand for the files that a connection has just opened; DatabaseReplaced if
        the database is not the one that was opened first.
        """
        if self._database is None:
            self._database, self._size = _inode(self._path)
        self._wal = None
        self.check()
        self._wal = _inode(self._wal_path)[0]

    def closing(self) -> None:
        """A connection is about to be closed; the last one deletes the write-ahead log."""
        self._wal = None

    def closed(self) -> None:
        """The database is not open any more; what was wrong with it until then stays wrong."""
        self._database = self._wal = None

    def check(self) -> None:
        """Raise DatabaseReplaced unless both names stand for the files that were opened.

        Once it has raised it raises for good: a file that comes back lacks what was committed
        meanwhile.
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
            # Compared again at the end: the connection may have been closed in between.
            self._fail("lost its write-ahead log (the file with -wal at its end)")
        else:
            self.shrunk = size < self._size
            self._size = max(self._size, size)

    def confirm(self, expected: int) -> None:
        """Raise DatabaseReplaced if a file that shrank was not shrunk by SQLite.

        `expected` is the size in bytes that the database has for SQLite, with what is still in the
        write-ahead log. A file that was written over is smaller than both that and what it was.
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


def make_private(file: Path) -> None:
    """Create the database for its owner alone, mode 0600, if it does not exist.

    Of an existing one that every user of the machine may read, as earlier releases made it, all
    permissions but the owner's are removed; those of a group alone were granted on purpose and
    stay. SQLite gives its other files the mode of the database.
    """
    # Whatever fails here fails again as SQLite opens the file, which then says what is wrong.
    with suppress(OSError):
        try:
            os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        except FileExistsError:
            for path in (file, Path(f"{file}-wal"), Path(f"{file}-shm")):
                with suppress(OSError):
                    if os.name == "posix" and path.stat().st_mode & _OTHERS:
                        path.chmod(0o600)


def _inode(path: str) -> tuple[_Inode | None, int]:
    """What a name stands for, and its size in bytes; None and 0 for nothing."""
    try:
        found = os.stat(path)
    except OSError:
        return None, 0
    return (found.st_dev, found.st_ino), found.st_size
