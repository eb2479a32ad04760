"""Brings the tables that people query up to the log, a few hundred events at a time.

A slice takes the next events of the tables that are behind, applies them and moves each stream's
`projected` in the same transaction, by compare-and-set: rows and place are both there or neither,
whatever dies when, and of two projectors one rolls back. A table that cannot be followed stands
still and says why; the others go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from logging import getLogger
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection

from dealer.errors import RaceLost
from dealer.projector.changes import Changes
from dealer.projector.follow import Follower, Stopped
from dealer.projector.happened import Stream
from dealer.projector.write import Pen

# CROSS JOIN has SQLite begin with the few streams that are behind, which have their own index.
_NEXT = """
SELECT s.id, s.table_id, s.projected, e.version, e.type, e.schema, e.at, e.public
FROM stream s CROSS JOIN event e ON e.stream = s.id AND e.version > s.projected
WHERE s.version > s.projected AND s.id > ? AND s.id <= ? AND s.id NOT IN ({})
ORDER BY s.id, e.version LIMIT ?"""
_MOVE = "UPDATE stream SET projected = ? WHERE id = ? AND projected = ?"
_LAST = 2**63 - 1

EVENTS = 256
"""How many events a slice takes: a few milliseconds' work."""

TABLES = 2000
"""How many tables' states are kept at hand, some 6 KiB each."""

_log = getLogger("dealer.projector")


class Projector:
    """Keeps the read models; give its `slice` to `Log.schedule`.

    `stopped` names the tables that stand still, by the number of their stream: they are tried
    again by another Projector, after a restart. `done` counts the events applied.
    """

    def __init__(self, *, events: int = EVENTS, tables: int = TABLES) -> None:
        self.stopped: dict[int, Stopped] = {}
        self.done = 0
        self._events = events
        self._after = 0
        self._pen = Pen()
        self._follower = Follower(tables=tables)

    def slice(self, connection: Connection) -> bool:
        """Applies the next events, inside the caller's transaction; whether more wait.

        Raises RaceLost or a driver's error, after which the transaction has to be undone.
        """
        rows = self._next(connection)
        changes, moves = Changes(), []
        for number, found in groupby(rows, key=itemgetter(0)):
            more = list(found)
            table, projected = more[0][1], more[0][2]
            reached = self._follower.follow(
                connection,
                Stream(number, table),
                after=projected,
                rows=[row[3:] for row in more],
                into=changes,
            )
            if reached.stopped is not None:
                self.stopped[number] = reached.stopped
                _log.error("the read models of table %s stop at version %d: %s", *reached.stopped)
            if reached.version > projected:
                moves.append((reached.version, number, projected))
        if moves:
            self._pen.write(connection, changes)
            if connection.exec_driver_sql(_MOVE, moves).rowcount != len(moves):
                raise RaceLost("Another process keeps the same read models; this one goes on next.")
        self.done += sum(reached - projected for reached, _, projected in moves)
        return len(rows) == self._events

    def _next(self, connection: Connection) -> Sequence[Any]:
        """The next events of streams that are behind; each stream gets its turn."""
        # Numbers from the database, written out: as parameters they might be too many.
        sql = _NEXT.format(",".join(map(str, self.stopped)))
        fetch = connection.exec_driver_sql
        rows = list(fetch(sql, (self._after, _LAST, self._events)).fetchall())
        if self._after and len(rows) < self._events:
            rows += fetch(sql, (0, self._after, self._events - len(rows))).fetchall()
        self._after = rows[-1][0] if len(rows) == self._events else 0
        return rows
