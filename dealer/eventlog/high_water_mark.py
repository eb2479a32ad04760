"""High-water marks: files next to the key that name the newest append a node committed or showed.

A database that is restored from an older backup lacks events that players have seen. The mark is
not in the database, so it is not restored with it, and the difference shows. The thread that
commits writes it after each COMMIT and before any result is delivered, with one pwrite and no
fsync. The commits of one process are totally ordered, so a backup that is older than the newest one
lacks it. If a process is killed between COMMIT and pwrite, the mark is older than the log, never
newer.

A file holds three lines of ASCII, 256 bytes each, blank or

    own|seen v1 log=… generation=… table=… version=… leaf=… check=…
    home v1 database=… check=…

`own` is the newest append of the process, `seen` the newest that it read of another one. `log` is
the id of an entry of the journal, which is in every later copy of this log and in no other log.
`generation` counts restores (`service/operations/restore_check.py`). `check` is a prefix of the
line's SHA-256. `database` is `Reader.identity` of the database that the process used last, by which
a server is known that was replaced before. Each process has a file of its own, locked while it
runs. The folder has a random id for each key, in a file of its own, by which the log knows the
folders whose marks count.
"""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from logging import getLogger
from pathlib import Path
from typing import NamedTuple

from dealer.errors import ConfigurationError
from dealer.eventlog.keys import sync_folder
from dealer.eventlog.read_only_log import ReadOnlyLog
from dealer.eventlog.rows import Append, Appended, EventRecord, Result, leaf_of
from dealer.proof.tree import leaf_hash

LINE_BYTES = 256
FIRST = bytes(16)
"""The generation of a log for which no restore was ever detected."""

_BLANK = b" " * (LINE_BYTES - 1) + b"\n"
_OWN, _SEEN, _HOME = 0, 1, 2
_NAMES = ("own ", "seen")
_FILES = 64
_ID_BYTES = 16
_LINE = re.compile(
    r"(?:own |seen) v1 log=([0-9a-f]{16}) generation=([0-9a-f]{32}) table=([0-9a-f]{32})"
    r" version=(\d{16}) leaf=([0-9a-f]{64})"
    r"|home v1 database=(\S+)"
)

_log = getLogger("dealer.eventlog")


class MarkRecord(NamedTuple):
    """A line of a mark file: the newest event of an append, identified by its leaf hash."""

    log: bytes
    generation: bytes
    table: bytes
    version: int
    leaf: bytes


def leaf_digest(table: bytes, row: EventRecord) -> bytes:
    """The leaf hash of an event, 32 bytes."""
    return leaf_hash(leaf_of(table, row).encode())


def mark_file(key: Path, number: int | str, *, folder: Path | None = None) -> Path:
    """Mark file `number` of a key, or the file `id` of its folder: next to it, or in `folder`.

    Its name does not begin with the key's, so that a backup of the keys does not contain it.
    """
    name = f"{key.name.removesuffix('.key')}.mark.{number}"
    return (folder or key.parent) / name


class Marks(NamedTuple):
    """What mark files say: events that were committed or shown, and the databases in use."""

    records: list[MarkRecord]
    databases: list[str]


def read_marks(key: Path, *, folder: Path | None = None) -> Marks:
    """The lines of all mark files of this key, including those of running processes.

    Raises ConfigurationError if one cannot be read.
    """
    marks = Marks([], [])
    first = mark_file(key, 0, folder=folder)
    names = re.compile(re.escape(first.name.removesuffix("0")) + r"\d+")
    try:
        files = sorted(file for file in first.parent.iterdir() if names.fullmatch(file.name))
    except OSError:
        files = []
    for file in files:
        found = _read_file(file)
        marks.records.extend(found.records)
        marks.databases.extend(found.databases)
    return marks


def _read_file(file: Path) -> Marks:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise ConfigurationError(
            f"The mark {file} cannot be read ({error.strerror}); make it readable for the "
            "user that the server runs as."
        ) from None
    lines = [data[start : start + LINE_BYTES] for start in range(0, len(data), LINE_BYTES)]
    # After a power failure a new file can be empty.
    read = [_read(line, file) for line in lines if line.strip(b" \n\0")]
    records = [each for each in read if isinstance(each, MarkRecord)]
    return Marks(records, [each for each in read if isinstance(each, str)])


def _read(data: bytes, file: Path) -> MarkRecord | str:
    text, _, check = data.decode("ascii", "replace").rstrip().rpartition(" check=")
    found = _LINE.fullmatch(text)
    if found is None or check != _check(text):
        raise ConfigurationError(
            f"The file {file} is damaged: it says which events this server has acknowledged. If "
            "the database is not restored from a backup, delete the file and start again; if it "
            "is, delete the file and close the open tables with `dealer tables close --idle 0m` "
            "first."
        )
    log, generation, table, version, leaf, database = found.groups()
    if database is not None:
        return str(database)
    return MarkRecord(
        bytes.fromhex(log),
        bytes.fromhex(generation),
        bytes.fromhex(table),
        int(version),
        bytes.fromhex(leaf),
    )


