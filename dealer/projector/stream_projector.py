"""Projects one table's next events, and stops at an event that cannot be read or applied.

What is in memory of a stream, its state and the events of its open round, belongs to one version
and is used at that version only: whatever another process has projected since, the log is read.

A RoundClosed is applied once its round was replayed with its hidden parts, out of memory if this
process wrote all of them. A long round is replayed over several slices, each of which writes a part
of its swaps; until the last one has been committed the projected version stays before the
RoundClosed, so that after a crash they are written again.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import Connection

from dealer.errors import DealerError
from dealer.eventlog import EventRecord
from dealer.eventlog.stored_form import decode_public
from dealer.game.events import Event, RoundClosed, RoundOpened
from dealer.game.size import size_of
from dealer.game.state import Table
from dealer.projector.changes import Changes
from dealer.projector.fold import TimedEvent, fold
from dealer.projector.history import public_state, read_events
from dealer.projector.recent_events import public_event
from dealer.projector.round_events import RoundEvents
from dealer.projector.round_reveal import RoundReveal
from dealer.projector.types import InconsistentEvent, Number, StreamKey
from dealer.proof.codec import decode


def read_record(record: EventRecord) -> Event:
    """The event of a row, without its hidden part.

    Raises UnknownEvent, or ValueError, KeyError or TypeError.
    """
    kind, public = decode_public(record.type, record.public, record.hidden)
    return decode(kind, record.schema, json.loads(public), {})


class Stopped(NamedTuple):
    """Why the projection of a table stopped; all events up to `version` are in the read models."""

    table: str
    version: int
    sentence: str


class Reached(NamedTuple):
    """The version up to which events were projected."""

    version: int
    stopped: Stopped | None = None


REVEALED = 512
"""Events of closed rounds that are replayed per slice: some six milliseconds with their rows, and
twice that if they are not in memory."""

BYTES = 16 * 2**20
"""Bound on the estimated size of what is cached: some thousand tables of 52 cards."""


class Cached(NamedTuple):
    """The state of a stream, and its open round's events; None unless this process wrote all."""

    table: Table
    events: RoundEvents | None
    size: int


