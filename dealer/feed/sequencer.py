"""Sequencer: gives committed events their place in the feed, one transaction at a time.

Appends take no number from a counter of all tables: on PostgreSQL they commit out of the order of
such a counter, and a reader that goes by it would skip events that commit late. Instead, a slice
compares the version of each table that may have new events with the last one in `feed`, and adds
the versions between them as rows with the next numbers. One process writes at a time: on
SQLite under the write lock, on PostgreSQL with the row of `feed_state` locked. So rows become
visible in the order of their numbers, and a reader that has read up to a number has missed nothing.

Tables with new events are found

- on SQLite by the rows of `event` after the newest one that was searched. Their ids grow in the
  order of commits, except that SQLite uses ids again if the newest events are deleted; then the
  newest searched row is missing or another one, and all tables are scanned. So they are after an
  archive that deleted events which were not searched;
- on PostgreSQL among those that this process appended to, and once a second among those marked
  `behind` whose version is another than when they were last searched. A mark is kept for at least
  a minute (`projector.lagging.POLLS_PER_UNMARK`), so all tables are scanned if nothing was searched
  for `GAP_MS`.

`FeedHead` is how far this process knows the feed to reach, its newest rows, and its growth.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from dealer.eventlog.protocols import Connection
from dealer.feed.positions import Place

GAP_MS = 20_000
"""Milliseconds without a search, after which all tables are scanned, on PostgreSQL."""

RECORD_MS = 5_000
"""Milliseconds after which a search that found nothing is recorded, on PostgreSQL."""

EVENTS = 5000
"""Events that a slice searches on SQLite."""

STREAMS = 500
"""Tables that a slice of a scan compares."""

VERSIONS = 256
"""The most versions of one row of `feed`."""

_STATE = "SELECT seq, event, event_stream, event_version, scan, at FROM feed_state WHERE id = 1"
_NOW = "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)"
_LOCK = f"SELECT seq, event, event_stream, event_version, scan, at, {_NOW} FROM feed_state"
_SAVE = (
    "UPDATE feed_state SET seq = ?, event = ?, event_stream = ?, event_version = ?, scan = ?,"
    " at = ? WHERE id = 1"
)
_SAME = "SELECT 1 FROM event WHERE id = ? AND stream = ? AND version = ?"
_NEWEST = "SELECT id, stream, version FROM event ORDER BY id DESC LIMIT 1"
_LAST = "SELECT id, stream, version FROM event WHERE id > ? ORDER BY id LIMIT 1 OFFSET ?"
_NEW = "SELECT DISTINCT stream FROM event WHERE id > ? AND id <= ?"
_PAGE = "SELECT id FROM stream WHERE id > ? ORDER BY id LIMIT ?"
_MARKED = "SELECT id, version FROM stream WHERE behind"
# At most up to the newest row that the table's version covers: if the log is damaged, either may
# be any number. The rows of an archived table have left the log.
_LAGGING = """
SELECT s.id, s.table_id, s.last, h.last, t.key FROM (
    SELECT id, table_id, CASE
            WHEN EXISTS (SELECT 1 FROM archived a WHERE a.stream = stream.id) THEN version
            ELSE (SELECT max(e.version) FROM event e
                WHERE e.stream = stream.id AND e.version <= stream.version) END AS last,
        (SELECT max(seq) FROM feed WHERE feed.of_stream = stream.id) AS newest
    FROM stream WHERE id IN ({})
) s LEFT JOIN feed h ON h.seq = s.newest LEFT JOIN service_table t ON t.table_id = s.table_id
WHERE s.last > coalesce(h.last, 0) ORDER BY s.id"""
# PostgreSQL in two parts: in a log in shards the feed is not where the tables are. No EXISTS, for
# which PostgreSQL may read all of `archived` into a hash for a few tables.
_REACHED = """
SELECT id, table_id, CASE
        WHEN (SELECT a.stream FROM archived a WHERE a.stream = stream.id) IS NOT NULL THEN version
        ELSE (SELECT max(e.version) FROM event e
            WHERE e.stream = stream.id AND e.version <= stream.version) END AS last
