"""Archive: tables whose events are in a file; the log has the hash of the file."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import ExitStack
from hashlib import file_digest
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from dealer.errors import DatabaseDamaged, TableArchived
from dealer.eventlog import ReadOnlyLog
from dealer.eventlog.schema import TABLE_ID
from dealer.game.state import Table, evolve
from dealer.proof.bundle import LEAF
from dealer.proof.checkpoint import NoteFault, open_note
from dealer.proof.codec import decode

BLOCK = 64 * 1024
"""Bytes of a file that are read at a time."""

_ASK = (
    "SELECT a.size, a.root, a.house_key, a.file, a.length, a.sha256, a.closed_at, a.at"
    " FROM archived a JOIN stream s ON s.id = a.stream WHERE s.{} = ?"
)


class ArchiveRecord(NamedTuple):
    """The row of an archived table; times are in milliseconds since 1970, UTC."""

    size: int
    root: bytes
    house_key: bytes
    file: str
    length: int
    sha256: bytes
    closed_at: int
    at: int


async def find(log: ReadOnlyLog, table: bytes) -> ArchiveRecord | None:
    """The record of a table, by its id of 16 bytes; None if it is not archived."""
    found = await log.fetch(_ASK.format(TABLE_ID[log.dialect]), (table,))
    return ArchiveRecord._make(found[0]) if found else None


async def require_here(log: ReadOnlyLog, table: bytes) -> None:
    """Raise TableArchived if the table's events have left the log."""
    if await find(log, table) is not None:
        raise TableArchived(
            "This table is closed and archived; its bundle can still be downloaded and verified."
        )


class ArchiveFolder:
    """The folder of archived bundles; None if this server has none."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def find(self, record: ArchiveRecord) -> Path:
        """The path of a bundle; TableArchived if the file is not here."""
        if self._folder is None:
            raise TableArchived("This table is archived, and its bundle is not kept here.")
        file = self._folder / os.path.basename(record.file)
        if not file.exists():
            raise TableArchived("This table is archived, and its bundle is not here.")
        return file

    async def open(self, record: ArchiveRecord) -> BinaryIO:
        """An open bundle; TableArchived if it is not here.

        Raises DatabaseDamaged if it is not the file that was archived, or if the row says anything
        else of the table than this file.
        """
        path = self.find(record)
        with ExitStack() as closed_after_an_error:
            try:
                file = await asyncio.to_thread(path.open, "rb")
                closed_after_an_error.callback(file.close)
                digest = await asyncio.to_thread(file_digest, file, "sha256")
                same = digest.digest() == record.sha256
                as_recorded = same and await asyncio.to_thread(_is_of, file, record)
            except OSError:
                raise DatabaseDamaged(f"The file {path} cannot be read; check the disk.") from None
            if not same:
                raise DatabaseDamaged(
                    f"The file {path} is not the bundle that was archived; restore it from a "
                    "backup."
                )
            if not as_recorded:
                raise DatabaseDamaged(
                    f"The row of the SQL table `archived` for {path} was altered: it has another "
                    "size, length, root, key or time than the bundle; restore the database from a "
                    "backup."
                )
            closed_after_an_error.pop_all()
        return file


def _is_of(file: BinaryIO, record: ArchiveRecord) -> bool:
    """Whether a bundle, which is the one that was archived, is of the table as it is recorded."""
    file.seek(0)
    header = json.loads(file.readline())
    leaf = line = b""
    for line in file:
        if line.startswith(LEAF):
            leaf = line
    end = json.loads(leaf)
    try:
        note = json.loads(line)["checkpoint"]
        head = open_note(note, key=record.house_key, table=end["table"])
    except NoteFault:
        return False
    return (file.seek(0, os.SEEK_END), head, end["version"], end["at"], header["key"]) == (
        record.length, (record.size, record.root), record.size, record.closed_at,
        record.house_key.hex(),
    )  # fmt: skip


async def lines_of(file: BinaryIO) -> AsyncIterator[str]:
    """The lines of a bundle from its beginning, without newlines."""
    file.seek(0)
    while lines := await asyncio.to_thread(file.readlines, BLOCK):
        for line in lines:
            yield line.removesuffix(b"\n").decode()


def beginning_in(file: BinaryIO) -> Table:
    """The table after its first event, which has its rules."""
    return _replay(file, most=1)


def table_in(file: BinaryIO) -> Table:
    """The table at its end, to check a token against; without hidden parts and names."""
    return _replay(file, most=None)


def _replay(file: BinaryIO, *, most: int | None) -> Table:
    file.seek(0)
    table = Table()
    leaves = (json.loads(line) for line in file if line.startswith(LEAF))
    for leaf in islice(leaves, most):
        evolve(table, decode(leaf["type"], leaf["v"], leaf["public"], {}), leaf["at"])
    return table
