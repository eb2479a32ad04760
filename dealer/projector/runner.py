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
from dealer.projector.happened import Number, Stream
from dealer.projector.write import Pen, on_postgres

# CROSS JOIN has SQLite begin with the few streams that are behind, which have their own index.
_NEXT = """
SELECT s.id, s.table_id, s.projected, e.version, e.type, e.schema, e.at, e.public
FROM stream s CROSS JOIN event e ON e.stream = s.id AND e.version > s.projected
WHERE s.version > s.projected AND s.id > ? AND s.id <= ? AND s.id NOT IN ({})
ORDER BY s.id, e.version LIMIT ?"""
_MOVE = "UPDATE stream SET projected = ? WHERE id = ? AND projected = ?"
_LAST = 2**63 - 1

# Several nodes keep the same read models: whose hand is on a table first does it now, and the
# others take the next ones. Appends to those tables go on meanwhile, so it is no row that is held.
_CLAIM = """
WITH mine AS MATERIALIZED (
    SELECT id, table_id, projected FROM stream
    WHERE version > projected AND id > ? AND id <= ? AND NOT id = ANY(?)
        AND pg_try_advisory_xact_lock(CAST(CAST('x' || right(encode(id, 'hex'), 16) AS bit(64))
                                           AS bigint))
    ORDER BY id LIMIT ?
)
SELECT s.id, s.table_id, s.projected, e.version, e.type, e.schema, e.at, e.public
FROM mine s CROSS JOIN LATERAL (
    SELECT * FROM event e WHERE e.stream = s.id AND e.version > s.projected
    ORDER BY e.version LIMIT ?
) e ORDER BY s.id, e.version LIMIT ?"""
_MOVE_ALL = """
WITH step AS MATERIALIZED (
    SELECT * FROM unnest(CAST(? AS bigint[]), CAST(? AS bytea[]), CAST(? AS bigint[]))
        AS m (reached, id, projected)
), held AS MATERIALIZED (
    SELECT s.id FROM stream s JOIN step m ON m.id = s.id
    ORDER BY s.id FOR NO KEY UPDATE OF s SKIP LOCKED
)
UPDATE stream s SET projected = m.reached FROM step m, held h
WHERE h.id = m.id AND s.id = m.id AND s.projected = m.projected RETURNING s.id"""
_HIGHEST = b"\xff" * 16

EVENTS = 256
"""How many events a slice takes: a few milliseconds' work."""

TABLES = 2000
"""How many tables' states are kept at hand, some 6 KiB each; `Follower` bounds their bytes."""

_log = getLogger("dealer.projector")


class Projector:
    """Keeps the read models; give its `slice` to `Log.schedule`.

    `stopped` names the tables that stand still, by what stands for their stream: they are tried
    again by another Projector, after a restart. `done` counts the events applied.
    """

    def __init__(self, *, events: int = EVENTS, tables: int = TABLES) -> None:
        self.stopped: dict[Number, Stopped] = {}
        self.done = 0
        self._events = events
        self._after: Number | None = None
        # Streams that another transaction held or moved: the others of this pass go first.
        self._passed_over: set[Number] = set()
        self._pen = Pen()
        self._follower = Follower(tables=tables)

    def slice(self, connection: Connection) -> bool:
        """Applies the next events, inside the caller's transaction; whether more wait.

        Raises RaceLost or a driver's error, after which the transaction has to be undone.
        """
        rows = self._next(connection)
        changes = Changes()
        moves: list[tuple[int, Number, int]] = []
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
                told = dict(zip(("table", "version", "says"), reached.stopped, strict=True))
                _log.error("read models stop", extra={"told": told})
            if reached.version > projected:
                moves.append((reached.version, number, projected))
        if moves:
            self._pen.write(connection, changes)
            lost = _not_moved(connection, moves)
            if lost:
                self._passed_over |= lost
                raise RaceLost("Another process keeps the same read models; this one goes on next.")
        self.done += sum(reached - projected for reached, _, projected in moves)
        if len(rows) == self._events:
            return True
        again, self._passed_over = bool(self._passed_over), set()
        return again

    def _next(self, connection: Connection) -> Sequence[Any]:
        """The next events of streams that are behind; each stream gets its turn."""
        after = self._after
        ask = self._ask_postgres if on_postgres(connection) else self._ask_sqlite
        rows = ask(connection, after, None, self._events)
        if after is not None and len(rows) < self._events:
            rows += ask(connection, None, after, self._events - len(rows))
        self._after = rows[-1][0] if len(rows) == self._events else None
        return rows

    def _ask_sqlite(
        self, connection: Connection, after: Number | None, upto: Number | None, count: int
    ) -> list[Any]:
        # Numbers from the database, written out: as parameters they might be too many.
        sql = _NEXT.format(",".join(map(str, self.stopped)))
        return list(connection.exec_driver_sql(sql, (after or 0, upto or _LAST, count)).fetchall())

    def _ask_postgres(
        self, connection: Connection, after: Number | None, upto: Number | None, count: int
    ) -> list[Any]:
        but = [*self.stopped, *self._passed_over]
        asked = (after or b"", upto or _HIGHEST, but, count, count, count)
        return list(connection.exec_driver_sql(_CLAIM, asked).fetchall())


def _not_moved(connection: Connection, moves: list[tuple[int, Number, int]]) -> set[Number]:
    """Moves streams; those that are not where they were expected to be, or that are locked."""
    if on_postgres(connection):
        columns = tuple(map(list, zip(*moves, strict=True)))
        moved = {number for (number,) in connection.exec_driver_sql(_MOVE_ALL, columns)}
        return {number for _, number, _ in moves} - moved
    if connection.exec_driver_sql(_MOVE, moves).rowcount == len(moves):
        return set()
    return {number for _, number, _ in moves}
