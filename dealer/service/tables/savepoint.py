"""Savepoint of a live table, and the tail of the log that follows it.

The state in memory may be ahead of the log, and that part is void once another process was quicker.
A savepoint is a copy of the table at a version that is on disk, a few hundred events back at most.
Evolving it with the log's tail gives the current state without reading the whole table. The newest
savepoint of a long table is also stored in the database (`stored_savepoints.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from dealer.errors import DatabaseDamaged
from dealer.eventlog import EventRecord
from dealer.eventlog.rows import leaf_of
from dealer.eventlog.savepoints import SavedTable, decode_table
from dealer.game.decide import NoRoundSecrets
from dealer.game.state import Table
from dealer.proof.tree import Tree, leaf_hash
from dealer.service.tables.round_secret import RoundSecret

SAVEPOINT_EVERY = 256
"""Events after which a savepoint is replaced by a newer one."""

STORE_EVERY = 2048
"""Events of a table between two savepoints in the database; a shorter table has none there."""


class Savepoint(NamedTuple):
    """A table at a version that is on disk; `leaf` is the leaf of that version's event.

    `state` is as in `dealer.eventlog.savepoints`.
    """

    version: int
    state: bytes
    tree: Tree
    secret: RoundSecret | NoRoundSecrets
    c1_root: bytes
    leaf: str

    def table(self) -> Table:
        """A new copy of the table."""
        return decode_table(self.state)

    def saved(self) -> SavedTable:
        """What of it is stored in the database."""
        return SavedTable(
            version=self.version,
            leaf=leaf_hash(self.leaf.encode()),
            edge=self.tree.edge,
            c1_root=self.c1_root,
            wrapped=self.secret.wrapped if isinstance(self.secret, RoundSecret) else b"",
            state=self.state,
        )


@dataclass(slots=True)
class SavepointStoring:
    """Which savepoint of a table goes to the database: one that a checkpoint covers.

    `due` is to be written, `stored` the version of the one that is there as far as this process
    knows, `signed` the size of the newest checkpoint that it knows.
    """

    due: Savepoint | None = None
    stored: int = 0
    signed: int = 0

    def is_due(self, version: int) -> bool:
        """Whether a savepoint at `version` is worth storing."""
        return version - self.stored >= STORE_EVERY

    def checkpoint(self, size: int, savepoint: Savepoint | None) -> None:
        """A checkpoint of this size is on disk; `savepoint` is from before the events it covers."""
        self.signed = size
        if savepoint is not None and savepoint.version <= size and self.is_due(savepoint.version):
            self.due = savepoint

    def take_due(self) -> Savepoint | None:
        """The savepoint to be written now; it is not due any longer."""
        savepoint, self.due = self.due, None
        return savepoint


class LogTail(NamedTuple):
    """The log after a savepoint: rows in order of versions, and their checkpoints (size, note).

    `end` is the table's version.
    """

    rows: list[EventRecord]
    notes: list[tuple[int, str]]
    end: int

    def check(self, after: int) -> None:
        """Raise DatabaseDamaged unless the rows are all those after version `after`."""
        found = {row.version for row in self.rows}
        for version in range(after + 1, self.end + 1):
            if version not in found:
                raise DatabaseDamaged(
                    f"Version {version} is missing in the log; restore it from a backup."
                )

    def has(self, table: bytes, version: int, leaf: str) -> bool:
        """Whether the row of this version has this leaf."""
        return any(row.version == version and leaf_of(table, row) == leaf for row in self.rows)
