"""Tables that were put away: their events stand in a file, and the log knows the file's hash."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from dealer.errors import DatabaseDamaged, TableArchived
from dealer.eventlog import Reading
from dealer.game.state import Table, evolve
from dealer.proof import bundle
from dealer.proof.codec import decode

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

    async def read(self, kept: Kept) -> bytes:
        """A bundle's bytes; TableArchived if it is not here, DatabaseDamaged if it is another."""
        file = self.find(kept)
        try:
            data = await asyncio.to_thread(file.read_bytes)
        except OSError:
            raise DatabaseDamaged(f"The file {file} cannot be read; see to the disk.") from None
        if await asyncio.to_thread(_hash, data) != kept.sha256:
            raise DatabaseDamaged(
                f"The file {file} is not the bundle that was archived; restore it from a backup."
            )
        return data


async def lines_of(data: bytes) -> AsyncIterator[str]:
    """The lines of a bundle, as those of a table in the log come."""
    for line in bundle.read(data):
        yield line.decode()


def table_in(data: bytes) -> Table:
    """How the table stood at its end, for who asks by a token; nothing hidden is in it."""
    table = Table()
    for line in bundle.read(data):
        leaf = json.loads(line)
        if "version" in leaf:
            evolve(table, decode(leaf["type"], leaf["v"], leaf["public"], {}), leaf["at"])
    return table


def _hash(data: bytes) -> bytes:
    return sha256(data).digest()
