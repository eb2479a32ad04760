"""Tables come into memory: whole, or from where they stood when another process was quicker."""

from __future__ import annotations

from contextlib import suppress

from dealer.eventlog import Log, Row
from dealer.game.decide import NoSecret
from dealer.game.state import evolve
from dealer.proof.tree import leaf_hash
from dealer.service.archived import require_here
from dealer.service.keyring import Keyring
from dealer.service.leaves import altered, event_of, leaf_of
from dealer.service.past import CHUNK, Past
from dealer.service.record import Entry, entry
from dealer.service.requests import Remembered
from dealer.service.resident import Resident
from dealer.service.snapshots import Published
from dealer.service.tail import Footing, Tail


class Loader:
    """Makes residents of the tables in one house's `log`."""

    def __init__(self, log: Log, keyring: Keyring, past: Past) -> None:
        self._log = log
        self._keyring = keyring
        self._past = past

    async def load(self, table: bytes) -> Resident:
        """The table as the log has it, checked against its newest checkpoint; version 0 if none.

        Raises TableArchived where it was put away, DatabaseDamaged where the rows are not those
        that the house signed, or where the secret of the open round does not open.
        """
        resident = Resident(table, table.hex())
        self._keyring.forget(table)
        newest = await self._log.newest_checkpoint(table)
        opened, upto = await self._log.open_round(table)  # only an open round needs its secret
        fault: Exception | None = None
        size, root = 0 if newest is None else newest[0], b""
        async for rows in self._log.stream(table, upto=upto, chunk=CHUNK):
            for row in rows:
                if row.version == 1 and newest is not None:
                    _, root = self._keyring.signed(resident, newest[1], key=_key_in(row))
                _remember(resident, row)
                if row.version == size and resident.tree.root() != root:
                    raise altered(resident.table_id)
                try:
                    if fault is None and row.version == opened:
                        resident.secret = self._keyring.unwrap(table, row)
                    if fault is None:
                        evolve(resident.table, event_of(row, resident.secret), row.at)
                except Exception as error:
                    fault = error  # said at the end: that the rows were altered explains it better
        if not resident.tree.size:
            await require_here(self._log, table)
        if resident.tree.size < size:
            raise altered(resident.table_id)
        if fault is not None:
            raise fault
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
        missed = await self._past.entries(fresh, after=resident.committed)
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
        fresh.recent = resident.recent.committed()
        size, root = self._keyring.signed(resident, tail.notes[-1][1]) if tail.notes else (0, b"")
        entries: list[Entry] = []
        lost = resident.committed > 0
        for row in tail.rows:
            if row.version == resident.committed:
                lost = leaf_of(resident.id, row) != resident.leaf
            if row.version <= footing.version:
                continue
            _remember(fresh, row)
            if row.version == size and fresh.tree.root() != root:
                raise altered(fresh.table_id)
            if row.type == "RoundOpened":
                fresh.secret = self._keyring.unwrap(fresh.id, row)
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


def _remember(resident: Resident, row: Row) -> None:
    resident.leaf = leaf_of(resident.id, row)
    resident.tree.append(leaf_hash(resident.leaf.encode()))
    if row.type == "EntropyClosed":
        resident.c1_root = resident.tree.root()
    if row.command is not None and row.digest is not None:
        resident.remember(row.command, Remembered.read(row.version, row.digest))


def _key_in(row: Row) -> bytes:
    """The key in TableOpened."""
    try:
        return bytes.fromhex(row.members()["key"])
    except (KeyError, TypeError, ValueError):
        return b""
