"""Recent rows and events of the feed, which spare followers the database."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice

from dealer.eventlog import EventRecord
from dealer.feed.head import FeedHead
from dealer.feed.positions import Place
from dealer.feed.sequencer import FeedRow

ROWS = 10_000
"""Rows of `feed` that are kept."""

EVENTS = 8_192
"""Events of which the newest are kept, at least as many and at most twice as many."""


class RecentFeed:
    """What this process has sequenced and committed last; filled while there are followers."""

    def __init__(self, head: FeedHead) -> None:
        self._head = head
        self._rows: deque[FeedRow] = deque(maxlen=ROWS)
        # Two generations, so that the oldest are dropped at no cost for each event.
        self._newer: dict[bytes, list[EventRecord]] = {}
        self._older: dict[bytes, list[EventRecord]] = {}
        self._count = 0

    def add_rows(self, rows: Sequence[FeedRow]) -> None:
        """Remember the rows of a slice; those before a gap are forgotten, without followers all."""
        if not self._head.followers:
            self._rows.clear()
            self.forget()
        elif rows:
            if self._rows and rows[0].seq != self._rows[-1].seq + 1:
                self._rows.clear()
            self._rows.extend(rows)

    def add_events(self, table: bytes, events: Sequence[EventRecord]) -> None:
        """Remember committed events of a table, in the order of their versions."""
        known = self._newer.get(table)
        if known is None:
            self._newer[table] = list(events)
        else:
            known.extend(events)
        self._count += len(events)
        if self._count >= EVENTS:
            self._newer, self._older, self._count = {}, self._newer, 0

    def rows_from(self, place: Place, *, limit: int) -> list[FeedRow] | None:
        """At most `limit` rows from this place on; None if they are not all in memory."""
        rows = self._rows
        if rows and rows[-1].seq < self._head.seq:
            return None  # another process has written the newest ones
        if not rows or not rows[0].seq <= place.seq <= rows[-1].seq + 1:
            return None
        start = place.seq - rows[0].seq
        return list(islice(rows, start, start + limit))

    def events(self, table: bytes, first: int, last: int) -> list[EventRecord] | None:
        """The events of these versions; None if they are not all in memory."""
        newer = self._newer.get(table, _NONE)
        found = _between(newer, first, last)
        if len(found) <= last - first:
            found = _between(self._older.get(table, _NONE), first, last) + found
        # Neither list has a gap, unless this process missed events of another one.
        if [event.version for event in found] != list(range(first, last + 1)):
            return None
        return found

    def forget(self) -> None:
        """Forget all events: the log was rewound, or a table left it."""
        self._newer, self._older, self._count = {}, {}, 0


_NONE: list[EventRecord] = []


def _between(events: list[EventRecord], first: int, last: int) -> list[EventRecord]:
    """Those of consecutive events that have these versions."""
    if not events:
        return []
    start = events[0].version
    return events[max(0, first - start) : max(0, last + 1 - start)]
