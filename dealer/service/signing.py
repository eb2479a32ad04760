"""What the house signs of a table as it stands, snapshots and checkpoints; who cosigns these."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from dealer.errors import BadRequest, DealerError, NoteFault, RaceLost, Unavailable
from dealer.eventlog import Conflict, Log
from dealer.eventlog.batch import signed_by_both
from dealer.game.view import SPECTATOR, Viewer, sits
from dealer.game.view import snapshot as view_of
from dealer.proof.checkpoint import attach_once, player, read_checkpoint
from dealer.service.archived import require_here
from dealer.service.desk import Desk
from dealer.service.judge import Judge
from dealer.service.resident import Resident
from dealer.service.snapshots import Published, Snapshot

COSIGNABLE = 8
"""How many of a table's latest checkpoints still take cosignatures."""

GATHER_SECONDS = 0.1
"""How long the cosignatures of one checkpoint are gathered: all players send theirs at once."""


@dataclass(slots=True)
class _Gathering:
    """Cosignatures of one checkpoint that are about to be written; `written` has the whole note."""

    note: str
    written: asyncio.Future[str]


class Signing:
    """Signs for one house what is on disk; `publish` is told of cosignatures."""

    def __init__(
        self, log: Log, desk: Desk, judge: Judge, publish: Callable[[Resident, Published], None]
    ) -> None:
        self._log = log
        self._desk = desk
        self._judge = judge
        self._publish = publish
        self._gatherings: dict[tuple[bytes, int], _Gathering] = {}

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

        Lines that come within a moment are written, and pushed to subscribers, in one note. Raises
        BadRequest if it is no seated player's signature of one of the latest checkpoints.
        """
        size, note = await self.cosigned(resident, line)
        gathering = self._gatherings.get((resident.id, size))
        if gathering is None:
            written: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            gathering = self._gatherings[resident.id, size] = _Gathering(note, written)
            self._desk.keep(self._attach(resident, size, gathering))
        else:
            gathering.note = signed_by_both(gathering.note, note)
        # A caller that goes away leaves the others theirs.
        return size, await asyncio.shield(gathering.written)

    async def publish_cosigned(self, resident: Resident, *, count: int) -> None:
        """Push cosigned checkpoints that other processes wrote; `count` is the stream's.

        Raises DatabaseError or TableArchived.
        """
        notes = await self._log.newest_checkpoints(
            resident.id, upto=resident.committed, limit=COSIGNABLE
        )
        resident.cosigned = count
        fresh = [
            (size, note)
            for size, note in reversed(notes)
            if len(read_checkpoint(note).signatures) > 1 and resident.pushed.get(size) != note
        ]
        if fresh:
            self._push(resident, fresh)

    def _push(self, resident: Resident, notes: list[tuple[int, str]]) -> None:
        resident.pushed.update(notes)
        for size in sorted(resident.pushed)[:-COSIGNABLE]:
            del resident.pushed[size]
        self._publish(resident, Published([], notes))

    async def _attach(self, resident: Resident, size: int, gathering: _Gathering) -> None:
        """Write what has gathered, and push it."""
        try:
            await asyncio.sleep(GATHER_SECONDS)
            del self._gatherings[resident.id, size]  # what comes from now on is written after this
            await self._put_note(resident, size, gathering.note)
        except DealerError as error:
            gathering.written.set_exception(error)
            gathering.written.exception()  # also where no caller has waited for it
            return
        except asyncio.CancelledError:
            self._gatherings.pop((resident.id, size), None)
            gathering.written.set_exception(
                Unavailable("The server is closing; send this again when it has opened.")
            )
            gathering.written.exception()
            raise
        self._push(resident, [(size, gathering.note)])
        gathering.written.set_result(gathering.note)

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
                return newest[0], attach_once(newest[1], line, key=key)
            size = newest[0] - 1
        await require_here(self._log, resident.id)
        raise BadRequest("That line cosigns none of this table's latest checkpoints.")
