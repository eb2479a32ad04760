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
from collections.abc import Collection, Sequence
from enum import Flag, auto
from logging import getLogger
from typing import NamedTuple

from dealer.errors import ConcurrentUpdate
from dealer.eventlog import EventRecord
from dealer.eventlog.protocols import Connection, Dialect
from dealer.eventlog.recent import RecentEvents
from dealer.eventlog.schema import TABLE_ID, near, select_in
from dealer.projector.changes import Changes, ReadModelWriter, StreamKey, on_postgres
from dealer.projector.lagging import LaggingStreams
from dealer.projector.models import StreamId
from dealer.projector.rebuild import schema_version
from dealer.projector.stream_projector import BYTES, Stopped, StreamProjector


class _Position(NamedTuple):
    """A stream, and up to which version it is in the read models."""

    stream_id: StreamId
    projected: int


class StreamPositions:
    """The positions of the `bound` tables that were projected last.

    They may be out of date: the update of `projected` is a compare-and-set.
    """

    def __init__(self, *, bound: int) -> None:
        self._bound = bound
        self._known: OrderedDict[bytes, _Position] = OrderedDict()

    def of(self, connection: Connection, tables: Sequence[bytes]) -> dict[bytes, _Position]:
        """The position of each of these tables that the log has."""
        unknown = [table for table in tables if table not in self._known]
        dialect = connection.dialect.name
        select = f"SELECT {TABLE_ID[dialect]}, id, projected FROM stream"
        for sql, part in select_in(dialect, select, TABLE_ID[dialect], unknown):
            for table, stream_id, projected in connection.exec_driver_sql(sql, part):
                self._known[table] = _Position(stream_id, projected)
        return {table: self._known[table] for table in tables if table in self._known}

    def put(self, table: bytes, stream_id: StreamId, projected: int) -> None:
        """Remember a position; the oldest ones are forgotten."""
        self._known[table] = _Position(stream_id, projected)
        self._known.move_to_end(table)
        while len(self._known) > self._bound:
            self._known.popitem(last=False)

    def clear(self) -> None:
        """Forget all positions: a transaction was rolled back."""
        self._known.clear()


_PROJECTED = "SELECT projected FROM stream WHERE id = ?"
_ADVANCE = "UPDATE stream SET projected = ? WHERE id = ? AND projected = ?"
_ADVANCE_ALL = "SELECT * FROM advance_streams(?, ?, ?)"

EVENTS = 96
"""Events per slice that are read from the log: some two milliseconds and one commit, for which
appends wait."""

EVENTS_ON_POSTGRES = 384
"""Events per slice on PostgreSQL: it takes a dozen round trips whatever their number."""

RECENT_EVENTS = 128
"""Events per slice that are in memory: some five milliseconds where each is of another table, for
which appends wait. Half as many save no more waiting, and all slices together cost more."""

TABLES = 2000
"""Cached table states, about 6 KiB each; `StreamProjector` bounds their bytes."""

TableIds = Collection[bytes]

_log = getLogger("dealer.projector")


class Due(Flag):
    """What is to be read from the log, besides what this process has committed."""

    NOTHING = 0
    POLL = auto()  # catch up if a stream has not advanced since the last poll
    CATCH_UP = auto()  # every lagging stream


class _Advance(NamedTuple):
    """The update of one stream's `projected`, in the order of the parameters of `_ADVANCE`."""

    reached: int
    stream_id: StreamId
    projected: int


class _Transaction(NamedTuple):
    """What a slice is to write: rows of the read models, and the streams' positions."""

    connection: Connection
    changes: Changes
    advances: list[_Advance]


