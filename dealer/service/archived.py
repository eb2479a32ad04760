"""Tables that were put away: their events stand in a file, and the log knows the file's hash."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from hashlib import file_digest
from itertools import islice
from pathlib import Path
from typing import BinaryIO, NamedTuple

from dealer.errors import DatabaseDamaged, TableArchived
from dealer.eventlog import Reading
from dealer.game.state import Table, evolve
from dealer.proof.codec import decode

BLOCK = 64 * 1024
"""Bytes of a file that are read at once."""

_ASK = (
    "SELECT a.size, a.house_key, a.file, a.length, a.sha256, a.closed_at, a.at"
    " FROM archived a JOIN stream s ON s.id = a.stream WHERE s.table_id = ?"
)


class Kept(NamedTuple):
    """What the log knows of an archived table."""

    size: int
    house_key: bytes
    file: str
    length: int
    sha256: bytes
    closed_at: int
    at: int


async def find(log: Reading, table: bytes) -> Kept | None:
    """What is known of the table, by its id of 16 bytes, if it is archived."""
    found = await log.fetch(_ASK, (table,))
    return Kept._make(found[0]) if found else None


async def require_here(log: Reading, table: bytes) -> None:
    """Raise TableArchived if the table's events are here no more."""
    if await find(log, table) is not None:
        raise TableArchived(
            "This table is closed and archived; ask the house for its bundle, which proves it as "
            "before."
        )


class Shelf:
    """The folder of archived bundles; None where this house has none at hand."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def find(self, kept: Kept) -> Path:
        """The file of a bundle; TableArchived if it is not here."""
        if self._folder is None:
            raise TableArchived("This table is archived, and its bundle is not kept here.")
        file = self._folder / os.path.basename(kept.file)
        if not file.exists():
            raise TableArchived("This table is archived, and its bundle is not here.")
        return file

    async def open(self, kept: Kept) -> BinaryIO:
        """A bundle's file; TableArchived if it is not here, DatabaseDamaged if it is another."""
        path = self.find(kept)
        try:
            file = await asyncio.to_thread(path.open, "rb")
        except OSError:
            raise DatabaseDamaged(f"The file {path} cannot be read; see to the disk.") from None
        try:
            digest = await asyncio.to_thread(file_digest, file, "sha256")
        except BaseException as error:
            file.close()
            if isinstance(error, OSError):
                raise DatabaseDamaged(f"The file {path} cannot be read; see to the disk.") from None
            raise
        if digest.digest() != kept.sha256:
            file.close()
            raise DatabaseDamaged(
                f"The file {path} is not the bundle that was archived; restore it from a backup."
            )
        return file


async def lines_of(file: BinaryIO) -> AsyncIterator[str]:
    """The lines of a bundle from its beginning, as those of a table in the log come."""
    file.seek(0)
    while lines := await asyncio.to_thread(file.readlines, BLOCK):
        for line in lines:
            yield line.removesuffix(b"\n").decode()


def beginning_in(file: BinaryIO) -> Table:
    """How the table stood after its first event, which has its rules."""
    return _folded(file, most=1)


def table_in(file: BinaryIO) -> Table:
    """How the table stood at its end, for who asks by a token; nothing hidden is in it."""
    return _folded(file, most=None)


def _folded(file: BinaryIO, *, most: int | None) -> Table:
    file.seek(0)
    table = Table()
    leaves = (leaf for leaf in map(json.loads, file) if "version" in leaf)
    for leaf in islice(leaves, most):
        evolve(table, decode(leaf["type"], leaf["v"], leaf["public"], {}), leaf["at"])
    return table
