"""What a table is taken up from after another process moved it on: a footing, and the log's tail.

What the table in memory looks like may be ahead of the log, and all of that is void once another
was quicker. So a footing is kept: the table as it stood at a version that is on disk, a few hundred
events back at most. From there the tail of the log leads to how the table stands now.
"""

from __future__ import annotations

import pickle
from typing import NamedTuple

from dealer.errors import DatabaseDamaged
from dealer.eventlog import Row
from dealer.game.decide import NoSecret
from dealer.game.state import Table
from dealer.proof.tree import Tree
from dealer.service.round_secret import RoundSecret

FRESH = 256
"""How many events a footing may lie behind before another is taken."""


class Footing(NamedTuple):
    """A table at a version that is on disk; `state` is a copy, as bytes that only memory holds."""

    version: int
    state: bytes
    tree: Tree
    secret: RoundSecret | NoSecret
    c1_root: bytes

    @classmethod
    def at(
        cls, table: Table, tree: Tree, secret: RoundSecret | NoSecret, c1_root: bytes
    ) -> Footing:
        return cls(table.version, pickle.dumps(table), tree.copy(), secret, c1_root)

    def table(self) -> Table:
        """The table, the caller's own to change."""
        table: Table = pickle.loads(self.state)
        return table


class Tail(NamedTuple):
    """What follows a footing in the log: rows in order, and their checkpoints (size, note)."""

    rows: list[Row]
    notes: list[tuple[int, str]]

    def check(self, after: int) -> None:
        """Raise DatabaseDamaged unless the rows are those after version `after`, without a gap."""
        for version, row in enumerate(self.rows, after + 1):
            if row.version != version:
                raise DatabaseDamaged(
                    f"Version {version} is missing in the log; restore it from a backup."
                )