class Projector:
    """Writes the read models; pass its `slice` to `Log.run_when_idle`.

    `recent` has the events that this process commits. Other lagging streams are read when
    `catch_up` was called, or always if `recent` is None. `stopped` has the stopped tables by their
    `stream` values: they are tried again by another Projector, after a restart, or when a poll
    finds that a rebuild or another process has projected more of them. `done` counts the events
    applied. A slice applies about `events`, or `RECENT_EVENTS` of those in memory. Each server of a
    log in shards has a projector, whose slices get connections to it; they share `stopped`.
    """

    def __init__(
        self,
        *,
        recent: RecentEvents | None = None,
        events: int = EVENTS,
        tables: int = TABLES,
        stopped: dict[StreamId, Stopped] | None = None,
    ) -> None:
        self.stopped: dict[StreamId, Stopped] = {} if stopped is None else stopped
        self.done = 0
        self._recent = recent
        self._dropped = 0  # by `recent`
        # What an earlier process has left is found by the first slice.
        self._due = Due.CATCH_UP
        self._read_log = False  # by the last slice
        # Tables that the slices until one returns False are still to take out of memory. What is
        # committed meanwhile is for the next ones: taken a few events at a time, a busy table would
        # cost several times as much.
        self._waiting = 0
        self._lagging = LaggingStreams(events=events)
        self._positions = StreamPositions(bound=tables)
        # Streams that another transaction locked or advanced: tried again after the others.
        self._contended: set[StreamId] = set()
        self._writer = ReadModelWriter()
        bound = BYTES if recent is None else min(BYTES, recent.bound)
        self._streams = StreamProjector(tables=tables, bound=bound)
        # The tables to which the first part of a round was written, while it is folded further.
        self._written_to: str | None = None

    @property
    def bytes(self) -> int:
        """Estimated bytes of the states that are kept, at most as many as of `recent`."""
        return self._streams.bytes

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
        transaction = _Transaction(connection, Changes(), [])
        more = self._project_next(transaction)
        self._writer.write(connection, transaction.changes)
        self._require_same_tables(connection)
        self._advance(transaction)
        return more

    def rolled_back(self) -> None:
        """The last slice was not committed; it may be run again.

        What it took from `recent` is not put back, for the log has it and a rollback is rare.
        """
        self._streams.forget_rounds()
        self._written_to = None
        self._waiting = 0
        self._positions.clear()
        self._due |= Due.CATCH_UP

    # The steps of a slice

    def _project_next(self, transaction: _Transaction) -> bool:
        """Fold the events of this slice, from memory or from the log; True if there are more."""
        recent, connection = self._recent, transaction.connection
        # Under load there are always recent events: every second slice may read the log, or what
        # other processes have left would never come.
        self._read_log = bool(self._due) and not self._read_log
        here = None if recent is None else _waiting(connection, recent)
        if recent is not None and here and not self._read_log:
            self._waiting = self._waiting or len(here)
            self._project_recent(transaction, recent, here)
            more = bool(self._due)
        else:
            more = self._project_lagging(transaction)
        if recent is None or not _waiting(connection, recent):
            self._waiting = 0  # what was left was dropped from memory
        return more or self._waiting > 0

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

    def _advance(self, transaction: _Transaction) -> None:
        """Move the positions by compare-and-set, which rolls back one of two projectors."""
        # A lock on each stream before its events are read would also keep projectors apart, but
        # appends would wait for it.
        connection, _, advances = transaction
        if lost := _not_advanced(connection, advances) if advances else set():
            self._contended |= lost
            raise ConcurrentUpdate(
                "Another process wrote the same read models; this one tries again."
            )
        self.done += sum(each.reached - each.projected for each in advances)

    # Folding

    def _project_recent(
        self, transaction: _Transaction, recent: RecentEvents, here: TableIds
    ) -> None:
        """Project what this process committed; what does not follow is read from the log."""
        taken = recent.take(RECENT_EVENTS, of=here)
        self._waiting -= len(taken)
        tables = [table for table, _ in taken]
        try:
            positions = self._positions.of(transaction.connection, tables)
            for table, found in taken:
                position, last = positions.get(table), found[-1].version
                if position is None or position.stream_id in self.stopped:
                    continue
                stream_id, projected = position
                if last <= projected:
                    continue  # a slice that read the log has projected them
                if found[0].version > projected + 1:
                    self._due |= Due.CATCH_UP
                    continue
                found = found[projected + 1 - found[0].version :]
                stream = StreamKey(stream_id, table)
                reached = self._project(transaction, stream, projected, found, upto=last)
                if reached < last and stream_id not in self.stopped:
                    recent.put_back(table, reached + 1)
                    self._waiting += 1
        finally:
            # Also if this slice is rolled back: then its events are read from the log.
            recent.projected(tables)
        if recent.dropped != self._dropped:
            self._dropped = recent.dropped
            self._due |= Due.CATCH_UP

    def _project_lagging(self, transaction: _Transaction) -> bool:
        """Project lagging streams if that is due; True if there are more."""
        connection = transaction.connection
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
        found, more = self._lagging.next(connection, without=without, first=folding)
        if folding is not None and (not found or found[0].stream.id != folding):
            self._streams.forget_rounds()  # another node has projected it, or is at it
        for each in found:
            self._project(transaction, each.stream, each.projected, each.events, upto=each.last)
        if more or self._streams.slice_full or folding is not None:
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
        transaction: _Transaction,
        stream: StreamKey,
        projected: int,
        rows: Sequence[EventRecord],
        *,
        upto: int,
    ) -> int:
        """Project one stream's next events; the version that was reached."""
        connection = transaction.connection
        reached = self._streams.project(
            connection, stream, after=projected, rows=rows, upto=upto, into=transaction.changes
        )
        if reached.stopped is not None:
            # What looks like damage may be a table that was archived since its rows were read.
            at = connection.exec_driver_sql(_PROJECTED, (stream.id,)).scalar()
            if at != projected:
                raise ConcurrentUpdate(
                    "Another process has projected or archived a table; this one tries again."
                )
            self.stopped[stream.id] = reached.stopped
            table, version, sentence = reached.stopped
            fields = {"table": table, "version": version, "says": sentence}
            _log.error("projection of a table stopped", extra={"fields": fields})
        if reached.version > projected:
            transaction.advances.append(_Advance(reached.version, stream.id, projected))
        self._positions.put(stream.table, stream.id, reached.version)
        return reached.version


def events_per_slice(dialect: Dialect) -> int:
    return EVENTS_ON_POSTGRES if dialect == "postgresql" else EVENTS


def _waiting(connection: Connection, recent: RecentEvents) -> Collection[bytes]:
    """The tables of which this process has committed more than is projected, of those near."""
    tables, here = recent.tables_waiting(), near(connection)
    return tables if here is None else here.tables(connection, tables)


def _not_advanced(connection: Connection, advances: list[_Advance]) -> set[StreamId]:
    """Update `projected`; returns the streams that were locked or not at the expected position."""
    if on_postgres(connection):
        columns = tuple(map(list, zip(*advances, strict=True)))
        advanced = {stream for (stream,) in connection.exec_driver_sql(_ADVANCE_ALL, columns)}
        return {each.stream_id for each in advances} - advanced
    if connection.exec_driver_sql(_ADVANCE, advances).rowcount == len(advances):
        return set()
    return {each.stream_id for each in advances}
