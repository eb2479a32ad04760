"""Lagging streams: those whose read models are behind the log, with their next events.

The projector finds here what it has not in memory: what another process wrote, and has not
projected because it died or dropped it.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

from dealer.eventlog import EventRecord
from dealer.eventlog.protocols import Connection
from dealer.eventlog.schema import lagging, part
from dealer.projector.changes import StreamKey, on_postgres
from dealer.projector.models import StreamId
from dealer.projector.stream_projector import records

# LEFT JOIN makes SQLite start with the few lagging streams, which have a partial index. One whose
# next events are missing is a row without a version, so that its projection stops: else each poll
# would find it again. The events of an archived one are being deleted.
_HERE = "NOT EXISTS (SELECT 1 FROM archived a WHERE a.stream = {}.id)"
_COLUMNS = """s.id, s.table_id, s.projected, s.version AS last,
    e.version, e.type, e.schema, e.at, e.public, e.commitment, e.hidden"""
_NEXT = f"""
SELECT {_COLUMNS}
FROM stream s LEFT JOIN event e ON e.stream = s.id AND e.version > s.projected
WHERE s.version > s.projected AND s.id > ? AND s.id <= ? AND s.id NOT IN ({{}})
    AND {_HERE.format("s")}
ORDER BY s.id, e.version LIMIT ?"""
_LAST = 2**63 - 1

# Several nodes write the same read models: advisory locks distribute the tables among them. Row
# locks would block appends to those tables. A few streams are selected before any is locked: the
# planner may otherwise lock every lagging stream, and PostgreSQL has room for some thousand locks.
# The locks are of this connection's server, so they are taken by a statement without tables. At
# most so many versions of each table: without the limit all rows of each table would be sorted.
_FEW = """
SELECT id FROM {}
WHERE behind AND version > projected AND id > ? AND id <= ? AND NOT id = ANY(?)
    AND NOT EXISTS (SELECT 1 FROM {} WHERE archived.stream = stream.id)
ORDER BY id LIMIT ?"""
_CLAIM = """
SELECT id FROM unnest(CAST(? AS bytea[])) AS id
WHERE pg_try_advisory_xact_lock(
    CAST(CAST('x' || right(encode(id, 'hex'), 16) AS bit(64)) AS bigint))
LIMIT ?"""
_OF_CLAIMED = f"""
SELECT {_COLUMNS}
FROM stream s LEFT JOIN event e
    ON e.stream = s.id AND e.version > s.projected AND e.version <= s.projected + ?
WHERE s.id = ANY(?) AND s.version > s.projected ORDER BY s.id, e.version LIMIT ?"""
_HIGHEST = b"\xff" * 16
_CANDIDATES = 1024

_POSITIONS = "SELECT id, projected FROM {} WHERE {} LIMIT 1000"

# A stream that is behind is marked; the mark is taken back when the stream has not changed from one
# check to the next. Taken back at once, it would change with each append, and so the index.
_QUIET = "SELECT id, version FROM {} WHERE behind AND version = projected LIMIT 10000"
_UNMARK = "SELECT unmark_streams(?)"
POLLS_PER_UNMARK = 30
"""Polls from one check of the marks to the next."""


class Lagging(NamedTuple):
    """A stream up to version `last` of which only those up to `projected` are in the read models.

    `events` are the next ones; none if the log misses them.
    """

    stream: StreamKey
    projected: int
    last: int
    events: list[EventRecord]


class LaggingStreams:
    """Reads the next events of lagging streams, in rotation, at most `events` at a time."""

    def __init__(self, *, events: int) -> None:
        self._events = events
        self._after: StreamId | None = None
        self._seen: dict[StreamId, int] = {}
        self._polls = 0
        self._quiet: dict[StreamId, int] = {}

    def next(
        self, connection: Connection, *, without: Collection[StreamId], first: StreamId | None
    ) -> tuple[list[Lagging], bool]:
        """The next ones, and whether there may be more events.

        Streams in `without` are left out. If `first` lags, only that is returned.
        """
        rows = self._next(connection, without, first)
        return _by_stream(rows), len(rows) == self._events

    def _next(
        self, connection: Connection, without: Collection[StreamId], first: StreamId | None
    ) -> list[Any]:
        if first is not None:
            rows = self._select(connection, _before(first), first, without, self._events)
            if rows:
                return rows
        after = self._after
        rows = self._select(connection, after, None, without, self._events)
        if after is not None and len(rows) < self._events:
            rows += self._select(connection, None, after, without, self._events - len(rows))
        self._after = rows[-1].id if len(rows) == self._events else None
        return rows

    def is_stuck(self, connection: Connection, *, without: Collection[StreamId]) -> bool:
        """Whether a stream lags that lagged at the same position when this was last called.

        The process that wrote its events has died, or has dropped them.
        """
        found = {
            stream_id: projected
            for stream_id, projected in connection.exec_driver_sql(
                _POSITIONS.format(part(connection, "stream"), lagging(connection.dialect.name))
            )
            if stream_id not in without
        }
        seen, self._seen = self._seen, found
        return any(seen.get(stream_id) == projected for stream_id, projected in found.items())

    def unmark_quiet(self, connection: Connection) -> None:
        """Once in POLLS_PER_UNMARK calls, unmark the streams that were quiet since the last time.

        SQLite has no marks.
        """
        self._polls += 1
        if self._polls % POLLS_PER_UNMARK or not on_postgres(connection):
            return
        quiet = connection.exec_driver_sql(_QUIET.format(part(connection, "stream")))
        found = dict(map(tuple, quiet.fetchall()))
        unmarked = [
            stream_id for stream_id, at in self._quiet.items() if found.get(stream_id) == at
        ]
        if unmarked:
            connection.exec_driver_sql(_UNMARK, (unmarked,))
        self._quiet = found

    def _select(
        self,
        connection: Connection,
        after: StreamId | None,
        upto: StreamId | None,
        without: Collection[StreamId],
        count: int,
    ) -> list[Any]:
        if on_postgres(connection):
            execute = connection.exec_driver_sql
            few = _FEW.format(part(connection, "stream"), part(connection, "archived"))
            among = (after or b"", upto or _HIGHEST, list(without), _CANDIDATES)
            found = [stream_id for (stream_id,) in execute(few, among)]
            locked = execute(_CLAIM, (found, count)) if found else ()
            claimed = [stream_id for (stream_id,) in locked]
            if not claimed:
                return []
            return list(execute(_OF_CLAIMED, (count, claimed, count)).fetchall())
        # Values from the database as literals: they may exceed the number of parameters.
        sql = _NEXT.format(",".join(map(str, without)))
        return list(connection.exec_driver_sql(sql, (after or 0, upto or _LAST, count)).fetchall())


def _by_stream(rows: list[Any]) -> list[Lagging]:
    found = []
    for _, group in groupby(rows, key=attrgetter("id")):
        same = list(group)
        row = same[0]
        events = records(each for each in same if each.version is not None)
        found.append(Lagging(StreamKey(row.id, row.table_id), row.projected, row.last, events))
    return found


def _before(stream_id: StreamId) -> StreamId:
    """The greatest value of `stream` columns that is less than `stream_id`."""
    if isinstance(stream_id, int):
        return stream_id - 1
    return (int.from_bytes(stream_id) - 1).to_bytes(len(stream_id))
