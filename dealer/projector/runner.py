"""Brings the read models up to date with the log, a slice of events per transaction.

A slice takes the next events that this process committed out of memory, or else reads those of
lagging tables; it applies them and updates each stream's `projected` in the same transaction, by
compare-and-set: after a crash rows and position agree, and of two projectors one rolls back. (Of a
long round that closes, the first slices write swaps before the position moves; after a crash they
are written again.) A table whose events cannot be applied is stopped with a log line; the others go
on.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from logging import getLogger
from operator import itemgetter

from sqlalchemy import Connection

from dealer.errors import ConcurrentUpdate
from dealer.eventlog import EventRecord
from dealer.eventlog.queries import select_in
from dealer.eventlog.store import Dialect
from dealer.projector.changes import Changes
from dealer.projector.lagging import LaggingStreams
from dealer.projector.positions import StreamPositions
from dealer.projector.rebuilt_tables import schema_version
from dealer.projector.recent_events import RecentEvents
from dealer.projector.stream_projector import (
    REVEALED,
    Stopped,
    StreamProjector,
)
from dealer.projector.types import Number, StreamKey
from dealer.projector.writer import ReadModelWriter, on_postgres

_PROJECTED = "SELECT projected FROM stream WHERE id = ?"
_MOVE = "UPDATE stream SET projected = ? WHERE id = ? AND projected = ?"
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

EVENTS = 96
"""Events per slice that are read from the log: some two milliseconds and one commit, for which
appends wait."""

EVENTS_ON_POSTGRES = 384
"""The same on PostgreSQL, where a slice takes a dozen round trips whatever its number of events."""

RECENT_EVENTS = 512
"""Events per slice that are in memory: some five milliseconds. Many small slices would take twice
the processor time, and appends would wait for most of it."""

Move = tuple[int, Number, int]
"""(reached, number, projected): the update of one stream's `projected`."""

TABLES = 2000
"""Cached table states, about 6 KiB each; `StreamProjector` bounds their bytes."""

_log = getLogger("dealer.projector")


