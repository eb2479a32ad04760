"""Savepoint of a live table, and the tail of the log that follows it.

The state in memory may be ahead of the log, and that part is void once another process was quicker.
A savepoint is a copy of the table at a version that is on disk, a few hundred events back at most.
Evolving it with the log's tail gives the current state without reading the whole table. The newest
savepoint of a long table is also stored in the database (`stored_savepoints.py`).
"""

from __future__ import annotations

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
