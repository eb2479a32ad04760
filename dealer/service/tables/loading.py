"""Loader: reads a table from the log, either whole or from a savepoint on."""

from __future__ import annotations

import asyncio
from copy import copy

from dealer.errors import DatabaseDamaged, DealerError
from dealer.eventlog import EventRecord, ReadOnlyLog
from dealer.eventlog.health import DamagedTables
from dealer.eventlog.read_only_log import LogEnd
from dealer.eventlog.rows import leaf_of
from dealer.game.decide import NoRoundSecrets
from dealer.game.events import CHECKPOINT_TYPES
from dealer.game.state import evolve
from dealer.service.tables.archive import require_here
from dealer.service.tables.event_reader import EventReader
from dealer.service.tables.execution import StoredCommand
from dealer.service.tables.insecure_decks import InsecureDecks
from dealer.service.tables.live_table import CommitNotice, LiveTable
from dealer.service.tables.round_secret import event_of, private_part, tampered, unsigned
from dealer.service.tables.round_secret_cache import RoundSecretCache
from dealer.service.tables.savepoint import STORE_EVERY, LogTail, Savepoint
from dealer.service.tables.stored_savepoints import StoredSavepoints

SLICE = 256
"""Events that are evolved in one step of the loop, some 3 ms: others play while a table loads."""