FROM stream WHERE id = ANY(?)"""
_BEHIND = """
SELECT s.id, s.table_id, s.last, h.last, t.key
FROM unnest(CAST(? AS bytea[]), CAST(? AS bytea[]), CAST(? AS bigint[])) AS s (id, table_id, last)
LEFT JOIN LATERAL (
    SELECT f.last FROM feed f WHERE f.of_stream = s.id ORDER BY f.seq DESC LIMIT 1
) h ON true LEFT JOIN service_table t ON t.table_id = s.table_id
WHERE s.last > coalesce(h.last, 0) ORDER BY s.id"""
_ADD = "INSERT INTO feed (seq, of_stream, first, last, key) VALUES (?, ?, ?, ?, ?)"
_ADD_MANY = (
    "INSERT INTO feed (seq, of_stream, first, last, key) SELECT * FROM unnest(CAST(? AS bigint[]),"
    " CAST(? AS bytea[]), CAST(? AS bigint[]), CAST(? AS bigint[]), CAST(? AS bigint[]))"
)


class FeedRow(NamedTuple):
    """A row of `feed`, with the table's id of 16 bytes; `key` opened the table."""

    seq: int
    table: bytes
    first: int
    last: int
    key: int | None


class Slice(NamedTuple):
    """What a slice did: the newest number, the rows it added, and whether there is more to do.

    `busy` if another process is sequencing, so that nothing was searched. `searched` are the
    versions of the marked tables, which are in the feed once the slice is committed.
    """

    seq: int
    rows: list[FeedRow]
    more: bool = False
    busy: bool = False
    searched: Mapping[bytes, int] = {}


class _State(NamedTuple):
    seq: int
    event: int
    stream: int
    version: int
    scan: Any
    at: int


def sequence(
    connection: Connection,
    *,
    hinted: Collection[bytes],
    poll: bool,
    searched: Mapping[bytes, int],
) -> Slice:
    """Add the next events to the feed, in the caller's transaction, which must be durable.

    `hinted` are tables that this process appended to; with `poll` those of others are searched,
    too, except at the versions that a slice `searched` before. Raises the driver's errors.
    """
    if connection.dialect.name == "postgresql":
        return _on_postgres(connection, hinted, searched, poll=poll)
    return _on_sqlite(connection)


def _on_sqlite(connection: Connection) -> Slice:
    execute = connection.exec_driver_sql
    before = state = _State(*execute(_STATE).one())
    place = state[1:4]
    if not any(place) or execute(_SAME, place).first() is None:
        event, stream, version = execute(_NEWEST).first() or (0, 0, 0)
        state = _State(state.seq, event, stream, version, 0, state.at)
    last = execute(_LAST, (state.event, EVENTS - 1)).first()
    event, stream, version = last or execute(_NEWEST).first() or (0, 0, 0)
    streams = [found for (found,) in execute(_NEW, (state.event, event))]
    state = state._replace(event=event, stream=stream, version=version)
    state, scanned = _scan(connection, state)
    rows = _add(connection, state.seq, [*streams, *scanned])
    if rows:
        state = state._replace(seq=rows[-1].seq)
    if state != before:
        execute(_SAVE, state)
    more = last is not None or state.scan is not None
    return Slice(state.seq, rows, more)


def _on_postgres(
    connection: Connection, hinted: Collection[bytes], searched: Mapping[bytes, int], *, poll: bool
) -> Slice:
    execute = connection.exec_driver_sql
    locked = execute(f"{_LOCK} WHERE id = 1 FOR UPDATE SKIP LOCKED").first()
    if locked is None:
        (seq, *_) = execute(_STATE).one()
        return Slice(seq, [], busy=True, searched=searched)
    state, now = _State(*locked[:6]), locked[6]
    before = state
    gap = not 0 <= now - state.at < GAP_MS
    if gap:
        state = state._replace(scan=b"")
    state, scanned = _scan(connection, state)
    marked = dict(map(tuple, execute(_MARKED))) if poll else searched
    changed = [stream for stream, version in marked.items() if searched.get(stream) != version]
    rows = _add(connection, state.seq, [*dict.fromkeys([*hinted, *scanned, *changed])])
    if rows:
        state = state._replace(seq=rows[-1].seq)
    if gap or state != before or (poll and now - state.at >= RECORD_MS):
        # A search of the hinted tables alone is none of the others.
        execute(_SAVE, state._replace(at=now if gap or poll else state.at))
    return Slice(state.seq, rows, state.scan is not None, searched=marked)


