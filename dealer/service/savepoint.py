"""Savepoint of a live table, and the tail of the log that follows it.

The state in memory may be ahead of the log, and that part is void once another process was quicker.
A savepoint is a copy of the table at a version that is on disk, a few hundred events back at most.
Evolving it with the log's tail gives the current state without reading the whole table.
"""

from __future__ import annotations

import pickle
from typing import NamedTuple

from dealer.errors import DatabaseDamaged
from dealer.eventlog import Row
from dealer.eventlog.rows import leaf_of
from dealer.game.decide import NoRoundSecrets
from dealer.game.state import Table
from dealer.proof.tree import Tree
from dealer.service.round_secret import RoundSecret

SAVEPOINT_EVERY = 256
"""Events after which a savepoint is replaced by a newer one."""


class Savepoint(NamedTuple):
    """A table at a version that is on disk; `state` is a pickle that only this process reads."""

    version: int
    state: bytes
    tree: Tree
    secret: RoundSecret | NoRoundSecrets
    c1_root: bytes

    @classmethod
    def at(
        cls, table: Table, tree: Tree, secret: RoundSecret | NoRoundSecrets, c1_root: bytes
    ) -> Savepoint:
        return cls(table.version, pickle.dumps(table), tree.copy(), secret, c1_root)

    def table(self) -> Table:
        """A new copy of the table."""
        table: Table = pickle.loads(self.state)
        return table


class LogTail(NamedTuple):
    """The log after a savepoint: rows in order of versions, and their checkpoints (size, note)."""

    rows: list[Row]
    notes: list[tuple[int, str]]

    def check(self, after: int) -> None:
        """Raise DatabaseDamaged unless the rows are those after version `after`, without a gap."""
        for version, row in enumerate(self.rows, after + 1):
            if row.version != version:
                raise DatabaseDamaged(
                    f"Version {version} is missing in the log; restore it from a backup."
                )

    def has(self, table: bytes, version: int, leaf: str) -> bool:
        """Whether the row of this version has this leaf."""
        return any(row.version == version and leaf_of(table, row) == leaf for row in self.rows)
