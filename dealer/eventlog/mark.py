"""High-water marks: the newest append that this node committed or showed, kept beside the key.

A database that is restored from an older backup does not know what players have seen since. The
mark does: it is not in the database, so it is not restored with it. The writer puts it down after
each COMMIT and before any result is delivered, with one pwrite and no fsync. The commits of one
process are totally ordered, so a copy that is older than the newest of them lacks it; a process
that is killed between COMMIT and pwrite leaves the mark behind the log, never ahead of it.

A file holds two lines of ASCII, 256 bytes each, blank or

    own|seen v1 log=… generation=… table=… version=… leaf=… check=…

`own` is the newest append of the process, `seen` the newest that it read of another one. `log` is
the id of a line of the journal, which stands in every later copy of this log and in no other log.
`generation` counts restores, see `dealer.service.restored`. `check` is the beginning of the line's
SHA-256. Each process has a file of its own, locked for as long as it lives.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from logging import getLogger
from pathlib import Path
from typing import NamedTuple

from dealer.errors import SetupError
from dealer.eventlog.house import sync_folder
from dealer.eventlog.rows import Append, Appended, Result, Row, leaf_of
from dealer.proof.tree import leaf_hash

LINE_BYTES = 256
FIRST = bytes(16)
"""The generation of a log that was never found to be older than a mark."""

_BLANK = b" " * (LINE_BYTES - 1) + b"\n"
_OWN, _SEEN = 0, 1
_NAMES = ("own ", "seen")
_FILES = 64
_LINE = re.compile(
    r"(?:own |seen) v1 log=([0-9a-f]{16}) generation=([0-9a-f]{32}) table=([0-9a-f]{32})"
    r" version=(\d{16}) leaf=([0-9a-f]{64})"
)

_log = getLogger("dealer.eventlog")


class Line(NamedTuple):
    """An append that a node committed or showed: the newest event in it, by its leaf's hash."""

    log: bytes
    generation: bytes
    table: bytes
    version: int
    leaf: bytes


def leaf_digest(table: bytes, row: Row) -> bytes:
    """The leaf hash of an event, 32 bytes."""
    return leaf_hash(leaf_of(table, row).encode())


def mark_file(key: Path, number: int, *, folder: Path | None = None) -> Path:
    """The file number `number` of the marks of a key: beside it, or in `folder`.

    Its name does not begin with the key's, so that a backup of the keys does not hold it.
    """
    name = f"{key.name.removesuffix('.key')}.mark.{number}"
    return (folder or key.parent) / name


def read_marks(key: Path, *, folder: Path | None = None) -> list[Line]:
    """What all marks of this key say, also those of processes that are running.

    Raises SetupError if one cannot be read.
    """
    lines: list[Line] = []
    first = mark_file(key, 0, folder=folder)
    names = re.compile(re.escape(first.name.removesuffix("0")) + r"\d+")
    try:
        files = sorted(one for one in first.parent.iterdir() if names.fullmatch(one.name))
    except OSError:
        files = []
    for file in files:
        try:
            data = file.read_bytes()
        except OSError as error:
            raise SetupError(
                f"The mark {file} cannot be read ({error.strerror}); give it to the user that the "
                "server runs as."
            ) from None
        for start in range(0, len(data), LINE_BYTES):
            text = data[start : start + LINE_BYTES]
            # What a power cut left of a file that was just created is empty.
            if text.strip(b" \n\0"):
                lines.append(_read(text, file))
    return lines


def _read(data: bytes, file: Path) -> Line:
    text, _, check = data.decode("ascii", "replace").rstrip().rpartition(" check=")
    found = _LINE.fullmatch(text)
    if found is None or check != _check(text):
        raise SetupError(
            f"The file {file} is damaged: it says which events this server has acknowledged. If "
            "the database is not restored from a backup, delete the file and start again; if it "
            "is, delete the file and close the open tables with `dealer close --idle 0m` first."
        )
    log, generation, table, version, leaf = found.groups()
    return Line(
        bytes.fromhex(log),
        bytes.fromhex(generation),
        bytes.fromhex(table),
        int(version),
        bytes.fromhex(leaf),
    )


