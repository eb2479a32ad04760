"""Brings the read models up to date with the log, a slice of events per transaction.

A slice takes the next events that this process committed out of memory, or else reads those of
lagging tables; it applies them and updates each stream's `projected` in the same transaction, by
compare-and-set: after a crash rows and position agree, and of two projectors one rolls back. (Of a
long closed round, the first slices write swaps and moves before the position advances; after a
crash they are written again.) A table whose events cannot be applied is stopped with a log line;
the others go on.

What this process has written itself comes out of memory (`eventlog.recent`). Everything else is
found by `lagging.py`: what an earlier process left, what a process that died has not projected,
and what was dropped from memory.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from enum import Flag, auto
from itertools import groupby
from logging import getLogger
from operator import itemgetter
from typing import NamedTuple

from sqlalchemy import Connection

from dealer.errors import ConcurrentUpdate
from dealer.eventlog import EventRecord
from dealer.eventlog.protocols import Dialect
from dealer.eventlog.recent import RecentEvents
from dealer.eventlog.schema import TABLE_ID, select_in
from dealer.projector.changes import Changes, ReadModelWriter, StreamKey, on_postgres
from dealer.projector.lagging import LaggingStreams
from dealer.projector.models import StreamId
from dealer.projector.rebuild import schema_version
from dealer.projector.stream_projector import Stopped, StreamProjector, records


class StreamPositions:
    """Numbers and projected versions of the `bound` tables that were projected last.

    They may be out of date: the update of `projected` is a compare-and-set.
    """

    def __init__(self, *, bound: int) -> None:
        self._bound = bound
        self._known: OrderedDict[bytes, tuple[StreamId, int]] = OrderedDict()

    def of(
        self, connection: Connection, tables: Sequence[bytes]
    ) -> dict[bytes, tuple[StreamId, int]]:
        """(stream_id, projected) of each of these tables that the log has."""
        unknown = [table for table in tables if table not in self._known]
        dialect = connection.dialect.name
        select = f"SELECT {TABLE_ID[dialect]}, id, projected FROM stream"
        for sql, part in select_in(dialect, select, TABLE_ID[dialect], unknown):
            for table, stream_id, projected in connection.exec_driver_sql(sql, part):
                self._known[table] = stream_id, projected
        return {table: self._known[table] for table in tables if table in self._known}

    def put(self, table: bytes, stream_id: StreamId, projected: int) -> None:
        """Remember a position; the oldest ones are forgotten."""
        self._known[table] = stream_id, projected
        self._known.move_to_end(table)
        while len(self._known) > self._bound:
            self._known.popitem(last=False)

    def clear(self) -> None:
        """Forget all positions: a transaction was rolled back."""
        self._known.clear()


_PROJECTED = "SELECT projected FROM stream WHERE id = ?"
_ADVANCE = "UPDATE stream SET projected = ? WHERE id = ? AND projected = ?"
_ADVANCE_ALL = """
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
"""Events per slice on PostgreSQL: it takes a dozen round trips whatever their number."""

RECENT_EVENTS = 512
"""Events per slice that are in memory: some five milliseconds. Many small slices would take twice
the processor time, and appends would wait for most of it."""

Advance = tuple[int, StreamId, int]
"""(reached, stream_id, projected): the update of one stream's `projected`."""

TABLES = 2000
"""Cached table states, about 6 KiB each; `StreamProjector` bounds their bytes."""

_log = getLogger("dealer.projector")


class Due(Flag):
    """What is to be read from the log, besides what this process has committed."""

    NOTHING = 0
    POLL = auto()  # catch up if a stream has not advanced since the last poll
    CATCH_UP = auto()  # every lagging stream


class _Slice(NamedTuple):
    """What one transaction is to write: rows of the read models, and the streams' positions."""

    connection: Connection
    changes: Changes
    advances: list[Advance]