class Projector:
    """Writes the read models; pass its `slice` to `Log.run_when_idle`.

    `recent` has the events that this process commits. Other lagging streams are searched for when
    `search` was called, or always if `recent` is None. `stopped` has the stopped tables by their
    `stream` values: they are tried again by another Projector, after a restart, or when a look
    finds that a rebuild or another process has projected more of them. `done` counts the events
    applied. A slice applies about `events`, or `RECENT_EVENTS` of those in memory.
    """

    def __init__(
        self, *, recent: RecentEvents | None = None, events: int = EVENTS, tables: int = TABLES
    ) -> None:
        self.stopped: dict[Number, Stopped] = {}
        self.done = 0
        self._recent = recent
        self._events = events
        self._search = True
        self._look = False
        self._searching = False
        self._lagging = LaggingStreams(events=events)
        self._positions = StreamPositions(bound=tables)
        # Streams that another transaction locked or moved: tried again after the others.
        self._passed_over: set[Number] = set()
        self._writer = ReadModelWriter()
        self._streams = StreamProjector(tables=tables, revealed=max(REVEALED, events))
        # The tables to which the first part of a round was written, while its replay goes on.
        self._written_to: str | None = None

    def search(self) -> None:
        """Project every lagging stream, also of other processes."""
        self._search = True

    def look(self) -> None:
        """Project every lagging stream if one has not moved since the last look."""
        self._look = True

    def slice(self, connection: Connection) -> bool:
        """Apply the next events, inside the caller's transaction; True if there are more.

        Raises ConcurrentUpdate or a driver's error; then the transaction must be rolled back. If it
        was not committed for any reason, call `rolled_back`.
        """
        self._streams.begin_slice()
        changes = Changes()
        moves: list[Move] = []
        # Under load there are always recent events: a search takes every second slice.
        self._searching = (self._search or self._look) and not self._searching
        if self._recent is not None and len(self._recent) and not self._searching:
            self._project_recent(connection, self._recent, changes, moves)
            more = self._search or self._look
        else:
            more = self._project_lagging(connection, changes, moves)
        more = more or (self._recent is not None and len(self._recent) > 0)
        self._writer.write(connection, changes)
        self._require_same_tables(connection)
        if moves:
            lost = _not_moved(connection, moves)
            if lost:
                self._passed_over |= lost
                raise ConcurrentUpdate(
                    "Another process wrote the same read models; this one tries again."
                )
        self.done += sum(reached - projected for reached, _, projected in moves)
        return more

    def rolled_back(self) -> None:
        """The last slice was not committed; it may be run again."""
        self._streams.forget_reveals()
        self._written_to = None
        self._positions.clear()
        self._search = True

    def _require_same_tables(self, connection: Connection) -> None:
        """Raise ConcurrentUpdate if a rebuild has replaced the tables with a round's first swaps.

        It may have read the log before the round was closed. To be called after the slice's rows
        were written, which a rebuild waits for.
        """
        before, self._written_to = self._written_to, None
        if before is None and self._streams.revealing is None:
            return
        self._written_to = schema_version(connection)
        if before not in (None, self._written_to):
            raise ConcurrentUpdate("The read models were rebuilt; this round is replayed again.")
        if self._streams.revealing is None:
            self._written_to = None

    def _project_recent(
        self, connection: Connection, recent: RecentEvents, changes: Changes, moves: list[Move]
    ) -> None:
        """Project what this process committed; what does not follow is searched for in the log."""
        taken = recent.take(RECENT_EVENTS)
        positions = self._positions.of(connection, [table for table, _ in taken])
        for table, found in taken:
            number, projected = positions.get(table, (None, 0))
            if number is None or number in self.stopped:
                continue
            consecutive = _consecutive(found)
            if len(consecutive) < len(found):
                self._search = True  # another process has written what is between them
                found = consecutive
            found = [each for each in found if each.version > projected]
            if not found:
                continue  # a search has projected them
            if found[0].version != projected + 1:
                self._search = True
                continue
            stream = StreamKey(number, table)
            reached = self._project(connection, stream, projected, found, changes, moves)
            self._positions.put(table, number, reached)
            if reached < found[-1].version and number not in self.stopped:
                recent.put_back(table, found[reached - projected :])
        if recent.pop_incomplete():
            self._search = True

    def _project_lagging(self, connection: Connection, changes: Changes, moves: list[Move]) -> bool:
        """Project lagging streams, if they are to be searched for; True if there are more."""
        if self._look:
            self._look = False
            self._resume_moved(connection)
            self._lagging.sweep(connection)
            if self._lagging.is_stuck(connection, without=self.stopped):
                self._search = True
        if self._recent is not None and not self._search:
            return False
        revealing = self._streams.revealing
        without = [*self.stopped, *self._passed_over]
        rows = self._lagging.next(connection, without=without, first=revealing)
        if revealing is not None and (not rows or rows[0][0] != revealing):
            self._streams.forget_reveals()  # another node has projected it, or is at it
        for number, group in groupby(rows, key=itemgetter(0)):
            found = list(group)
            table, projected = found[0][1], found[0][2]
            stream = StreamKey(number, table)
            events = [_record(*row[3:]) for row in found]
            reached = self._project(connection, stream, projected, events, changes, moves)
            self._positions.put(table, number, reached)
        if len(rows) == self._events or self._streams.postponed or revealing is not None:
            return True
        again, self._passed_over = bool(self._passed_over), set()
        self._search = again
        return again

    def _resume_moved(self, connection: Connection) -> None:
        """Forget the stop of each table of which more was projected since, by another process."""
        sql = "SELECT id, projected FROM stream"
        for select, part in select_in(connection.dialect.name, sql, "id", [*self.stopped]):
            for number, projected in connection.exec_driver_sql(select, part):
                if projected > self.stopped[number].version:
                    stopped = self.stopped.pop(number)
                    fields = {"table": stopped.table, "version": projected}
                    _log.info("projection of a table resumed", extra={"fields": fields})

    def _project(
        self,
        connection: Connection,
        stream: StreamKey,
        projected: int,
        rows: Sequence[EventRecord],
        changes: Changes,
        moves: list[Move],
    ) -> int:
        """Project one stream's next events; the version that was reached."""
        reached = self._streams.project(
            connection, stream, after=projected, rows=rows, into=changes
        )
        if reached.stopped is not None:
            at = connection.exec_driver_sql(_PROJECTED, (stream.number,)).scalar()
            if at != projected:
                raise ConcurrentUpdate(
                    "Another process has projected or archived a table; this one tries again."
                )
            self.stopped[stream.number] = reached.stopped
            fields = dict(zip(("table", "version", "says"), reached.stopped, strict=True))
            _log.error("projection of a table stopped", extra={"fields": fields})
        if reached.version > projected:
            moves.append((reached.version, stream.number, projected))
        return reached.version


def _record(
    version: int, type: str, schema: int, at: int, public: str, hidden: bytes | None
) -> EventRecord:
    return EventRecord(version, type, schema, at, public, None, hidden)


def events_per_slice(dialect: Dialect) -> int:
    return EVENTS_ON_POSTGRES if dialect == "postgresql" else EVENTS


def _consecutive(events: list[EventRecord]) -> list[EventRecord]:
    """The events before the first whose version does not follow."""
    first = events[0].version
    if events[-1].version - first == len(events) - 1:
        return events
    return [each for place, each in enumerate(events) if each.version == first + place]


def _not_moved(connection: Connection, moves: list[Move]) -> set[Number]:
    """Update `projected`; returns the streams that were locked or not at the expected position."""
    if on_postgres(connection):
        columns = tuple(map(list, zip(*moves, strict=True)))
        moved = {number for (number,) in connection.exec_driver_sql(_MOVE_ALL, columns)}
        return {number for _, number, _ in moves} - moved
    if connection.exec_driver_sql(_MOVE, moves).rowcount == len(moves):
        return set()
    return {number for _, number, _ in moves}
