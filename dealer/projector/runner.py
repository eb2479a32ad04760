"""Brings the read models up to date with the log, a slice of events per transaction.

A slice reads the next events of the lagging tables, applies them and updates each stream's
`projected` in the same transaction, by compare-and-set: after a crash rows and position agree, and
of two projectors one rolls back. (Of a long round that closes, the first slices write swaps before
the position moves; after a crash they are written again.) A table whose events cannot be applied is
stopped with a log line; the others go on.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from logging import getLogger
from operator import itemgetter
from typing import Any

from sqlalchemy import Connection

from dealer.errors import ConcurrentUpdate
from dealer.projector.changes import Changes
from dealer.projector.stream_projector import Stopped, StreamProjector
from dealer.projector.types import Number, StreamKey
from dealer.projector.writer import ReadModelWriter, on_postgres

# CROSS JOIN makes SQLite start with the few lagging streams, which have a partial index.
_NEXT = """
SELECT s.id, s.table_id, s.projected, e.version, e.type, e.schema, e.at, e.public
FROM stream s CROSS JOIN event e ON e.stream = s.id AND e.version > s.projected
WHERE s.version > s.projected AND s.id > ? AND s.id <= ? AND s.id NOT IN ({})
ORDER BY s.id, e.version LIMIT ?"""
_MOVE = "UPDATE stream SET projected = ? WHERE id = ? AND projected = ?"
_LAST = 2**63 - 1

# Several nodes write the same read models: advisory locks distribute the tables among them. Row
# locks would block appends to those tables.
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
), locked AS MATERIALIZED (
    SELECT s.id FROM stream s JOIN step m ON m.id = s.id
    ORDER BY s.id FOR NO KEY UPDATE OF s SKIP LOCKED
)
UPDATE stream s SET projected = m.reached FROM step m, locked l
WHERE l.id = m.id AND s.id = m.id AND s.projected = m.projected RETURNING s.id"""
_HIGHEST = b"\xff" * 16

EVENTS = 96
"""Events per slice: about four milliseconds and one commit, for which appends wait."""

TABLES = 2000
"""Cached table states, about 6 KiB each; `StreamProjector` bounds their bytes."""

_log = getLogger("dealer.projector")


class Projector:
    """Writes the read models; pass its `slice` to `Log.run_when_idle`.

    `stopped` has the stopped tables by their `stream` values: they are tried again by another
    Projector, after a restart. `done` counts the events applied.
    """

    def __init__(self, *, events: int = EVENTS, tables: int = TABLES) -> None:
        self.stopped: dict[Number, Stopped] = {}
        self.done = 0
        self._events = events
        self._after: Number | None = None
        # Streams that another transaction locked or moved: tried again after the others.
        self._passed_over: set[Number] = set()
        self._writer = ReadModelWriter()
        self._streams = StreamProjector(tables=tables)

    def slice(self, connection: Connection) -> bool:
        """Apply the next events, inside the caller's transaction; True if there are more.

        Raises ConcurrentUpdate or a driver's error; then the transaction must be rolled back. If it
        was not committed for any reason, call `rolled_back`.
        """
        self._streams.begin_slice()
        continued = self._streams.revealing is not None
        rows = self._next(connection)
        changes = Changes()
        moves: list[tuple[int, Number, int]] = []
        for number, found in groupby(rows, key=itemgetter(0)):
            more = list(found)
            table, projected = more[0][1], more[0][2]
            reached = self._streams.project(
                connection,
                StreamKey(number, table),
                after=projected,
                rows=[row[3:] for row in more],
                into=changes,
            )
            if reached.stopped is not None:
                self.stopped[number] = reached.stopped
                fields = dict(zip(("table", "version", "says"), reached.stopped, strict=True))
                _log.error("projection of a table stopped", extra={"fields": fields})
            if reached.version > projected:
                moves.append((reached.version, number, projected))
        self._writer.write(connection, changes)
        if moves:
            lost = _not_moved(connection, moves)
            if lost:
                self._passed_over |= lost
                raise ConcurrentUpdate(
                    "Another process wrote the same read models; this one tries again."
                )
        self.done += sum(reached - projected for reached, _, projected in moves)
        if len(rows) == self._events or continued or self._streams.postponed:
            return True
        again, self._passed_over = bool(self._passed_over), set()
        return again

    def rolled_back(self) -> None:
        """The last slice was not committed; it may be run again."""
        self._streams.forget_reveal()

    def _next(self, connection: Connection) -> Sequence[Any]:
        """The next events of lagging streams, in rotation; first those of a round that closes."""
        after = self._after
        select = self._select_postgres if on_postgres(connection) else self._select_sqlite
        revealing = self._streams.revealing
        if revealing is not None:
            rows = select(connection, _before(revealing), revealing, self._events)
            if rows:
                return rows
            self._streams.forget_reveal()  # another node has projected it, or is at it
        rows = select(connection, after, None, self._events)
        if after is not None and len(rows) < self._events:
            rows += select(connection, None, after, self._events - len(rows))
        self._after = rows[-1][0] if len(rows) == self._events else None
        return rows

    def _select_sqlite(
        self, connection: Connection, after: Number | None, upto: Number | None, count: int
    ) -> list[Any]:
        # Numbers from the database as literals: they may exceed the number of parameters.
        sql = _NEXT.format(",".join(map(str, self.stopped)))
        return list(connection.exec_driver_sql(sql, (after or 0, upto or _LAST, count)).fetchall())

    def _select_postgres(
        self, connection: Connection, after: Number | None, upto: Number | None, count: int
    ) -> list[Any]:
        but = [*self.stopped, *self._passed_over]
        parameters = (after or b"", upto or _HIGHEST, but, count, count, count)
        return list(connection.exec_driver_sql(_CLAIM, parameters).fetchall())


def _before(number: Number) -> Number:
    """The greatest value of `stream` columns that is less than `number`."""
    if isinstance(number, int):
        return number - 1
    return (int.from_bytes(number) - 1).to_bytes(len(number))


def _not_moved(connection: Connection, moves: list[tuple[int, Number, int]]) -> set[Number]:
    """Update `projected`; returns the streams that were locked or not at the expected position."""
    if on_postgres(connection):
        columns = tuple(map(list, zip(*moves, strict=True)))
        moved = {number for (number,) in connection.exec_driver_sql(_MOVE_ALL, columns)}
        return {number for _, number, _ in moves} - moved
    if connection.exec_driver_sql(_MOVE, moves).rowcount == len(moves):
        return set()
    return {number for _, number, _ in moves}
