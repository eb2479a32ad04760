"""Stored savepoints: the newest savepoint of each long table, in the database.

A savepoint becomes due when a checkpoint is committed that covers it, `STORE_EVERY` events after
the one before, or when a table is loaded whole. It is sealed and written on the writer thread while
no append is queued. One that no checkpoint covers is never written: it could not be checked against
a signature when the table is loaded.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from functools import partial

from dealer.errors import DatabaseDamaged, DealerError
from dealer.eventlog import Log, savepoints
from dealer.eventlog.keys import NONCE_BYTES, HouseKeys
from dealer.eventlog.rows import leaf_of
from dealer.eventlog.savepoints import SavedTable
from dealer.proof.tree import Tree, leaf_hash
from dealer.service.tables.live_table import LiveTable
from dealer.service.tables.round_secret import tampered
from dealer.service.tables.round_secret_cache import RoundSecretCache

BYTES = 2**20
"""Bytes of a state above which it is not stored: writing it would delay appends."""

log_ = logging.getLogger(__name__)


class StoredSavepoints:
    """Reads and writes the savepoints of the tables in `log`.

    `written` counts savepoints, `used` loads from one, `refused` savepoints that did not agree with
    the log or were not the house's.
    """

    def __init__(self, log: Log, key: HouseKeys, secrets: RoundSecretCache) -> None:
        self._log = log
        self._key = key
        self._secrets = secrets
        self.written = self.used = self.refused = 0

    async def find(self, table: bytes, *, upto: int) -> LiveTable | None:
        """The table at its stored savepoint, to be evolved with the rest of the log.

        None if there is no savepoint of a version up to `upto`, or if it is not the house's own, or
        if the log has newer events than its table. Raises DatabaseError, or Overloaded.
        """
        try:
            saved = await savepoints.read(self._log, self._key, table)
            if saved is None or saved.version > upto:
                return None
            rows = await self._log.read(table, after=saved.version - 1, limit=1)
            leaf = leaf_of(table, rows[0]) if rows else ""
            if leaf_hash(leaf.encode()) != saved.leaf:
                raise tampered(table.hex())
            return self._live_table(table, saved, leaf)
        except Exception as error:  # of whatever a damaged row leads to
            self.refuse(table, error)
            return None

    def _live_table(self, table: bytes, saved: SavedTable, leaf: str) -> LiveTable:
        live_table = LiveTable(table, table.hex(), leaf=leaf)
        live_table.table = saved.table()
        live_table.tree = Tree.from_edge(saved.version, saved.edge)
        live_table.c1_root = saved.c1_root
        round_ = live_table.table.round
        if round_ is not None:
            live_table.secret = self._secrets.unwrap_stored(table, round_.number, saved.wrapped)
        live_table.stored_upto = saved.version
        # The commands before the savepoint are found in the log.
        live_table.stored_commands.evicted = True
        return live_table

    def refuse(self, table: bytes, error: Exception) -> None:
        """Report a savepoint that is not used; the table is read from its first event.

        Raises the error again if it says nothing of the savepoint.
        """
        if isinstance(error, DealerError) and not isinstance(error, DatabaseDamaged):
            raise error
        self.refused += 1
        fields = {"table": table.hex(), "says": str(error) or type(error).__name__}
        log_.warning("savepoint refused", extra={"fields": fields})

    def write_due(self, live_table: LiveTable) -> None:
        """Write the savepoint that has become due, if one has, when no append is queued."""
        savepoint, live_table.due = live_table.due, None
        if savepoint is None or len(savepoint.state) > BYTES:
            return
        live_table.stored_upto = savepoint.version
        try:
            keys = self._key.of(live_table.table.key)
            nonce = secrets.token_bytes(NONCE_BYTES)
            writing = self._log.run_when_idle(
                partial(
                    savepoints.put,
                    keys=keys,
                    table=live_table.id,
                    saved=savepoint.saved(),
                    nonce=nonce,
                )
            )
        except DealerError:
            return  # the log is closing, or has failed and says so itself
        writing.add_done_callback(self._on_written)

    def _on_written(self, writing: asyncio.Future[None]) -> None:
        if writing.cancelled():
            return
        error = writing.exception()
        if error is None:
            self.written += 1
        else:
            log_.warning("savepoint not written", extra={"fields": {"says": str(error)}})
