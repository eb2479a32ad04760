"""What the service reads from the log: whole tables, stretches of events, proofs, bundles."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from typing import Any

from dealer.errors import BadRequest, DatabaseDamaged
from dealer.eventlog import Log, Row
from dealer.eventlog.sealing import HouseKeys
from dealer.game.commands import Draw
from dealer.game.decide import NoSecret
from dealer.game.events import CardDrawn, Event
from dealer.game.state import evolve
from dealer.proof import bundle, codec
from dealer.proof.checkpoint import NoteFault, attach, open_note, player
from dealer.proof.tree import consistency_proof, leaf_hash
from dealer.service.archived import require_here
from dealer.service.record import Entry, entry
from dealer.service.requests import Done, Remembered
from dealer.service.resident import Resident
from dealer.service.round_secret import RoundSecret
from dealer.service.snapshots import Published
from dealer.service.tail import Footing, Tail

SECRETS = 1024
"""How many closed rounds' secrets are kept at hand for players who come back to them."""

CHUNK = 1000

COSIGNABLE = 8
"""How many of a table's latest checkpoints still take cosignatures."""

GLIMPSED = ("CardDrawn", "CardMoved", "CardPeeked")
"""Types of events that can show a face to one seat."""


class Archive:
    """Reads one house's tables; `key` opens what the house sealed."""

    def __init__(self, log: Log, key: HouseKeys) -> None:
        self._log = log
        self._key = key
        self._secrets: OrderedDict[tuple[bytes, int], RoundSecret] = OrderedDict()

    async def load(self, table: bytes) -> Resident:
        """The table as the log has it, checked against its newest checkpoint; version 0 if none.

        Raises DatabaseDamaged where the rows are not those that the house signed, or where the
        secret of the open round does not open.
        """
        resident = Resident(table, table.hex())
        for name in [name for name in self._secrets if name[0] == table]:
            del self._secrets[name]  # in a log that was put back a round may come again
        newest = await self._log.newest_checkpoint(table)
        size, root = 0 if newest is None else newest[0], b""
        current: list[Row] = []  # since the round opened: only an open round needs its secret
        async for rows in self._log.stream(table, chunk=CHUNK):
            for row in rows:
                if row.version == 1 and newest is not None:
                    _, root = self._signed(resident, newest[1], key=_key_in(row))
                self._remember(resident, row)
                if row.version == size and resident.tree.root() != root:
                    raise altered(resident.table_id)
                if row.type == "RoundOpened":
                    _fold(resident, current)
                    current = []
                current.append(row)
        if not resident.tree.size:
            await require_here(self._log, table)
        if resident.tree.size < size:
            raise altered(resident.table_id)
        if current and current[0].type == "RoundOpened" and not _closes(current):
            resident.secret = self._unwrap(table, current[0])
        _fold(resident, current)
        resident.committed = resident.table.version
        resident.set_foot()
        return resident

    async def advance(self, resident: Resident) -> tuple[Resident, Published]:
        """The table as the log has it now, read from where it stood in memory before.

        With it comes what is new to who was told all that was on disk. Of a table that has no
        footing, or whose log does not follow from it, all is read. Raises what `load` raises.
        """
        footing, resident.footing = resident.footing, None
        if footing is not None:
            # With the last event that was on disk: it shows whether the log was put back.
            after = max(0, min(footing.version, resident.committed - 1))
            tail = await self._tail(resident.id, after=after)
            # Whatever does not fit what was believed here: all of it read anew says what is true.
            with suppress(Exception):
                tail.check(after)
                return self._follow(resident, footing, tail)
        fresh = await self.load(resident.id)
        if await self._was_put_back(resident):
            return fresh, Published([], [], reset=True)
        missed = await self.entries(fresh, after=resident.committed)
        notes = await self._log.checkpoints(resident.id, after=resident.committed)
        return fresh, Published(missed, [note for note in notes if note[0] <= fresh.committed])

    async def _was_put_back(self, resident: Resident) -> bool:
        """Whether the log has lost what was on disk, and been told to who listens, already."""
        if not resident.committed:
            return False
        rows = await self._log.read(resident.id, after=resident.committed - 1, limit=1)
        return not rows or leaf_of(resident.id, rows[0]) != resident.leaf

    async def _tail(self, table: bytes, *, after: int) -> Tail:
        rows = [row async for part in self._log.stream(table, after=after) for row in part]
        notes = await self._log.checkpoints(table, after=after, limit=len(rows) + 1)
        return Tail(rows, [note for note in notes if rows and note[0] <= rows[-1].version])

    def _follow(
        self, resident: Resident, footing: Footing, tail: Tail
    ) -> tuple[Resident, Published]:
        fresh = Resident(resident.id, resident.table_id)
        fresh.table, fresh.tree = footing.table(), footing.tree.copy()
        fresh.secret, fresh.c1_root = footing.secret, footing.c1_root
        fresh.leaf = resident.leaf
        # What was judged in memory and never written is forgotten; what was written is true.
        fresh.forgetful = resident.forgetful
        for name, known in resident.recent.items():
            if known.committed:
                fresh.remember(name, known)
        size, root = self._signed(resident, tail.notes[-1][1]) if tail.notes else (0, b"")
        entries: list[Entry] = []
        lost = resident.committed > 0
        for row in tail.rows:
            if row.version == resident.committed:
                lost = leaf_of(resident.id, row) != resident.leaf
            if row.version <= footing.version:
                continue
            self._remember(fresh, row)
            if row.version == size and fresh.tree.root() != root:
                raise altered(fresh.table_id)
            if row.type == "RoundOpened":
                fresh.secret = self._unwrap(fresh.id, row)
            event = event_of(row, fresh.secret)
            evolve(fresh.table, event, row.at)
            if row.version > resident.committed:
                entries.append(entry(row.version, fresh.leaf, event, fresh.secret))
            if row.type in ("RoundClosed", "TableClosed"):
                fresh.secret = NoSecret()
        if lost:
            raise altered(fresh.table_id)
        fresh.committed = fresh.table.version
        fresh.set_foot()
        notes = [note for note in tail.notes if note[0] > resident.committed]
        return fresh, Published(entries, notes)

    async def entries(
        self, resident: Resident, *, after: int, limit: int | None = None
    ) -> list[Entry]:
        """At most `limit` events after version `after`, from memory if it has them all."""
        upto = resident.committed if limit is None else min(resident.committed, after + limit)
        if upto <= after:
            return []
        ring = resident.ring
        if ring and ring[0].version <= after + 1:
            return [entry for entry in ring if after < entry.version <= upto]
        found: list[Entry] = []
        async for rows in self._log.stream(resident.id, after=after, upto=upto, chunk=CHUNK):
            for row in rows:
                leaf = leaf_of(resident.id, row)
                if row.hidden is None or row.type not in GLIMPSED:
                    found.append(Entry(row.version, leaf))
                    continue
                secret = await self._secret(resident, row.members()["round"])
                found.append(entry(row.version, leaf, event_of(row, secret), secret))
        if len(found) < upto - after:
            await require_here(self._log, resident.id)
        return found

    async def events(self, resident: Resident, *, after: int, count: int) -> list[Event]:
        """`count` events after version `after`, with what they hide."""
        events = []
        for row in await self._log.read(resident.id, after=after, limit=count):
            secret: RoundSecret | NoSecret = NoSecret()
            if row.hidden is not None:
                secret = await self._secret(resident, row.members()["round"])
            events.append(event_of(row, secret))
        if len(events) < count:
            await require_here(self._log, resident.id)
        return events

    async def remembered(self, resident: Resident, name: str) -> Remembered | None:
        """What the log knows of a command, however long ago it was."""
        row = await self._log.find_command(resident.id, name)
        if row is None or row.digest is None:
            return None
        return Remembered.read(row.version, row.digest)

    async def seal_after(self, resident: Resident, version: int) -> int | None:
        """The version of the first DeckSealed after `version`; None if there is none yet."""
        async for rows in self._log.stream(resident.id, after=version, chunk=CHUNK):
            for row in rows:
                if row.type == "DeckSealed":
                    return row.version
        return None

    async def drawn_at_seal(self, resident: Resident, draw: Draw, *, sealed: int) -> Done | None:
        """The cards that `draw` got in the append that sealed a shuffle; None if it got none."""
        drawn = await self._log.read(resident.id, after=sealed, limit=draw.count)
        if len(drawn) < draw.count or any(row.type != "CardDrawn" or row.command for row in drawn):
            return None
        events = await self.events(resident, after=drawn[0].version - 1, count=draw.count)
        if any(event.seat != draw.actor.seat for event in events if isinstance(event, CardDrawn)):
            return None
        return Done(drawn[-1].version, events)

    async def consistency(self, resident: Resident, *, old: int, new: int) -> list[str]:
        """RFC 6962's proof that the first `old` leaves of the `new` ones never changed; hex."""
        leaves: list[bytes] = []
        async for rows in self._log.stream(resident.id, upto=new, chunk=CHUNK):
            leaves.extend(leaf_hash(leaf_of(resident.id, row).encode()) for row in rows)
        return [node.hex() for node in consistency_proof(leaves, old)]

    async def bundle(self, resident: Resident, *, upto: int) -> AsyncIterator[str]:
        """The bundle's lines up to version `upto`, at which there is a checkpoint."""
        table = resident.table
        yield bundle.header(origin=table.origin, key=table.key)
        size = 0
        async for rows in self._log.stream(resident.id, upto=upto, chunk=CHUNK):
            for row in rows:
                yield leaf_of(resident.id, row)
            size = rows[-1].version
        if size < upto:
            await require_here(self._log, resident.id)
            raise altered(resident.table_id)
        after = 0
        while notes := await self._log.checkpoints(resident.id, after=after, limit=CHUNK):
            for size, note in notes:
                if size <= upto:
                    yield bundle.checkpoint(note)
            after = notes[-1][0]

    async def cosigned(self, resident: Resident, line: str) -> tuple[int, str]:
        """(size, note) of that of the latest checkpoints which `line` signs, with the line.

        Raises BadRequest unless it is the line of a player who sat at the table by then.
        """
        name = line.split(" ")[1:2]
        seated = [seat for seat in resident.table.seats.values() if seat.key is not None]
        found = [seat for seat in seated if [player(seat.key or b"").name] == name]
        if not found:
            raise BadRequest("A cosignature is made with the key that a player sat down with.")
        key, since = found[0].key or b"", min(seat.since for seat in found)
        size: int | None = None
        for _ in range(COSIGNABLE):
            newest = await self._log.newest_checkpoint(resident.id, upto=size)
            if newest is None or newest[0] < since:
                break
            with suppress(NoteFault):
                return newest[0], attach(newest[1], line, key=key)
            size = newest[0] - 1
        await require_here(self._log, resident.id)
        raise BadRequest("That line cosigns none of this table's latest checkpoints.")

    def _signed(
        self, resident: Resident, note: str, *, key: bytes | None = None
    ) -> tuple[int, bytes]:
        """Size and root of a note, which must be signed under the table's key."""
        signed = self._key.of(resident.table.key if key is None else key).public_key
        try:
            return open_note(note, key=signed, table=resident.table_id)
        except NoteFault:
            raise altered(resident.table_id) from None

    async def _secret(self, resident: Resident, number: int) -> RoundSecret:
        current = resident.secret
        if isinstance(current, RoundSecret) and current.round == number:
            return current
        name = (resident.id, number)
        if name in self._secrets:
            self._secrets.move_to_end(name)
            return self._secrets[name]
        opening = resident.table.openings[number - 1]
        (row,) = await self._log.read(resident.id, after=opening - 1, limit=1)
        secret = self._secrets[name] = self._unwrap(resident.id, row)
        if len(self._secrets) > SECRETS:
            self._secrets.popitem(last=False)
        return secret

    def _unwrap(self, table: bytes, row: Row) -> RoundSecret:
        number = row.members()["round"]
        wrapped = row.hidden or b""
        secret = self._key.unwrap(wrapped, table=table, round=number)
        return RoundSecret(table=table, round=number, secret=secret, wrapped=wrapped)

    @staticmethod
    def _remember(resident: Resident, row: Row) -> None:
        resident.leaf = leaf_of(resident.id, row)
        resident.tree.append(leaf_hash(resident.leaf.encode()))
        if row.type == "EntropyClosed":
            resident.c1_root = resident.tree.root()
        if row.command is not None and row.digest is not None:
            resident.remember(row.command, Remembered.read(row.version, row.digest))


