"""Log check: whether a table's rows in the database are those that the house wrote and signed.

A load finds what a server must not build on, and a verifier what a bundle shows. This reads every
row, and finds also what neither of them reads: hidden parts of closed rounds, older checkpoints,
and rows after the table's version.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from dealer.errors import (
    ConfigurationError,
    DatabaseDamaged,
    HouseKeyError,
    NoteFault,
    TableArchived,
)
from dealer.eventlog import EventRecord, HouseKeys, ReadOnlyLog, key_file
from dealer.eventlog.keys import read_keys
from dealer.eventlog.rows import leaf_of
from dealer.eventlog.schema import TABLE_ID
from dealer.game.events import CHECKPOINT_TYPES, OPENED_TYPES
from dealer.proof.checkpoint import open_note
from dealer.proof.tree import Tree, leaf_hash
from dealer.service.reading.bundle import stored_notes
from dealer.service.tables.archive import require_here
from dealer.service.tables.round_secret import RoundSecret, require_committed

Keys = Mapping[bytes, HouseKeys]
"""The house's keys that are here, by the public key of the tables that are signed with them."""

# One statement, and so of one moment.
_ENDS = (
    "SELECT s.version, coalesce((SELECT max(e.version) FROM event e WHERE e.stream = s.id), 0),"
    " coalesce((SELECT max(c.size) FROM checkpoint c WHERE c.stream = s.id), 0)"
    " FROM stream s WHERE s.{} = ?"
)
_TABLES = (
    "SELECT s.table_id FROM stream s"
    " WHERE NOT EXISTS (SELECT 1 FROM archived a WHERE a.stream = s.id) ORDER BY s.id"
)
_LOST = (
    "SELECT count(DISTINCT e.stream) FROM event e"
    " WHERE NOT EXISTS (SELECT 1 FROM stream s WHERE s.id = e.stream)"
)


async def find_damaged(
    log: ReadOnlyLog, keys: Keys, *, step: Callable[[int, int], None] = lambda done, total: None
) -> tuple[list[str], int]:
    """A sentence for each table whose rows are damaged, and the number of those checked in part.

    `step` is called with the tables that were checked and their total.
    """
    damaged, partly = [], 0
    ((lost,),) = await log.fetch(_LOST)
    if lost:
        damaged.append(
            f"The log has events of {lost} tables that are not in `stream`: the database was "
            "altered or is incomplete; restore it from a backup."
        )
    tables = await log.fetch(_TABLES)
    for done, (table,) in enumerate(tables, 1):
        try:
            partly += not await require_intact(log, table, keys)
        except TableArchived:
            pass
        except DatabaseDamaged as error:
            damaged.append(str(error))
        step(done, len(tables))
    return damaged, partly


async def require_intact(log: ReadOnlyLog, table: bytes, keys: Keys) -> bool:
    """Read every row of a table; raises DatabaseDamaged, whose sentence says what is wrong.

    Returns whether everything was checked: without the table's key in `keys` the hidden parts of
    an open round cannot be. Raises TableArchived if its events leave the log meanwhile.
    """
    try:
        return await _Check(table, keys).run(log)
    except DatabaseDamaged as error:
        await require_here(log, table)
        raise DatabaseDamaged(
            f"Table {table.hex()}: {error} The database was altered or is incomplete; restore it "
            "from a backup."
        ) from None


