"""Projects one table's next events, and stops at an event that cannot be read or applied.

A RoundClosed is applied once its round was replayed with its hidden parts, out of memory if this
process wrote them. A long round is replayed over several slices, each of which writes a part of its
swaps; until the last one has been committed the projected version stays before the RoundClosed, so
that after a crash they are written again.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from sqlalchemy import Connection

from dealer.errors import DealerError
from dealer.eventlog.short_form import decode_public
from dealer.game.events import Event, RoundClosed
from dealer.game.size import size_of
from dealer.game.state import Table
from dealer.projector.changes import Changes
from dealer.projector.fold import TimedEvent, fold
from dealer.projector.history import last_round_opened, public_state, read_events
from dealer.projector.recent_events import RecentEvent, public_event
from dealer.projector.round_events import RoundEvents
from dealer.projector.round_reveal import RoundReveal
from dealer.projector.types import InconsistentEvent, Number, StreamKey
from dealer.proof.codec import decode

EventRow = tuple[int, str, int, int, str, bytes | None]
"""(version, type, schema, at, public, hidden) of a stored event, in any form."""

Read = Callable[[Any], tuple[int, Event]]
"""Reads (at, event), without the hidden part, of what `project` is given."""


def read_row(row: EventRow) -> tuple[int, Event]:
    """Decode an EventRow; raises UnknownEvent, or ValueError, KeyError or TypeError."""
    _, kind, schema, at, public, hidden = row
    kind, public = decode_public(kind, public, hidden)
    return at, decode(kind, schema, json.loads(public), {})


def read_recent(recent: RecentEvent) -> tuple[int, Event]:
    """The same of an event that this process wrote."""
    return recent.at, public_event(recent.event)


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

BYTES = 8 * 2**20
"""Bound on the estimated size of cached states: some thousand tables of 52 cards."""


class StreamProjector:
    """Folds events of streams, with an LRU cache of the states of `tables` streams.

    The states take at most `bound` bytes, not counting the one that was used last. A cached state
    is used only if its version matches, so it does no harm if its transaction was rolled back.
    """

    def __init__(self, *, tables: int, bound: int = BYTES, revealed: int = REVEALED) -> None:
        self._tables = tables
        self._bound = bound
        self._revealed = revealed
        self._revealed_left = revealed
        self.postponed = False
        self.round_events = RoundEvents()
        self._reveals: dict[Number, RoundReveal] = {}
        self._states: OrderedDict[Number, tuple[Table, int]] = OrderedDict()
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
        self._put(number, Table(version=version))

    def _take(self, number: Number) -> Table | None:
        table, size = self._states.pop(number, (None, 0))
        self.bytes -= size
        return table

    def _put(self, number: Number, table: Table) -> None:
        if table.round is not None:
            # The fold needs neither, and they take half of the memory.
            table.round.known.clear()
            table.round.sealed.clear()
        size = size_of(table)
        self._states[number] = table, size
        self.bytes += size
        while len(self._states) > self._tables or (
            self.bytes > self._bound and len(self._states) > 1
        ):
            _, (_, size) = self._states.popitem(last=False)
            self.bytes -= size

    def project(
        self,
        connection: Connection,
        stream: StreamKey,
        *,
        after: int,
        rows: Sequence[Any],
        into: Changes,
        read: Read = read_row,
    ) -> Reached:
        """Add to `into` the changes by `rows`, the events after version `after`.

        Each of `rows` is an EventRow, or what `read` takes.
        """
        timed_events, stopped = self._read(connection, stream, after, rows, into, read)
        # Removed from the cache while it changes: after an error its state is undefined.
        table = self._take(stream.number)
        try:
            if after == 0:
                table = Table()
            elif table is None or table.version != after:
                table = public_state(connection, stream.number, after)
            into.extend(fold(stream, table, timed_events))
        except InconsistentEvent as fault:
            reached = fault.version - 1
            if reached > after:
                fitting = rows[: reached - after]
                self.project(connection, stream, after=after, rows=fitting, into=into, read=read)
            return Reached(reached, Stopped(stream.table.hex(), reached, str(fault)))
        except DealerError as fault:
            return Reached(after, Stopped(stream.table.hex(), after, str(fault)))
        self._put(stream.number, table)
        return Reached(table.version, stopped)

    def _read(
        self,
        connection: Connection,
        stream: StreamKey,
        after: int,
        rows: Sequence[Any],
        into: Changes,
        read: Read,
    ) -> tuple[list[TimedEvent], Stopped | None]:
        """The events of `rows` up to the first that cannot be read yet, and the reason if never."""
        timed_events: list[TimedEvent] = []
        table = stream.table.hex()
        for version, row in enumerate(rows, after + 1):
            if row[0] != version:
                missing = f"Version {version} is missing in the log; restore it from a backup."
                return timed_events, Stopped(table, version - 1, missing)
            try:
                at, event = read(row)
                reveal = None
                if isinstance(event, RoundClosed):
                    if self._revealed_left:
                        reveal = self._advance(connection, stream, version, event, into)
                    else:
                        self.postponed = True
                    if self.postponed:
                        return timed_events, None
                timed_events.append(TimedEvent(event, at, reveal))
            except (DealerError, InconsistentEvent) as error:
                self._reveals.pop(stream.number, None)
                return timed_events, Stopped(table, version - 1, str(error))
            except (ValueError, KeyError, TypeError) as error:
                altered = f"Version {version} cannot be read ({error}); restore it from a backup."
                return timed_events, Stopped(table, version - 1, altered)
        return timed_events, None

    def _advance(
        self,
        connection: Connection,
        stream: StreamKey,
        closed: int,
        event: RoundClosed,
        into: Changes,
    ) -> RoundReveal | None:
        """Replay more of the round that `event` closes; None if the log has no such round."""
        number, recent = stream.number, self.round_events
        reveal = self._reveals.pop(number, None)
        if reveal is None or reveal.closed != closed:
            opened = recent.opened(number, closed)
            if opened is None:
                opened = last_round_opened(connection, number, closed)
            if opened is None:
                return None
            reveal = RoundReveal(number, opened=opened, closed=closed, secret=event.secret)
        first = reveal.reached + 1
        last = min(closed - 1, reveal.reached + self._revealed_left)
        self._revealed_left -= last - reveal.reached
        kept = recent.range(number, first, last)
        if kept is not None:
            reveal.add(kept, into)
        else:
            secrets = {event.round: reveal.secret}
            read = read_events(connection, stream, first=first, last=last, secrets=secrets)
            reveal.add(((version, event) for version, _, event in read), into)
        if reveal.reached < last:
            raise InconsistentEvent(closed, f"version {reveal.reached + 1} is missing")
        self.postponed = not reveal.complete
        if self.postponed:
            self._reveals[number] = reveal
        else:
            recent.forget(number, closed)
        return reveal
