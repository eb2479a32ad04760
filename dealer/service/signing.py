"""What the house signs of a table as it stands, snapshots and checkpoints; who cosigns these."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

from dealer.errors import BadRequest, NoteFault, RaceLost
from dealer.eventlog import Conflict, Log
from dealer.game.view import SPECTATOR, Viewer, sits
from dealer.game.view import snapshot as view_of
from dealer.proof.checkpoint import attach, player
from dealer.service.archived import require_here
from dealer.service.desk import Desk
from dealer.service.judge import Judge
from dealer.service.resident import Resident
from dealer.service.snapshots import Published, Snapshot

COSIGNABLE = 8
"""How many of a table's latest checkpoints still take cosignatures."""


class Signing:
    """Signs for one house what is on disk; `publish` is told of cosignatures."""

    def __init__(
        self, log: Log, desk: Desk, judge: Judge, publish: Callable[[Resident, Published], None]
    ) -> None:
        self._log = log
        self._desk = desk
        self._judge = judge
        self._publish = publish

    async def snapshot(self, resident: Resident, viewer: Viewer) -> Snapshot:
        """The table as `viewer` may know it, at a version that is on disk.

        Who has no longer the seat that they look from sees what a spectator sees.
        """
        while True:
            version = resident.table.version
            if not sits(resident.table, viewer):
                viewer = SPECTATOR
            state = view_of(resident.table, viewer)
            for card in state.get("round", {}).get("cards", ()):
                card.append(resident.secret.slot_salt(card[0]).hex())
            edge, root = [node.hex() for node in resident.tree.edge], resident.tree.root()
            if await self._desk.on_disk(resident, version):
                note = self._judge.sign(resident, version, root)
                return Snapshot(version, state, edge, note)

    async def checkpoint(
        self, resident: Resident, *, writing: Callable[[], None] | None = None
    ) -> tuple[int, str]:
        """(size, note) of a kept checkpoint over all that is on disk; a new one if need be.

        `writing` is called before a new one is written, and may refuse that by raising.
        """
        while True:
            version, root = resident.table.version, resident.tree.root()
            if not await self._desk.on_disk(resident, version):
                continue
            newest = await self._log.newest_checkpoint(resident.id)
            if newest is None or newest[0] < version:
                break
            if newest[0] == version:
                return newest
            await self._desk.catch_up(resident)
        if writing is not None:
            writing()
        note = self._judge.sign(resident, version, root)
        await self._put_note(resident, version, note)
        return version, note

    async def cosign(self, resident: Resident, line: str) -> tuple[int, str]:
        """Attach a player's signature line to the checkpoint that it signs; (size, whole note).

        Raises BadRequest if it is no seated player's signature of one of the latest checkpoints.
        """
        size, note = await self.cosigned(resident, line)
        await self._put_note(resident, size, note)
        self._publish(resident, Published([], [(size, note)]))
        return size, note

    async def _put_note(self, resident: Resident, size: int, note: str) -> None:
        """Keep a checkpoint; TableArchived or RaceLost if what it covers has just left the log."""
        if isinstance(await self._log.put_note(resident.id, size, note), Conflict):
            await require_here(self._log, resident.id)
            await self._desk.catch_up(resident)
            raise RaceLost("The log was put back to an older state; look at the table again.")

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