def _line(text: str) -> bytes:
    return (f"{text} check={_check(text)}".ljust(LINE_BYTES - 1) + "\n").encode()


def _check(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


async def fence(log: ReadOnlyLog, key: Path) -> None:
    """Raise ServerReplaced, now or later, as `Reader.fence` does; marks next to this key count."""
    await log.reader.fence((await asyncio.to_thread(read_marks, key)).databases)


class HighWaterMark:
    """The mark file of this process; `take` opens it, `begin` enables writing.

    `wrote` is called on the thread that commits, every other method on the event loop. `folder` is
    the id of the folder, in hex.
    """

    def __init__(self, file: Path, handle: int, folder: str) -> None:
        self.file = file
        self.folder = folder
        self._handle = handle
        self.log = b""  # no marks are written before `begin`
        self._generation = FIRST
        self._seen_at = 0
        self._dirty = False
        self._failed = False

    @classmethod
    def take(cls, key: Path, *, fresh: bytes, folder: Path | None = None) -> HighWaterMark | None:
        """Lock the first mark file of this key that no running process has locked.

        `fresh` is 16 random bytes, which become the folder's id if it has none.

        None if marks cannot be written: the folder is read-only, or the system has no flock.
        """
        try:
            identity = _folder_id(mark_file(key, "id", folder=folder), fresh)
        except OSError:
            return None
        for number in range(_FILES):
            file = mark_file(key, number, folder=folder)
            try:
                handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
            except OSError:
                return None
            try:
                if lock_file(handle):
                    if os.fstat(handle).st_size < 2 * LINE_BYTES:
                        os.pwrite(handle, 2 * _BLANK, 0)
                        os.fsync(handle)
                        sync_folder(file.parent)
                    return cls(file, handle, identity)
            except OSError:
                os.close(handle)
                return None
            os.close(handle)
        return None

    def records(self) -> list[MarkRecord]:
        """The lines of this file; ConfigurationError if it cannot be read."""
        return _read_file(self.file).records

    def begin(self, log: bytes, generation: bytes) -> None:
        """Write marks for the log with this id from now on; clear its events if they are of an
        earlier generation.
        """
        if self.log and generation != self._generation:
            self._write(2 * _BLANK, 0)
        self._generation = generation
        self.log = log

    def uses(self, database: str) -> None:
        """Record the identity of the database that this process uses."""
        self._write(_line(f"home v1 database={database}"), _HOME * LINE_BYTES)

    def wrote(self, requests: Sequence[Append], results: Sequence[Result]) -> None:
        """Record one append of a batch that was committed in one transaction."""
        if not self.log:
            return
        for request, result in zip(reversed(requests), reversed(results), strict=True):
            if isinstance(result, Appended) and request.rows:
                row = request.rows[-1]
                leaf = row.leaf or leaf_of(request.table, row)
                self._put(_OWN, request.table, row.version, leaf_hash(leaf.encode()))
                return

    def saw(self, table: bytes, version: int, leaf: str, *, at: int, old: bool = False) -> None:
        """Record an event of another process, committed at millisecond `at`, before it is shown.

        With `old` the event may be older than the recorded one, which then is kept.
        """
        if self.log and not (old and at < self._seen_at):
            self._seen_at = at
            self._put(_SEEN, table, version, leaf_hash(leaf.encode()))

    def sync(self) -> None:
        """fsync the file; a machine that fails may lose later marks."""
        if self._dirty:
            self._dirty = False
            with suppress(OSError):
                os.fsync(self._handle)

    def close(self) -> None:
        """Unlock the file; its content is kept."""
        self.sync()
        os.close(self._handle)
        self.log = b""

    def _put(self, line: int, table: bytes, version: int, leaf: bytes) -> None:
        text = (
            f"{_NAMES[line]} v1 log={self.log.hex()} generation={self._generation.hex()}"
            f" table={table.hex()} version={version:016d} leaf={leaf.hex()}"
        )
        self._write(_line(text), line * LINE_BYTES)

    def _write(self, data: bytes, offset: int) -> None:
        try:
            os.pwrite(self._handle, data, offset)
        except OSError as error:
            if not self._failed:
                self._failed = True
                fields = {"file": str(self.file), "error": error.strerror}
                _log.error("high-water mark not written", extra={"fields": fields})
        else:
            self._dirty, self._failed = True, False


def _folder_id(file: Path, fresh: bytes) -> str:
    """The folder's id, in hex, from this file, which the first process writes; raises OSError."""
    if len(fresh) != _ID_BYTES:
        raise ValueError(f"an id has {_ID_BYTES} bytes")
    handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        lock_file(handle, wait=True)
        found = os.pread(handle, _ID_BYTES, 0)
        if not found.strip(b"\0"):  # new, or not yet on the disk at a power failure
            found = fresh
            os.pwrite(handle, found, 0)
            os.fsync(handle)
            sync_folder(file.parent)
        return found.hex()
    finally:
        os.close(handle)


def lock_file(handle: int, *, wait: bool = False) -> bool:
    """Lock the file; False if another process has locked it. OSError if flock is unsupported."""
    if sys.platform == "win32":
        raise OSError("no flock")
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