class _Check:
    def __init__(self, table: bytes, keys: Keys) -> None:
        self._table = table
        self._keys = keys
        self._tree = Tree()
        self._at = 0
        self._key = b""
        self._notes: dict[int, str] = {}
        self._published: dict[int, bytes] = {}
        self._secret: RoundSecret | None = None
        self._slots: list[str] = []
        self._complete = True

    async def run(self, log: ReadOnlyLog) -> bool:
        ((version, last, signed),) = await log.fetch(
            _ENDS.format(TABLE_ID[log.dialect]), (self._table,)
        )
        if last != version:
            raise DatabaseDamaged(f"its version is {version}, its newest event is {last}.")
        if signed > version:
            raise DatabaseDamaged(f"version {signed} was signed, its newest event is {version}.")
        self._notes = dict([note async for note in stored_notes(log, self._table)])
        async for rows in log.stream_types(self._table, ("RoundClosed",), upto=version):
            self._published |= dict(map(_secret_in, rows))
        async for rows in log.stream(self._table, upto=version):
            for row in rows:
                try:
                    self._add(row)
                except (LookupError, TypeError, ValueError) as error:
                    raise DatabaseDamaged(f"version {row.version} is no event ({error}).") from None
        if self._tree.size < version:
            raise DatabaseDamaged(f"version {self._tree.size + 1} is missing.")
        return self._complete

    def _add(self, row: EventRecord) -> None:
        if row.version != self._tree.size + 1:
            raise DatabaseDamaged(f"version {self._tree.size + 1} is missing.")
        self._tree.append(leaf_hash(leaf_of(self._table, row).encode()))
        if row.at < self._at:
            raise DatabaseDamaged(f"the time of version {row.version} is before the one before it.")
        self._at = row.at
        if row.version == 1:
            self._open_table(row)
        self._check_signature(row)
        match row.type:
            case "RoundOpened":
                self._open_round(row)
            case "RoundClosed":
                self._secret = None
        if row.type != "RoundOpened":
            self._check_hidden(row)

    def _open_table(self, row: EventRecord) -> None:
        members = row.members()
        if row.type != "TableOpened" or members["origin"][-32:] != self._table.hex():
            raise DatabaseDamaged("its first event is not that of its opening.")
        self._key = bytes.fromhex(members["key"])

    def _check_signature(self, row: EventRecord) -> None:
        note = self._notes.get(row.version)
        if note is None:
            if row.type in CHECKPOINT_TYPES:
                raise DatabaseDamaged(
                    f"the signed checkpoint at version {row.version} ({row.type}) is missing."
                )
            return
        try:
            signed = open_note(note, key=self._key, table=self._table.hex())
        except NoteFault as fault:
            sentence = f"the checkpoint at version {row.version} is not the house's: {fault}"
            raise DatabaseDamaged(sentence) from None
        if signed != (row.version, self._tree.root()):
            raise DatabaseDamaged(
                f"the events up to version {row.version} are not those that the house signed."
            )

    def _open_round(self, row: EventRecord) -> None:
        number, wrapped = row.members()["round"], row.hidden or b""
        secret, house = self._published.get(number), self._keys.get(self._key)
        if house is not None:
            try:
                kept = house.unwrap(wrapped, table=self._table, round=number)
            except DatabaseDamaged:
                kept = b""
            if kept != (secret or kept) or not kept:
                raise DatabaseDamaged(f"the secret of round {number} was altered.")
            secret = kept
        self._slots = []
        self._secret = None
        if secret is None:
            self._complete = False
            return
        self._secret = RoundSecret(table=self._table, round=number, secret=secret, wrapped=wrapped)
        if self._secret.commitment.hex() != row.members()["commitment"]:
            raise DatabaseDamaged(f"the secret of round {number} is not the one committed to.")

    def _check_hidden(self, row: EventRecord) -> None:
        """Compare the hidden part with its commitment, or with the card's, as it was sealed."""
        peeked, secret = row.type == "CardPeeked", self._secret
        if row.type == "DeckSealed":
            self._slots += row.members()["slots"]
        if (row.hidden is not None) != (row.commitment is not None or peeked):
            raise DatabaseDamaged(f"the hidden part of version {row.version} is missing or added.")
        if secret is None or row.hidden is None or row.type in OPENED_TYPES:
            return  # `leaf_of` has compared an opened part
        try:
            part = secret.decrypt(row.version, row.hidden)
            if not peeked:
                require_committed(row, part, secret)
                return
        except DatabaseDamaged:
            pass
        else:
            slot, card = row.members()["slot"], json.loads(part)["card"]
            if secret.slot_commitments(slot, [card])[0].hex() == self._slots[slot]:
                return
        raise DatabaseDamaged(f"the hidden part of version {row.version} was altered.")


def _secret_in(row: EventRecord) -> tuple[int, bytes]:
    members = row.members()
    return members["round"], bytes.fromhex(members["secret"])


async def keys_of(database: str, house_key: Path | None) -> Keys:
    """The keys in the file of this database's key and beside it; none if they cannot be read."""
    try:
        found = await asyncio.to_thread(read_keys, key_file(database, house_key))
    except (ConfigurationError, HouseKeyError):
        return {}
    return {key.public_key: key for key in found}