class Projector:
    """Writes the read models; pass its `slice` to `Log.run_when_idle`.

    `recent` has the events that this process commits. Other lagging streams are read when
    `catch_up` was called, or always if `recent` is None. `stopped` has the stopped tables by their
    `stream` values: they are tried again by another Projector, after a restart, or when a poll
    finds that a rebuild or another process has projected more of them. `done` counts the events
    applied. A slice applies about `events`, or `RECENT_EVENTS` of those in memory.
    """

    def __init__(
        self, *, recent: RecentEvents | None = None, events: int = EVENTS, tables: int = TABLES
    ) -> None:
        self.stopped: dict[StreamId, Stopped] = {}
        self.done = 0
        self._recent = recent
        self._events = events
        # What an earlier process has left is found by the first slice.
        self._due = Due.CATCH_UP
        self._read_log = False  # by the last slice
        self._lagging = LaggingStreams(events=events)
        self._positions = StreamPositions(bound=tables)
        # Streams that another transaction locked or advanced: tried again after the others.
        self._contended: set[StreamId] = set()
        self._writer = ReadModelWriter()
        self._streams = StreamProjector(tables=tables)
        # The tables to which the first part of a round was written, while it is folded further.
        self._written_to: str | None = None

    def catch_up(self) -> None:
        """Project every lagging stream, also of other processes."""
        self._due |= Due.CATCH_UP

    def poll(self) -> None:
        """Project every lagging stream if one has not advanced since the last poll."""
        self._due |= Due.POLL

    def slice(self, connection: Connection) -> bool:
        """Apply the next events, inside the caller's transaction; True if there are more.

        Raises ConcurrentUpdate or a driver's error; then the transaction must be rolled back. If it
        was not committed for any reason, call `rolled_back`.
        """
        self._streams.begin_slice()
        slice = _Slice(connection, Changes(), [])
        more = self._project_next(slice)
        self._writer.write(connection, slice.changes)
        self._require_same_tables(connection)
        self._advance(slice)
        return more

    def rolled_back(self) -> None:
        """The last slice was not committed; it may be run again.

        What it took from `recent` is not put back, for the log has it and a rollback is rare.
        """
        self._streams.forget_rounds()
        self._written_to = None
        self._positions.clear()
        self._due |= Due.CATCH_UP

    # The steps of a slice

    def _project_next(self, slice: _Slice) -> bool:
        """Fold the events of this slice, from memory or from the log; True if there are more."""
        recent = self._recent
        # Under load there are always recent events: every second slice may read the log, or what
        # other processes have left would never come.
        self._read_log = bool(self._due) and not self._read_log
        if recent is not None and recent.waiting and not self._read_log:
            self._project_recent(slice, recent)
            more = bool(self._due)
        else:
            more = self._project_lagging(slice)
        return more or (recent is not None and bool(recent.waiting))

    def _require_same_tables(self, connection: Connection) -> None:
        """Raise ConcurrentUpdate if a rebuild has replaced the tables with a round's first swaps.

        It may have read the log before the round was closed. To be called after the slice's rows
        were written, which a rebuild waits for.
        """
        before, self._written_to = self._written_to, None
        if before is None and self._streams.folding is None:
            return
        self._written_to = schema_version(connection)
        if before not in (None, self._written_to):
            raise ConcurrentUpdate("The read models were rebuilt; this round is projected again.")
        if self._streams.folding is None:
            self._written_to = None

    def _advance(self, slice: _Slice) -> None:
        """Move the positions by compare-and-set, which rolls back one of two projectors."""
        # A lock on each stream before its events are read would also keep projectors apart, but
        # appends would wait for it.
        lost = _not_advanced(slice.connection, slice.advances) if slice.advances else set()
        if lost:
            self._contended |= lost
            raise ConcurrentUpdate(
                "Another process wrote the same read models; this one tries again."
            )
        self.done += sum(reached - projected for reached, _, projected in slice.advances)

    # Folding

    def _project_recent(self, slice: _Slice, recent: RecentEvents) -> None:
        """Project what this process committed; what does not follow is read from the log."""
        taken = recent.take(RECENT_EVENTS)
        tables = [table for table, _ in taken]
        positions = self._positions.of(slice.connection, tables)
        for table, found in taken:
            stream_id, projected = positions.get(table, (None, 0))
            if stream_id is None or stream_id in self.stopped or found[-1].version <= projected:
                continue  # in the last case a slice that read the log has projected them
            if found[0].version > projected + 1:
                self._due |= Due.CATCH_UP
                continue
            found = found[projected + 1 - found[0].version :]
            stream, last = StreamKey(stream_id, table), found[-1].version
            reached = self._project(slice, stream, projected, found, upto=last)
            if reached < last and stream_id not in self.stopped:
                recent.put_back(table, reached + 1)
        recent.projected(tables)
        if recent.pop_incomplete():
            self._due |= Due.CATCH_UP

    def _project_lagging(self, slice: _Slice) -> bool:
        """Project lagging streams if that is due; True if there are more."""
        connection = slice.connection
        if Due.POLL in self._due:
            self._due &= ~Due.POLL
            self._resume_advanced(connection)
            self._lagging.unmark_quiet(connection)
            if self._lagging.is_stuck(connection, without=self.stopped):
                self._due |= Due.CATCH_UP
        if self._recent is not None and Due.CATCH_UP not in self._due:
            return False
        folding = self._streams.folding
        without = [*self.stopped, *self._contended]
        rows = self._lagging.next(connection, without=without, first=folding)
        if folding is not None and (not rows or rows[0][0] != folding):
            self._streams.forget_rounds()  # another node has projected it, or is at it
        for stream_id, group in groupby(rows, key=itemgetter(0)):
            found = list(group)
            _, table, projected, upto = found[0][:4]
            events = records(row[4:] for row in found)
            self._project(slice, StreamKey(stream_id, table), projected, events, upto=upto)
        if len(rows) == self._events or self._streams.slice_full or folding is not None:
            return True
        again, self._contended = bool(self._contended), set()
        self._due = Due.CATCH_UP if again else Due.NOTHING
        return again

    def _resume_advanced(self, connection: Connection) -> None:
        """Forget the stop of each table of which more was projected since, by another process."""
        sql = "SELECT id, projected FROM stream"
        for select, part in select_in(connection.dialect.name, sql, "id", [*self.stopped]):
            for stream_id, projected in connection.exec_driver_sql(select, part):
                if projected > self.stopped[stream_id].version:
                    stopped = self.stopped.pop(stream_id)
                    fields = {"table": stopped.table, "version": projected}
                    _log.info("projection of a table resumed", extra={"fields": fields})

    def _project(
        self,
        slice: _Slice,
        stream: StreamKey,
        projected: int,
        rows: Sequence[EventRecord],
        *,
        upto: int,
    ) -> int:
        """Project one stream's next events; the version that was reached."""
        reached = self._streams.project(
            slice.connection, stream, after=projected, rows=rows, upto=upto, into=slice.changes
        )
        if reached.stopped is not None:
            # What looks like damage may be a table that was archived since its rows were read.
            at = slice.connection.exec_driver_sql(_PROJECTED, (stream.id,)).scalar()
            if at != projected:
                raise ConcurrentUpdate(
                    "Another process has projected or archived a table; this one tries again."
                )
            self.stopped[stream.id] = reached.stopped
            fields = dict(zip(("table", "version", "says"), reached.stopped, strict=True))
            _log.error("projection of a table stopped", extra={"fields": fields})
        if reached.version > projected:
            slice.advances.append((reached.version, stream.id, projected))
        self._positions.put(stream.table, stream.id, reached.version)
        return reached.version


def events_per_slice(dialect: Dialect) -> int:
    return EVENTS_ON_POSTGRES if dialect == "postgresql" else EVENTS


def _not_advanced(connection: Connection, advances: list[Advance]) -> set[StreamId]:
    """Update `projected`; returns the streams that were locked or not at the expected position."""
    if on_postgres(connection):
        columns = tuple(map(list, zip(*advances, strict=True)))
        advanced = {stream_id for (stream_id,) in connection.exec_driver_sql(_ADVANCE_ALL, columns)}
        return {stream_id for _, stream_id, _ in advances} - advanced
    if connection.exec_driver_sql(_ADVANCE, advances).rowcount == len(advances):
        return set()
    return {stream_id for _, stream_id, _ in advances}
