"""What the service is asked of a table's past: stretches of events, commands, proofs, bundles."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable

from dealer.eventlog import Log
from dealer.game.commands import Draw
from dealer.game.decide import NoSecret
from dealer.game.events import CardDrawn, Event
from dealer.proof import bundle
from dealer.proof.tree import ConsistencyProof, leaf_hash
from dealer.service.archived import require_here
from dealer.service.keyring import Keyring
from dealer.service.leaves import altered, event_of, leaf_of
from dealer.service.record import Entry, entry
from dealer.service.requests import Done, Remembered
from dealer.service.resident import Resident
from dealer.service.round_secret import RoundSecret

CHUNK = 1000

SLICE = 256
"""Events that are read and hashed at once for a proof: a millisecond or two of the loop."""

DOWNLOADED = 128
"""Events that a download reads at once: a slow reader holds on to so many."""

GLIMPSED = ("CardDrawn", "CardMoved", "CardPeeked")
"""Types of events that can show a face to one seat."""


Pause = Callable[[], Awaitable[None]]


async def no_pause() -> None:
    """Let the loop serve others, and go on."""
    await asyncio.sleep(0)


class Past:
    """Reads the events of one house's tables; `keyring` opens what they hide."""

    def __init__(self, log: Log, keyring: Keyring) -> None:
        self._log = log
        self._keyring = keyring

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
                secret = await self._keyring.secret(resident, row.members()["round"])
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
                secret = await self._keyring.secret(resident, row.members()["round"])
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

    async def consistency(
        self, resident: Resident, *, old: int, new: int, pause: Pause
    ) -> list[str]:
        """RFC 6962's proof that the first `old` leaves of the `new` ones never changed; hex.

        Made in slices of a few milliseconds, between which `pause` is awaited.
        """
        proof = ConsistencyProof(old, new)
        async for rows in self._log.stream(resident.id, upto=new, chunk=SLICE):
            proof.extend([leaf_hash(leaf_of(resident.id, row).encode()) for row in rows])
            await pause()
        if proof.missing:
            await require_here(self._log, resident.id)
            raise altered(resident.table_id)
        return [node.hex() for node in proof.nodes()]

    async def bundle(self, resident: Resident, *, upto: int) -> AsyncIterator[str]:
        """The bundle's lines up to version `upto`, at which there is a checkpoint."""
        table = resident.table
        yield bundle.header(origin=table.origin, key=table.key)
        size = 0
        async for rows in self._log.stream(resident.id, upto=upto, chunk=DOWNLOADED):
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
