"""Bundle export: the lines of a table's bundle, read from the event log.

The format is as in `dealer.proof.bundle`: a header, one leaf per event, the openings of what people
wrote, and the checkpoints.
"""

from __future__ import annotations

import asyncio
import json
from array import array
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import NamedTuple

from dealer.errors import ConfigurationError, HouseKeyError, NoteFault, UnknownTable
from dealer.eventlog import EventRecord, HouseKeys, ReadOnlyLog, key_file
from dealer.eventlog.keys import read_keys
from dealer.eventlog.rows import leaf_of
from dealer.game.events import CHECKPOINT_TYPES
from dealer.proof import bundle
from dealer.proof.checkpoint import Signer, open_note
from dealer.proof.opened import separate
from dealer.proof.tree import Tree, leaf_hash
from dealer.service.tables.archive import require_here
from dealer.service.tables.round_secret import tampered, unsigned

CHUNK = 1000
"""Events, or checkpoints, that are read from the log at a time."""

DOWNLOAD_CHUNK = 128
"""Events, or checkpoints, read at a time for a download: a slow client holds them in memory."""


class BundleRange(NamedTuple):
    """The events of a bundle: the first `size` of the `head` events in the log.

    `newest` is the largest stored checkpoint; `signer` signs the head if that is beyond it.
    `unsigned_reason` says why the bundle ends before the head, if it does.
    """

    table: bytes
    size: int
    head: int
    newest: tuple[int, str] | None = None
    signer: Signer | None = None
    unsigned_reason: str = ""


async def bundle_range(
    log: ReadOnlyLog, database: str, table: bytes, *, house_key: Path | None
) -> BundleRange:
    """The longest bundle of a table: up to the head if the key file is here, else up to the newest
    checkpoint.

    Raises TableArchived, or UnknownTable if there is no checkpoint and no key.
    """
    await require_here(log, table)
    head = await log.head(table) or 0
    newest = await log.newest_checkpoint(table, upto=head)
    signed = 0 if newest is None else newest[0]
    if signed == head:
        return BundleRange(table, head, head, newest)
    keys, reason = await _keys_of(log, database, house_key, table)
    if keys is not None:
        return BundleRange(table, head, head, newest, Signer(keys.signing_seed))
    if newest is None:
        raise UnknownTable(f"The house has signed nothing of this table yet, and {reason}.")
    return BundleRange(table, signed, head, newest, unsigned_reason=reason)


async def bundle_lines(
    log: ReadOnlyLog,
    extent: BundleRange,
    *,
    chunk: int = CHUNK,
    step: Callable[[int, int], None] = lambda done, total: None,
) -> AsyncIterator[str]:
    """The lines of a bundle, without newlines; `step` is called with events read and in all.

    Raises DatabaseDamaged if the rows are not those that the house signed, TableArchived if
    they leave the log meanwhile.
    """
    table, tree = extent.table, Tree()
    origin, key, size, opened = "", b"", 0, array("Q")
    signed = await log.signed_sizes(table)
    async for rows in log.stream(table, upto=extent.size, chunk=chunk):
        for row in rows:
            if row.version != size + 1:
                break
            size = row.version
            if row.version == 1:
                origin, key = _origin_and_key(table, row)
                yield bundle.header(origin=origin, key=key)
            yield (leaf := leaf_of(table, row))
            if row.beside()[1]:
                opened.append(row.version)
            if extent.signer is not None:
                tree.append(leaf_hash(leaf.encode()))
                _require_signed(extent, row, tree, key)
                if row.type in CHECKPOINT_TYPES and row.version not in signed:
                    await require_here(log, table)
                    raise unsigned(table.hex(), row)
        step(size, extent.size)
    if size < extent.size:
        await require_here(log, table)
        raise tampered(table.hex())
    # Read again: a slow client would hold all that was written at the table in memory.
    while opened:
        rows = await log.read(table, after=opened[0] - 1, upto=extent.size, limit=chunk)
        found = [row for row in rows if row.beside()[1]]
        if [row.version for row in found] != list(opened[: len(found)]) or not found:
            await require_here(log, table)
            raise tampered(table.hex())
        for row in found:
            part = separate(row.type, row.members())[1]
            yield bundle.opened(row.version, part, row.hidden or b"")
        del opened[: len(found)]
    async for size, note in stored_notes(log, table):
        if size <= extent.size:
            yield bundle.checkpoint(note)
    if extent.signer is not None:
        note = extent.signer.sign(origin=origin, size=extent.size, root=tree.root())
        yield bundle.checkpoint(note)


async def stored_notes(log: ReadOnlyLog, table: bytes) -> AsyncIterator[tuple[int, str]]:
    """(size, note) of all checkpoints of a table, by size."""
    after = -1
    while notes := await log.checkpoints(table, after=after, limit=CHUNK):
        for note in notes:
            yield note
        after = notes[-1][0]


def _origin_and_key(table: bytes, row: EventRecord) -> tuple[str, bytes]:
    """Origin and house key of a table, from its first event."""
    try:
        opened = json.loads(row.public)
        return str(opened["origin"]), bytes.fromhex(opened["key"])
    except (ValueError, KeyError, TypeError):
        raise tampered(table.hex()) from None


def _require_signed(extent: BundleRange, row: EventRecord, tree: Tree, key: bytes) -> None:
    """Raise DatabaseDamaged if the rows up to the newest checkpoint are not those it signs.

    Without this check the new signature would cover altered rows.
    """
    if extent.newest is None or row.version != extent.newest[0]:
        return
    try:
        _, root = open_note(extent.newest[1], key=key, table=extent.table.hex())
    except NoteFault:
        root = b""
    if root != tree.root():
        raise tampered(extent.table.hex())


async def _keys_of(
    log: ReadOnlyLog, database: str, house_key: Path | None, table: bytes
) -> tuple[HouseKeys | None, str]:
    """The keys that this table is signed under, if they are here; else why not."""
    try:
        file = key_file(database, house_key)
    except ConfigurationError:
        return None, "its key was not named with --house-key"
    opened = await log.read(table, limit=1)
    if not opened:
        raise tampered(table.hex())
    try:
        keys = await asyncio.to_thread(read_keys, file)
    except HouseKeyError:
        return None, f"its key {file} cannot be read here"
    for key in keys:
        if key.public_key.hex() == opened[0].members().get("key"):
            return key, ""
    return None, f"{file} is not its key"
