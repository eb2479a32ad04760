"""Checkpoints: signed heads and snapshots of tables, and the players' cosignatures."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

from dealer.errors import BadRequest, ConcurrentUpdate, NoteFault, Unavailable
from dealer.eventlog import Conflict, Log
from dealer.eventlog.rows import merge_signatures
from dealer.game.view import SPECTATOR, Viewer
from dealer.game.view import snapshot as view_of
from dealer.proof.checkpoint import attach_once, player, read_checkpoint
from dealer.service.commands.background_tasks import BackgroundTasks
from dealer.service.commands.executor import CommandExecutor
from dealer.service.commands.table_lifecycle import TableLifecycle
from dealer.service.tables.archive import require_here
from dealer.service.tables.execution import failed
from dealer.service.tables.live_table import CommitNotice, LiveTable, Notices, Snapshot
from dealer.service.tables.round_secret import tampered

COSIGNABLE = 8
"""How many of a table's newest checkpoints accept cosignatures."""

GATHER_SECONDS = 0.1
"""Seconds for which cosignatures of one checkpoint are collected: players send them together."""


@dataclass(slots=True)
class _Gathering:
    """Cosignatures of one checkpoint that will be written; `written` gives the whole note."""

    note: str
    written: asyncio.Future[str]


class Checkpoints:
    """Signs what is on disk; `notices` gets the cosigned checkpoints."""

    def __init__(
        self,
        log: Log,
        lifecycle: TableLifecycle,
        executor: CommandExecutor,
        tasks: BackgroundTasks,
        notices: Notices,
    ) -> None:
        self._log = log
        self._lifecycle = lifecycle
        self._tasks = tasks
        self._executor = executor
        self._notices = notices
        self._gatherings: dict[tuple[bytes, int], _Gathering] = {}

    async def snapshot(self, live_table: LiveTable, viewer: Viewer) -> Snapshot:
        """The table as `viewer` may know it, at a version that is on disk.

        A viewer who no longer holds the seat gets the spectator's view.
        """
        while True:
            version = live_table.table.version
            seated = viewer is not None and live_table.table.still_seated(viewer)
            state = view_of(live_table.table, viewer if seated else SPECTATOR)
            for card in state.get("round", {}).get("cards", ()):
                card.append(live_table.secret.slot_salt(card[0]).hex())
            edge, root = [node.hex() for node in live_table.tree.edge], live_table.tree.root()
            if await live_table.wait_committed(version):
                return Snapshot(version, state, edge, self._note(live_table, version, root))

    async def head(self, live_table: LiveTable) -> tuple[int, str]:
        """(size, note) of a checkpoint over everything on disk, for one client: it is not stored.

        It has the cosignatures that this process has pushed.
        """
        while True:
            version, root = live_table.table.version, live_table.tree.root()
            if await live_table.wait_committed(version):
                return version, self._note(live_table, version, root)

    def _note(self, live_table: LiveTable, size: int, root: bytes) -> str:
        """The signed note of a checkpoint; all who come back to a table at once share it."""
        pushed = live_table.pushed.get(size)
        if pushed is not None and read_checkpoint(pushed).root == root:
            return pushed
        of_size, of_root, note = live_table.signed
        if (of_size, of_root) != (size, root):
            note = self._executor.sign(live_table, size, root)
            live_table.signed = size, root, note
        return note

    async def checkpoint(
        self, live_table: LiveTable, *, writing: Callable[[], None] | None = None
    ) -> tuple[int, str]:
        """(size, note) of a stored checkpoint over everything on disk; a new one if there is none.

        `writing` is called before a new one is stored, and may refuse that by raising.
        """
        while True:
            version, root = live_table.table.version, live_table.tree.root()
            if not await live_table.wait_committed(version):
                continue
            newest = await self._log.newest_checkpoint(live_table.id)
            if newest is None or newest[0] < version:
                break
            if newest[0] == version:
                return newest
            await self._lifecycle.catch_up(live_table)
            if newest[0] > live_table.committed:
                raise tampered(live_table.table_id)  # signed events are missing
        if writing is not None:
            writing()
        note = self._executor.sign(live_table, version, root)
        await self._put_note(live_table, version, note)
        return version, note

    async def cosign(self, live_table: LiveTable, line: str) -> tuple[int, str]:
        """Attach a player's signature line to the checkpoint that it signs; (size, whole note).

        Lines that arrive within GATHER_SECONDS are stored, and pushed to subscribers, in one note.
        Raises BadRequest if it is no seated player's signature of one of the newest checkpoints.
        """
        size, note = await self.find_cosignable(live_table, line)
        gathering = self._gatherings.get((live_table.id, size))
        if gathering is None:
            written: asyncio.Future[str] = asyncio.get_running_loop().create_future()
            gathering = self._gatherings[live_table.id, size] = _Gathering(note, written)
            self._tasks.start(self._attach(live_table, size, gathering))
        else:
            gathering.note = merge_signatures(gathering.note, note)
        # The cancellation of one caller does not affect the others.
        return size, await asyncio.shield(gathering.written)

    async def publish_cosigned(self, live_table: LiveTable, *, count: int) -> None:
        """Push cosigned checkpoints that other processes stored; `count` is the stream's counter.

        Raises DatabaseError or TableArchived.
        """
        notes = await self._log.newest_checkpoints(
            live_table.id, upto=live_table.committed, limit=COSIGNABLE
        )
        live_table.cosigned = count
        fresh = [
            (size, note)
            for size, note in reversed(notes)
            if len(read_checkpoint(note).signatures) > 1 and live_table.pushed.get(size) != note
        ]
        if fresh:
            self._push(live_table, fresh)

    def _push(self, live_table: LiveTable, notes: list[tuple[int, str]]) -> None:
        live_table.pushed.update(notes)
        for size in sorted(live_table.pushed)[:-COSIGNABLE]:
            del live_table.pushed[size]
        self._notices.send(live_table, CommitNotice([], notes))

    async def _attach(self, live_table: LiveTable, size: int, gathering: _Gathering) -> None:
        """Store the collected cosignatures and push the note."""
        try:
            await asyncio.sleep(GATHER_SECONDS)
            # Lines that arrive from now on go into the next note.
            del self._gatherings[live_table.id, size]
            await self._put_note(live_table, size, gathering.note)
            self._push(live_table, [(size, gathering.note)])
        except Exception as error:
            gathering.written.set_exception(failed("storing a cosignature failed", error))
            gathering.written.exception()  # retrieved, for every caller may be gone
            return
        except asyncio.CancelledError:
            self._gatherings.pop((live_table.id, size), None)
            gathering.written.set_exception(
                Unavailable("The server is closing; send this again when it is back.")
            )
            gathering.written.exception()
            raise
        gathering.written.set_result(gathering.note)

    async def _put_note(self, live_table: LiveTable, size: int, note: str) -> None:
        """Store a checkpoint; TableArchived or ConcurrentUpdate if its events have left the log."""
        if isinstance(await self._log.put_checkpoint(live_table.id, size, note), Conflict):
            await require_here(self._log, live_table.id)
            await self._lifecycle.catch_up(live_table)
            raise ConcurrentUpdate("The log was rewound to an older state; read the table again.")

    async def find_cosignable(self, live_table: LiveTable, line: str) -> tuple[int, str]:
        """(size, note with the line) of the one of the newest checkpoints that `line` signs.

        Raises BadRequest unless it is the line of a player who sat at the table at that size.
        """
        name = line.split(" ")[1:2]
        seated = [seat for seat in live_table.table.seats.values() if seat.key is not None]
        found = [seat for seat in seated if [player(seat.key or b"").name] == name]
        if not found:
            raise BadRequest("A cosignature is made with the key that a player took the seat with.")
        key, since = found[0].key or b"", min(seat.taken_at for seat in found)
        size: int | None = None
        for _ in range(COSIGNABLE):
            newest = await self._log.newest_checkpoint(live_table.id, upto=size)
            if newest is None or newest[0] < since:
                break
            with suppress(NoteFault):
                return newest[0], attach_once(newest[1], line, key=key)
            size = newest[0] - 1
        await require_here(self._log, live_table.id)
        raise BadRequest("That line cosigns none of this table's newest checkpoints.")
