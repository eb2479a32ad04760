"""Projects one table's next events, and stops at an event that cannot be read or applied.

What is open is folded event by event in its public state; a closed round is folded as a whole,
whether it was projected while it was open or not. A long round takes several slices:
until the last one has been committed the projected version stays where it was, so that after a
crash its rows are written again.

The state in memory belongs to one version and is used at that version only: whatever another
process has projected since, the log is read.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from dealer.errors import DatabaseDamaged, DealerError
from dealer.eventlog import EventRecord
from dealer.eventlog.protocols import Connection
from dealer.eventlog.stored_form import decode_public
from dealer.game.events import SeatGivenUp
from dealer.game.size import size_of
from dealer.game.state import Player, Table, evolve
from dealer.projector.changes import Changes, InconsistentEvent, StreamKey
from dealer.projector.closed_round import ClosedRound
from dealer.projector.fold import TimedEvent, fold
from dealer.projector.models import StreamId
from dealer.proof.codec import SCHEMAS, decode

COLUMNS = "version, type, schema, at, public, commitment, hidden"
"""The columns of `event` of which `records` makes EventRecords."""

LONGEST_SEARCH = 50_000
"""Events that are searched for the end of a round: some 15 ms."""

_ROWS = f"SELECT {COLUMNS} FROM event WHERE stream = ? AND version BETWEEN ? AND ? ORDER BY version"
_CLOSED = (
    "SELECT min(version) FROM event WHERE stream = ? AND version BETWEEN ? AND ?"
    " AND type = 'RoundClosed'"
)
_OPENED = (
    "SELECT version, type FROM event WHERE stream = ? AND version < ?"
    " AND type IN ('RoundOpened', 'RoundClosed') ORDER BY version DESC LIMIT 1"
)
_BACKWARDS = (
    "SELECT version, type, schema, at, public, hidden FROM event"
    " WHERE stream = ? AND version <= ? ORDER BY version DESC LIMIT ?"
)
_CHUNK = 256


def records(rows: Iterable[Any]) -> list[EventRecord]:
    """The events of rows that have `COLUMNS`."""
    found = []
    for row in rows:
        type, public = decode_public(row.type, row.public, row.hidden)
        found.append(
            EventRecord(row.version, type, row.schema, row.at, public, row.commitment, row.hidden)
        )
    return found


class Stopped(NamedTuple):
    """Why the projection of a table stopped; all events up to `version` are in the read models."""

    table: str
    version: int
    sentence: str


class Reached(NamedTuple):
    """The version up to which events were projected."""

    version: int
    stopped: Stopped | None = None


EVENTS = 1024
"""Events that are folded per slice, in some ten milliseconds with their rows."""

BYTES = 16 * 2**20
"""Bound on the estimated size of what is cached: some two thousand tables of 52 cards."""

NO_FACE = 125
"""Bytes by which a card takes less than `size_of` says, because its face is not known here."""

KEPT_EVENTS = 131_072
"""Bound on the events of open rounds that are kept for their ends, some 20 MB."""


class Cached(NamedTuple):
    """The public state of a stream, and its estimated size in bytes."""

    table: Table
    size: int


class OpenRounds:
    """The events of open rounds that this process wrote, complete, until the round is closed.

    A closed round is folded from them, without reading and decrypting what was in memory before. At
    most `KEPT_EVENTS`, and so many more of one table; the oldest rounds are forgotten first.
    """

    def __init__(self) -> None:
        self._count = 0
        # By stream: the version of RoundOpened, and the events from it on.
        self._rounds: OrderedDict[StreamId, tuple[int, list[TimedEvent]]] = OrderedDict()

    def add(self, stream_id: StreamId, rows: Sequence[EventRecord]) -> None:
        """Add the next events of a stream, of which none closes a round."""
        first = rows[0].version
        opened, events = self._rounds.get(stream_id, (0, []))
        if rows[0].type == "RoundOpened":
            self.forget(stream_id)
            events = []
            self._rounds[stream_id] = first, events
        elif not events or opened + len(events) != first:
            self.forget(stream_id)
            return
        for row in rows:
            if row.event is None:  # another process wrote it: its hidden part is not known
                self.forget(stream_id)
                return
            events.append((row.event, row.at))
            self._count += 1
        while self._count > KEPT_EVENTS and len(self._rounds) > 1:
            self.forget(next(iter(self._rounds)))

    def before(self, stream_id: StreamId, version: int) -> list[EventRecord]:
        """All events of the open round before this version; none if one of them is missing."""
        opened, events = self._rounds.get(stream_id, (0, []))
        if opened + len(events) != version:
            return []
        records = []
        for number, (event, at) in enumerate(events, opened):
            kind = type(event).__name__
            records.append(EventRecord(number, kind, SCHEMAS[kind], at, "", event=event))
        return records

    def forget(self, stream_id: StreamId) -> None:
        """Keep nothing of this stream."""
        _, events = self._rounds.pop(stream_id, (0, []))
        self._count -= len(events)

    def clear(self) -> None:
        """Keep nothing."""
        self._rounds.clear()
        self._count = 0


class StreamProjector:
    """Folds events of streams, with an LRU cache of the public state of `tables` streams.

    It takes at most `bound` bytes, not counting the stream that was used last. It is used only if
    its version matches, so it does no harm if its transaction was rolled back. A slice folds
    all events of open rounds, and of closed ones as many as make it `events`; `slice_full` says
    whether more are due.
    """

    def __init__(self, *, tables: int, bound: int = BYTES, events: int = EVENTS) -> None:
        self._tables = tables
        self._bound = bound
        self._events = events
        self._left = events
        self.slice_full = False
        # Closed rounds that were folded in part.
        self._folding: dict[StreamId, ClosedRound] = {}
        # Closed rounds that cannot be folded, by the version of their end, with the reason: their
        # events are projected one by one up to that, or to the one that is wrong.
        self._refused: dict[tuple[StreamId, int], str] = {}
        self._cached: OrderedDict[StreamId, Cached] = OrderedDict()
        self._open_rounds = OpenRounds()
        self.bytes = 0

    @property
    def folding(self) -> StreamId | None:
        """A stream whose closed round is partly folded: the next slice continues with it."""
        return next(iter(self._folding), None)

    @property
    def folded_events(self) -> int:
        """The events of closed rounds that were folded and are not counted as projected yet."""
        return sum(each.table.version - each.after for each in self._folding.values())

    def begin_slice(self) -> None:
        """Allow `events` more events."""
        self._left = self._events
        self.slice_full = False

    def forget_rounds(self) -> None:
        """Fold rounds from their beginning: what a slice has written was not committed."""
        self._folding.clear()
        self._refused.clear()
        self._open_rounds.clear()

    def _take(self, connection: Connection, stream_id: StreamId, version: int) -> Table:
        """The state at `version`, out of the cache if it has it, else from the log."""
        cached = self._cached.pop(stream_id, None)
        if cached is not None:
            self.bytes -= cached.size
            if cached.table.version == version:
                return cached.table
        return Table() if version == 0 else _public_state(connection, stream_id, version)

    def _put(self, stream_id: StreamId, table: Table) -> None:
        size = size_of(table)
        if table.round is not None:
            # The fold needs neither, and they take half of the memory.
            table.round.known.clear()
            table.round.sealed.clear()
            size -= NO_FACE * len(table.round.opened)
        replaced = self._cached.pop(stream_id, None)
        self._cached[stream_id] = Cached(table, size)
        self.bytes += size - (0 if replaced is None else replaced.size)
        while len(self._cached) > self._tables or (
            self.bytes > self._bound and len(self._cached) > 1
        ):
            _, dropped = self._cached.popitem(last=False)
            self.bytes -= dropped.size

    def project(
        self,
        connection: Connection,
        stream: StreamKey,
        *,
        after: int,
        rows: Sequence[EventRecord],
        upto: int,
        into: Changes,
    ) -> Reached:
        """Add to `into` the changes by `rows`, the events after version `after`.

        It stops if there are none: then they are missing in the log. The rest of a closed round is
        read from the log if its end is at most at version `upto`.
        """
        version, end = after, after + len(rows)
        if not rows:
            return Reached(version, _missing(stream, version))
        while version < end:
            rest = rows[version - after :]
            if rest[0].version != version + 1:
                return Reached(version, _missing(stream, version))
            found = self._closed_round(connection, stream.id, version, rest, upto)
            if found is not None and (stream.id, found.closed) not in self._refused:
                if not self._left:
                    self.slice_full = True
                    return Reached(version)
                version = self._fold_closed(connection, stream, found, version, rest, into)
            elif rest[0].type == "RoundClosed":
                refused = self._refused[stream.id, version + 1]
                return Reached(version, Stopped(stream.table.hex(), version, refused))
            else:
                part = rest[: _open_events(rest)]
                self._left = max(0, self._left - len(part))
                reached = self._fold_open(connection, stream, version, part, into)
                if reached.stopped is not None:
                    return reached
                version = reached.version
        return Reached(version)

    def _closed_round(
        self,
        connection: Connection,
        stream_id: StreamId,
        version: int,
        rest: Sequence[EventRecord],
        upto: int,
    ) -> _Span | None:
        """The closed round that `rest`, the events after `version`, begin in or with, if any."""
        folding = self._folding.get(stream_id)
        if folding is not None and folding.after == version:
            return _Span(folding.opened, folding.closed)
        begins = rest[0].type == "RoundOpened"
        closed = next((row.version for row in rest if row.type == "RoundClosed"), None)
        if not begins:
            if closed is None or any(row.type == "RoundOpened" for row in rest[: closed - version]):
                return None
            opened = self._opened(connection, stream_id, version, closed)
            return _Span(opened, closed)
        last = rest[-1].version
        if closed is None and upto > last:
            bounds = (stream_id, last + 1, min(upto, last + LONGEST_SEARCH))
            closed = connection.exec_driver_sql(_CLOSED, bounds).scalar()
        return None if closed is None else _Span(version + 1, closed)

    def _opened(
        self, connection: Connection, stream_id: StreamId, version: int, closed: int
    ) -> int:
        """The version of the RoundOpened of a round that was open at `version`; 0 if none was."""
        cached = self._cached.get(stream_id)
        if cached is not None and cached.table.version == version:
            return cached.table.round_versions[-1] if cached.table.round is not None else 0
        found = connection.exec_driver_sql(_OPENED, (stream_id, closed)).first()
        return found[0] if found is not None and found[1] == "RoundOpened" else 0

    def _fold_closed(
        self,
        connection: Connection,
        stream: StreamKey,
        span: _Span,
        version: int,
        rest: Sequence[EventRecord],
        into: Changes,
    ) -> int:
        """Fold a closed round, or more of it; the version that was reached.

        If it is impossible, the round is `_refused` from then on.
        """
        stream_id, (opened, closed) = stream.id, span
        rest = [*self._open_rounds.before(stream_id, rest[0].version), *rest]
        try:
            folding = self._folding.pop(stream_id, None)
            if folding is None or (folding.after, folding.closed) != (version, closed):
                if not opened:
                    raise ValueError("a round's events begin with RoundOpened")
                (last,) = self._rows(connection, stream_id, closed, closed, rest)
                folding = ClosedRound(stream, opened=opened, last=last, after=version)
            first = folding.table.version + 1
            upto = min(closed, folding.table.version + self._left)
            self._left -= upto - first + 1
            folding.add(self._rows(connection, stream_id, first, upto, rest), into)
        except _UNREADABLE as error:
            said = error if isinstance(error, DealerError) else InconsistentEvent(closed, error)
            self._refused[stream_id, closed] = str(said)
            return version
        if not folding.complete:
            self._folding[stream_id] = folding
            return version
        self._open_rounds.forget(stream_id)
        self._put(stream_id, Table(version=closed))
        return closed

    def _rows(
        self,
        connection: Connection,
        stream_id: StreamId,
        first: int,
        last: int,
        known: Sequence[EventRecord],
    ) -> Sequence[EventRecord]:
        """Versions first … last, out of `known` if it has all of them, else from the log."""
        begin = first - known[0].version
        if begin >= 0 and last <= known[-1].version:
            return known[begin : begin + last - first + 1]
        return records(connection.exec_driver_sql(_ROWS, (stream_id, first, last)).fetchall())

    def _fold_open(
        self,
        connection: Connection,
        stream: StreamKey,
        version: int,
        part: Sequence[EventRecord],
        into: Changes,
    ) -> Reached:
        """Project the next events, which close no round."""
        table = stream.table.hex()
        # Removed from the cache while it changes: after an error its state is undefined.
        try:
            state = self._take(connection, stream.id, version)
        except _UNREADABLE as error:
            return Reached(version, Stopped(table, version, _unreadable(version, error)))
        events, stopped = _read(stream, version, part)
        try:
            into.extend(fold(stream, state, events))
        except InconsistentEvent as fault:
            stopped = Stopped(table, fault.version - 1, str(fault))
            fitting = part[: stopped.version - version]
            if fitting:
                self._fold_open(connection, stream, version, fitting, into)
            return Reached(stopped.version, stopped)
        self._open_rounds.add(stream.id, part)
        self._put(stream.id, state)
        return Reached(state.version, stopped)


def _public_state(connection: Connection, stream: StreamId, version: int) -> Table:
    """The table's public state at `version`, rebuilt from the beginning of its open round.

    Between rounds only the version is set: a fold needs no more. Raises UnknownEvent, and
    DatabaseDamaged if a version is missing.
    """
    rows = list(_of_open_round(connection, stream, version))
    table = Table(version=version - len(rows))
    for found, kind, schema, at, public, hidden in reversed(rows):
        if found != table.version + 1:
            raise DatabaseDamaged(
                f"A version between {found} and {version} is missing in the log; restore the "
                "database from a backup."
            )
        kind, public = decode_public(kind, public, hidden)
        event = decode(kind, schema, json.loads(public), {})
        if isinstance(event, SeatGivenUp):  # who may have sat down before the round opened
            table.seats.setdefault(event.seat, Player("", None, 0))
        evolve(table, event, at)
    return table


def _of_open_round(
    connection: Connection, stream: StreamId, version: int
) -> Sequence[Sequence[Any]]:
    """The events back to the RoundOpened of the open round at `version`, newest first; or none."""
    rows: list[Sequence[Any]] = []
    while True:
        before = version - len(rows)
        found = connection.exec_driver_sql(_BACKWARDS, (stream, before, _CHUNK)).fetchall()
        for row in found:
            if row[1] == "RoundClosed":
                return []
            rows.append(row)
            if row[1] == "RoundOpened":
                return rows
        if len(found) < _CHUNK:
            return []


class _Span(NamedTuple):
    """The versions of the RoundOpened (0 if there is none) and RoundClosed of a round."""

    opened: int
    closed: int


def _open_events(rest: Sequence[EventRecord]) -> int:
    """How many of these events come before the next end of a round, or the next beginning."""
    for index, row in enumerate(rest):
        if row.type == "RoundClosed" or (row.type == "RoundOpened" and index):
            return index
    return len(rest)


def _read(
    stream: StreamKey, after: int, rows: Sequence[EventRecord]
) -> tuple[list[TimedEvent], Stopped | None]:
    """The events of `rows` up to one that cannot be read, and why."""
    found: list[TimedEvent] = []
    for version, row in enumerate(rows, after + 1):
        if row.version != version:
            return found, _missing(stream, version - 1)
        try:
            event = row.event  # if this process wrote it; the fold leaves its hidden part out
            if event is None:
                event = decode(row.type, row.schema, json.loads(row.public), {})
        except _UNREADABLE as error:
            reason = _unreadable(version, error)
            return found, Stopped(stream.table.hex(), version - 1, reason)
        found.append((event, row.at))
    return found, None


_UNREADABLE = (DealerError, ValueError, KeyError, IndexError, TypeError)
"""What reading and folding events raises, InconsistentEvent among them."""


def _missing(stream: StreamKey, version: int) -> Stopped:
    sentence = f"Version {version + 1} is missing in the log; restore it from a backup."
    return Stopped(stream.table.hex(), version, sentence)


def _unreadable(version: int, error: Exception) -> str:
    if isinstance(error, (DealerError, InconsistentEvent)):
        return str(error)
    return f"Version {version} cannot be read ({error}); restore it from a backup."