class StreamProjector:
    """Folds events of streams, with an LRU cache of what the fold needs of `tables` streams.

    It takes at most `bound` bytes, not counting the stream that was used last. It is used only if
    its version matches, so it does no harm if its transaction was rolled back.
    """

    def __init__(self, *, tables: int, bound: int = BYTES, revealed: int = REVEALED) -> None:
        self._tables = tables
        self._bound = bound
        self._revealed = revealed
        self._revealed_left = revealed
        self.postponed = False
        self._reveals: dict[Number, RoundReveal] = {}
        self._cached: OrderedDict[Number, Cached] = OrderedDict()
        self.bytes = 0

    @property
    def revealing(self) -> Number | None:
        """A stream whose closed round is partly replayed: the next slice continues with it."""
        return next(iter(self._reveals), None)

    def begin_slice(self) -> None:
        """Allow the replay of the next `revealed` events; `postponed` says whether more are due."""
        self._revealed_left = self._revealed
        self.postponed = False

    def forget_reveals(self) -> None:
        """Replay rounds from their beginning: what a slice has written was not committed."""
        self._reveals.clear()

    def begin_between_rounds(self, number: Number, version: int) -> None:
        """Say that no round is open at `version`, so that the state need not be read."""
        self._put(number, Table(version=version), None)

    def _take(
        self, connection: Connection, number: Number, version: int
    ) -> tuple[Table, RoundEvents | None]:
        """State and events at `version`, out of the cache if it has them, else from the log."""
        cached = self._cached.pop(number, None)
        if cached is not None:
            self.bytes -= cached.size
            if cached.table.version == version:
                return cached.table, cached.events
        return Table() if version == 0 else public_state(connection, number, version), None

    def _put(self, number: Number, table: Table, events: RoundEvents | None) -> None:
        if table.round is not None:
            # The fold needs neither, and they take half of the memory.
            table.round.known.clear()
            table.round.sealed.clear()
        size = size_of(table) + (0 if events is None else events.bytes)
        self._cached[number] = Cached(table, events, size)
        self.bytes += size
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
        into: Changes,
    ) -> Reached:
        """Add to `into` the changes by `rows`, the events after version `after`, in any form."""
        version = after
        while rows:
            reached = self._project_part(connection, stream, version, rows, into)
            if reached.stopped is not None or reached.version == version:
                return reached
            rows = rows[reached.version - version :]
            version = reached.version
        return Reached(version)

    def _project_part(
        self,
        connection: Connection,
        stream: StreamKey,
        after: int,
        rows: Sequence[EventRecord],
        into: Changes,
    ) -> Reached:
        """Project `rows` to the end of a round, so that a later fault does not undo its replay."""
        table = stream.table.hex()
        changes = Changes()
        # Removed from the cache while it changes: after an error its state is undefined.
        try:
            state, events = self._take(connection, stream.number, after)
        except _UNREADABLE as error:
            return Reached(after, Stopped(table, after, _unreadable(after, error)))
        part, events, stopped = self._read(connection, stream, state, events, rows, changes)
        try:
            changes.extend(fold(stream, state, part))
        except InconsistentEvent as fault:
            stopped = Stopped(table, fault.version - 1, str(fault))
            fitting = rows[: stopped.version - after]
            if fitting:
                self._project_part(connection, stream, after, fitting, into)
            return Reached(stopped.version, stopped)
        into.extend(changes)
        self._put(stream.number, state, events)
        return Reached(state.version, stopped)

    def _read(
        self,
        connection: Connection,
        stream: StreamKey,
        state: Table,
        kept: RoundEvents | None,
        rows: Sequence[EventRecord],
        into: Changes,
    ) -> tuple[list[TimedEvent], RoundEvents | None, Stopped | None]:
        """The events of `rows`, which follow `state`, up to a RoundClosed or before one that has to
        wait; with what is kept of the round that is open then, and why the rest cannot be read.
        """
        timed_events: list[TimedEvent] = []
        table = stream.table.hex()
        opened = None if state.round is None else state.round_versions[-1]
        for version, row in enumerate(rows, state.version + 1):
            if row.version != version:
                missing = f"Version {version} is missing in the log; restore it from a backup."
                return timed_events, kept, Stopped(table, version - 1, missing)
            try:
                whole = row.event  # None unless this process wrote it
                event = read_record(row) if whole is None else public_event(whole)
                if isinstance(event, RoundClosed):
                    if not self._revealed_left:
                        self.postponed = True
                        return timed_events, kept, None
                    reveal = self._advance(
                        connection,
                        stream,
                        event,
                        closed=version,
                        opened=opened,
                        kept=kept,
                        into=into,
                    )
                    if self.postponed:
                        return timed_events, kept, None
                    return [*timed_events, (event, row.at, reveal)], None, None
                if isinstance(event, RoundOpened):
                    opened = version
                    kept = None if whole is None else RoundEvents(version)
                if whole is None:
                    kept = None
                elif kept is not None:
                    kept.append(whole)
                timed_events.append((event, row.at, None))
            except _UNREADABLE as error:
                self._reveals.pop(stream.number, None)
                return timed_events, kept, Stopped(table, version - 1, _unreadable(version, error))
        return timed_events, kept, None

    def _advance(
        self,
        connection: Connection,
        stream: StreamKey,
        event: RoundClosed,
        closed: int,
        *,
        opened: int | None,
        kept: RoundEvents | None,
        into: Changes,
    ) -> RoundReveal | None:
        """Replay more of the round that `event` closes; None if no round is open there."""
        if opened is None:
            return None
        reveal = self._reveals.pop(stream.number, None)
        if reveal is None or reveal.closed != closed:
            reveal = RoundReveal(stream.number, opened=opened, closed=closed, secret=event.secret)
        first = reveal.reached + 1
        last = min(closed - 1, reveal.reached + self._revealed_left)
        self._revealed_left -= last - reveal.reached
        if kept is not None:
            reveal.add(kept.range(first, last), into)
        else:
            secrets = {event.round: reveal.secret}
            read = read_events(connection, stream, first=first, last=last, secrets=secrets)
            reveal.add(((version, event) for version, _, event in read), into)
        if reveal.reached < last:
            raise InconsistentEvent(closed, f"version {reveal.reached + 1} is missing")
        self.postponed = not reveal.complete
        if self.postponed:
            self._reveals[stream.number] = reveal
        return reveal


_UNREADABLE = (DealerError, ValueError, KeyError, IndexError, TypeError)
"""What reading and replaying events raises, InconsistentEvent among them."""


def _unreadable(version: int, error: Exception) -> str:
    if isinstance(error, (DealerError, InconsistentEvent)):
        return str(error)
    return f"Version {version} cannot be read ({error}); restore it from a backup."