def _scan(connection: Connection, state: _State) -> tuple[_State, list[Any]]:
    """The next tables of a scan of all, if one is under way."""
    if state.scan is None:
        return state, []
    found = connection.exec_driver_sql(_PAGE, (state.scan, STREAMS)).fetchall()
    streams = [stream for (stream,) in found]
    done = len(streams) < STREAMS
    return state._replace(scan=None if done else streams[-1]), streams


def _add(connection: Connection, seq: int, streams: Sequence[Any]) -> list[FeedRow]:
    """Add rows with the numbers after `seq` for the tables among these that have new events."""
    rows: list[FeedRow] = []
    stored: list[tuple[int, Any, int, int, int | None]] = []
    for stream, table, version, last, key in _lagging(connection, streams):
        for first in range((last or 0) + 1, version + 1, VERSIONS):
            seq += 1
            end = min(first + VERSIONS - 1, version)
            rows.append(FeedRow(seq, bytes(table), first, end, key))
            stored.append((seq, stream, first, end, key))
    if stored:
        if connection.dialect.name == "postgresql":
            columns = tuple(list(column) for column in zip(*stored, strict=True))
            connection.exec_driver_sql(_ADD_MANY, columns)
        else:
            connection.exec_driver_sql(_ADD, stored)
    return rows


def _lagging(connection: Connection, streams: Sequence[Any]) -> Iterable[Sequence[Any]]:
    """(stream, table id, version, last version in the feed or None, key) of tables to be added."""
    execute = connection.exec_driver_sql
    if connection.dialect.name == "postgresql":
        reached = execute(_REACHED, (list(streams),)).fetchall() if streams else ()
        if reached:
            columns = tuple(list(column) for column in zip(*reached, strict=True))
            yield from execute(_BEHIND, columns).fetchall()
        return
    for start in range(0, len(streams), STREAMS):
        part = tuple(dict.fromkeys(streams[start : start + STREAMS]))
        yield from execute(_LAGGING.format(",".join("?" * len(part))), part).fetchall()


ROWS = 10_000
"""Rows of `feed` that are kept while there are followers: they are spared the database."""


class FeedHead:
    """The newest row of `feed` that this process knows of; used on the event loop.

    `seq` is its number, `followers` how many followers wait for more. `listeners` are called when
    it grows, and when the followers have to check whether they may go on.
    """

    def __init__(self) -> None:
        self.seq = 0
        self.followers = 0
        self.closing = False
        self.listeners: list[Callable[[], None]] = []
        self._changed = asyncio.Event()
        self._rows: deque[FeedRow] = deque(maxlen=ROWS)  # without a gap

    def add_rows(self, rows: Sequence[FeedRow]) -> None:
        """Remember the rows of a slice; those before a gap are forgotten, without followers all."""
        if not self.followers or (rows and self._rows and rows[0].seq != self._rows[-1].seq + 1):
            self._rows.clear()
        if self.followers:
            self._rows.extend(rows)

    def rows_from(self, place: Place, *, limit: int) -> list[FeedRow] | None:
        """At most `limit` rows from this place on; None if they are not all in memory."""
        rows = self._rows
        if rows and rows[-1].seq < self.seq:
            return None  # another process has written the newest ones
        if not rows or not rows[0].seq <= place.seq <= rows[-1].seq + 1:
            return None
        start = place.seq - rows[0].seq
        return list(islice(rows, start, start + limit))

    def advance(self, seq: int) -> None:
        """The feed reaches up to row `seq`."""
        if seq > self.seq:
            self.seq = seq
            self.wake()

    def wake(self) -> None:
        """Let all followers check their state."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        for listener in tuple(self.listeners):
            listener()

    def close(self) -> None:
        """Let all followers end: the server drains."""
        self.closing = True
        self.wake()

    async def wait(self, seq: int, *, seconds: float) -> bool:
        """Wait until `wake`, unless a row after `seq` is known; False after so many seconds."""
        if self.seq > seq or self.closing:
            return True
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
                return True
        return False