def _check(text: str) -> str:
    return sha256(text.encode()).hexdigest()[:16]


class Mark:
    """The mark of this process; `take` finds its file, `begin` starts to keep it.

    `wrote` is called on the writer's thread, all else on the loop's.
    """

    def __init__(self, file: Path, handle: int) -> None:
        self.file = file
        self._handle = handle
        self.log = b""  # no mark is kept of none
        self._generation = FIRST
        self._seen_at = 0
        self._dirty = False
        self._failed = False

    @classmethod
    def take(cls, key: Path, *, folder: Path | None = None) -> Mark | None:
        """The first mark of this key that no running process holds; its lines stay as they are.

        None where none can be kept: the folder is read-only, or the system has no flock.
        """
        for number in range(_FILES):
            file = mark_file(key, number, folder=folder)
            try:
                handle = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
            except OSError:
                return None
            try:
                if _lock(handle):
                    if os.fstat(handle).st_size < 2 * LINE_BYTES:
                        os.pwrite(handle, 2 * _BLANK, 0)
                        os.fsync(handle)
                        sync_folder(file.parent)
                    return cls(file, handle)
            except OSError:
                os.close(handle)
                return None
            os.close(handle)
        return None

    def begin(self, log: bytes, generation: bytes) -> None:
        """Keep the mark of the log with this id from now on; forget what was in the file if it is
        of an earlier generation.
        """
        if self.log and generation != self._generation:
            self._write(2 * _BLANK, 0)
        self._generation = generation
        self.log = log

    def wrote(self, requests: Sequence[Append], results: Sequence[Result]) -> None:
        """These were committed in one transaction: any of them stands for all."""
        if not self.log:
            return
        for request, result in zip(reversed(requests), reversed(results), strict=True):
            if isinstance(result, Appended) and request.rows:
                row = request.rows[-1]
                self._put(_OWN, request.table, row.version, leaf_digest(request.table, row))
                return

    def saw(self, table: bytes, version: int, leaf: str, *, at: int, old: bool = False) -> None:
        """An event that another process committed at millisecond `at`, before it is shown.

        `old` says that it may have been in the log for long: a newer one is not forgotten for it.
        """
        if self.log and not (old and at < self._seen_at):
            self._seen_at = at
            self._put(_SEEN, table, version, leaf_hash(leaf.encode()))

    def sync(self) -> None:
        """Have on disk what was put down; a machine that fails may lose what came after."""
        if self._dirty:
            self._dirty = False
            with suppress(OSError):
                os.fsync(self._handle)

    def close(self) -> None:
        """Give the file back; what is in it stays."""
        self.sync()
        os.close(self._handle)
        self.log = b""

    def _put(self, place: int, table: bytes, version: int, leaf: bytes) -> None:
        text = (
            f"{_NAMES[place]} v1 log={self.log.hex()} generation={self._generation.hex()}"
            f" table={table.hex()} version={version:016d} leaf={leaf.hex()}"
        )
        line = f"{text} check={_check(text)}".ljust(LINE_BYTES - 1) + "\n"
        self._write(line.encode(), place * LINE_BYTES)

    def _write(self, data: bytes, offset: int) -> None:
        try:
            os.pwrite(self._handle, data, offset)
        except OSError as error:
            if not self._failed:
                self._failed = True
                told = {"file": str(self.file), "error": error.strerror}
                _log.error("high-water mark not written", extra={"told": told})
        else:
            self._dirty, self._failed = True, False


def _lock(handle: int) -> bool:
    """Whether the file is this process's now; OSError where there are no such locks."""
    if sys.platform == "win32":
        raise OSError("no flock")
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