class Loader:
    """Builds live tables from `log`; `secrets` decrypts the secrets of open rounds."""

    def __init__(
        self,
        log: ReadOnlyLog,
        secrets: RoundSecretCache,
        reader: EventReader,
        stored: StoredSavepoints,
        insecure_decks: InsecureDecks,
        damaged: DamagedTables,
    ) -> None:
        self._damaged = damaged
        self._log = log
        self._secrets = secrets
        self._reader = reader
        self._stored = stored
        self._insecure_decks = insecure_decks

    def reading(self, log: ReadOnlyLog) -> Loader:
        """This loader over another view of the same log."""
        loader = copy(self)
        loader._log = log
        return loader

    async def load(self, table: bytes) -> LiveTable:
        """The table as the log has it, checked against its checkpoints; version 0 if none.

        A long table is loaded from its stored savepoint, and whole if that does not agree with the
        log. Raises TableArchived if it was archived, DatabaseDamaged if the rows are not those that
        the house signed, if a checkpoint is missing, or if the secret of the open round cannot be
        decrypted, and UnknownTable if this server may not serve it.
        """
        with self._damaged.noticed(table.hex()):
            try:
                live_table = await self._load(table)
            except DatabaseDamaged:
                await require_here(self._log, table)  # its rows may be leaving the log
                raise
        self._damaged.intact(live_table.table_id, version=live_table.committed)
        self._insecure_decks.require_served(live_table.table, live_table.table_id)
        return live_table

    async def _load(self, table: bytes) -> LiveTable:
        self._secrets.forget(table)
        end = await self._end(table)
        if end.signed is not None and end.signed >= STORE_EVERY:
            live_table = await self._load_from_savepoint(table, end)
            if live_table is not None:
                return live_table
        live_table = LiveTable(table, table.hex())
        if end.version:  # else it may be about to begin
            await self._fold(live_table, end)
        return live_table

    async def _end(self, table: bytes) -> LogEnd:
        """Where the table's events end.

        Raises TableArchived, or DatabaseDamaged if its rows end before or past its version.
        """
        end = await self._log.end(table)
        if end.newest != end.version:
            await require_here(self._log, table)
            raise tampered(table.hex())
        return end

    async def _load_from_savepoint(self, table: bytes, end: LogEnd) -> LiveTable | None:
        """None if the table has no savepoint, or if the log does not follow from it."""
        live_table = await self._stored.find(table, upto=end.signed or 0)
        if live_table is None:
            return None
        try:
            await self._fold(live_table, end)
        except Exception as error:  # also of events that do not fit the state
            self._stored.refuse(table, error)
            return None
        self._stored.used += 1
        return live_table

    async def _fold(self, live_table: LiveTable, end: LogEnd) -> None:
        """Evolve the table with the rest of the log, and check the rows against its checkpoint."""
        table, start = live_table.id, live_table.table.version
        upto, _, opened, signed_upto, note = end  # only an open round needs its secret
        # Read after the end: a checkpoint is written in the transaction of the events it is due at.
        signed = await self._log.signed_sizes(table, after=start)
        fault: Exception | None = None
        size, root = signed_upto or 0, b""
        if note is not None and start:
            _, root = self._secrets.signed(live_table, note)
            self._check_start(live_table, opened, root if start == size else None)
        async for rows in self._log.stream(table, after=start, upto=upto, chunk=SLICE):
            for row in rows:
                if row.version != live_table.tree.size + 1:
                    break
                if row.version == 1 and note is not None:
                    _, root = self._secrets.signed(live_table, note, key=_key_in(row))
                _add_row(live_table, row)
                if row.version == size and live_table.tree.root() != root:
                    raise tampered(live_table.table_id)
                if row.type in CHECKPOINT_TYPES and row.version not in signed:
                    raise unsigned(live_table.table_id, row)
                try:
                    if fault is None and row.version == opened:
                        live_table.secret = self._secrets.unwrap(table, row)
                    if fault is None:
                        evolve(live_table.table, event_of(row, live_table.secret), row.at)
                except Exception as error:
                    fault = error  # raised at the end: "altered rows" is the better explanation
                if row.version == size and fault is None:
                    live_table.at_checkpoint()
        if live_table.tree.size != upto or size > upto:
            await require_here(self._log, table)  # it may have been archived meanwhile
            raise tampered(live_table.table_id)
        if isinstance(fault, DealerError):
            raise fault
        if fault is not None:
            raise tampered(live_table.table_id) from fault
        live_table.loaded()

    def _check_start(self, live_table: LiveTable, opened: int, root: bytes | None) -> None:
        """Check a savepoint against the newest checkpoint's `root`, if that has its version.

        Raises DatabaseDamaged if they differ, or if another round than the log's is open in it.
        """
        table = live_table.table
        if root is not None and live_table.tree.root() != root:
            raise tampered(live_table.table_id)
        if not 0 < opened <= table.version:
            live_table.secret = NoRoundSecrets()  # that round is closed by now
        elif table.round is None or table.round_versions[-1] != opened:
            raise tampered(live_table.table_id)

    async def advance(self, live_table: LiveTable) -> tuple[LiveTable, CommitNotice]:
        """The table as the log has it now, and the events after `committed`.

        It ends where the log ended at a moment after the call. Reads the tail after the savepoint.
        Without a savepoint, or if the log does not follow from it, the whole table is read.
        Raises what `load` raises.
        """
        savepoint = live_table.pop_savepoint()
        if savepoint is not None:
            # With the last committed event: it shows whether the log was rewound.
            after = max(0, min(savepoint.version, live_table.committed - 1))
            with self._damaged.noticed(live_table.table_id):
                tail = await self._tail(live_table.id, after=after)
            try:
                tail.check(after)
                followed = self._follow(live_table, savepoint, tail)
                self._insecure_decks.require_served(followed[0].table, live_table.table_id)
                return followed
            except DealerError:
                pass  # the log does not follow from the savepoint; a full load says what it has
            except Exception as error:
                asyncio.get_running_loop().call_exception_handler(
                    {"message": "reload from a savepoint failed", "exception": error}
                )
        fresh = await self.load(live_table.id)
        if await self._was_rewound(live_table):
            return fresh, CommitNotice([], [], reset=True)
        missed = await self._reader.entries(fresh, after=live_table.committed)
        notes = await self._log.checkpoints(live_table.id, after=live_table.committed)
        return fresh, CommitNotice(missed, [note for note in notes if note[0] <= fresh.committed])

    async def _was_rewound(self, live_table: LiveTable) -> bool:
        """Whether the log lacks events that were on disk and published."""
        if not live_table.committed:
            return False
        rows = await self._log.read(live_table.id, after=live_table.committed - 1, limit=1)
        return not rows or leaf_of(live_table.id, rows[0]) != live_table.leaf

    async def _tail(self, table: bytes, *, after: int) -> LogTail:
        end = await self._end(table)
        parts = self._log.stream(table, after=after, upto=end.version)
        rows = [row async for part in parts for row in part]
        notes = await self._log.checkpoints(table, after=after, limit=len(rows) + 1)
        return LogTail(rows, [note for note in notes if note[0] <= end.version], end.version)

    def _follow(
        self, live_table: LiveTable, savepoint: Savepoint, tail: LogTail
    ) -> tuple[LiveTable, CommitNotice]:
        fresh = LiveTable(live_table.id, live_table.table_id, leaf=live_table.leaf)
        fresh.table, fresh.tree = savepoint.table(), savepoint.tree.copy()
        fresh.secret, fresh.c1_root = savepoint.secret, savepoint.c1_root
        fresh.due, fresh.stored_upto = live_table.due, live_table.stored_upto
        # Commands that were decided in memory and never written are dropped.
        fresh.stored_commands = live_table.stored_commands.committed()
        size, root = self._secrets.signed(live_table, tail.notes[-1][1]) if tail.notes else (0, b"")
        signed = {size for size, _ in tail.notes}
        records: list[EventRecord] = []
        # First of all: rows that replaced others need not evolve from this savepoint.
        if live_table.committed and not tail.has(live_table.id, live_table.committed, fresh.leaf):
            raise tampered(fresh.table_id)
        for row in tail.rows:
            if row.version <= savepoint.version:
                continue
            _add_row(fresh, row)
            if row.version == size and fresh.tree.root() != root:
                raise tampered(fresh.table_id)
            if row.type in CHECKPOINT_TYPES and row.version not in signed:
                raise unsigned(fresh.table_id, row)
            if row.type == "RoundOpened":
                fresh.secret = self._secrets.unwrap(fresh.id, row)
            event = event_of(row, fresh.secret)
            evolve(fresh.table, event, row.at)
            if row.version > live_table.committed:
                row.leaf = fresh.leaf
                row.seat, row.private = row.beside()
                if row.seat is None:
                    row.seat, row.private = private_part(event, fresh.secret)
                records.append(row)
            if row.type in ("RoundClosed", "TableClosed"):
                fresh.secret = NoRoundSecrets()
        fresh.loaded()
        notes = [note for note in tail.notes if note[0] > live_table.committed]
        return fresh, CommitNotice(records, notes)


def _add_row(live_table: LiveTable, row: EventRecord) -> None:
    if row.at < live_table.table.at:
        raise tampered(live_table.table_id)
    live_table.add_leaf(leaf_of(live_table.id, row))
    if row.type == "EntropyClosed":
        live_table.c1_root = live_table.tree.root()
    if row.command is not None and row.digest is not None:
        stored = StoredCommand.read(row.version, row.digest)
        commands = live_table.stored_commands
        commands.add(row.command, stored.digest, stored.version, stored.count)


def _key_in(row: EventRecord) -> bytes:
    """The house key in a TableOpened; empty if the row is damaged."""
    try:
        return bytes.fromhex(row.members()["key"])
    except (KeyError, TypeError, ValueError):
        return b""