def leaf_of(table: bytes, row: Row) -> str:
    """The leaf's text, from the row as it is kept."""
    return codec.leaf(
        at=row.at,
        commit=None if row.commitment is None else row.commitment.hex(),
        public=row.public,
        table=table.hex(),
        type=row.type,
        v=row.schema,
        version=row.version,
    )


def event_of(row: Row, secret: RoundSecret | NoSecret) -> Event:
    """The event of a row; with NoSecret as somebody reads it who may not know what it hides."""
    hidden: dict[str, Any] = {}
    if isinstance(secret, RoundSecret) and row.hidden is not None and row.type != "RoundOpened":
        hidden = json.loads(secret.unseal(row.version, row.hidden))
    return codec.decode(row.type, row.schema, row.members(), hidden)


def _key_in(row: Row) -> bytes:
    """The key in TableOpened."""
    try:
        return bytes.fromhex(row.members()["key"])
    except (KeyError, TypeError, ValueError):
        return b""


def _fold(resident: Resident, rows: Sequence[Row]) -> None:
    for row in rows:
        evolve(resident.table, event_of(row, resident.secret), row.at)


def _closes(rows: Sequence[Row]) -> bool:
    return any(row.type == "RoundClosed" for row in rows)


def altered(table_id: str) -> DatabaseDamaged:
    """What is raised where the rows of a table, by its id in hex, are not what was signed."""
    return DatabaseDamaged(
        f"The events of table {table_id} are not those that the house signed: the "
        "database was altered or is incomplete. Restore it from a backup."
    )
