"""Recent rows and leaves of the feed, which spare followers the database."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple, Protocol

from dealer.feed.head import FeedHead
from dealer.feed.positions import Place
from dealer.feed.sequencer import FeedRow

ROWS = 10_000
"""Rows of `feed` that are kept."""

BYTES = 8 * 2**20
"""Estimated bytes of the leaves that are kept."""

_OVERHEAD = 300


class Leaf(NamedTuple):
    """An event of the feed: its type, its time in milliseconds, and its leaf as in the log."""

    type: str
    at: int
    text: str


class Encoded(Protocol):
    """An event as the service publishes it."""

    @property
    def version(self) -> int: ...
    @property
    def leaf(self) -> str: ...
    @property
    def type(self) -> str: ...


class RecentFeed:
    """What this process has sequenced and committed last; filled while there are followers."""

    def __init__(self, head: FeedHead) -> None:
        self._head = head
        self._rows: deque[FeedRow] = deque(maxlen=ROWS)
        self._leaves: dict[tuple[bytes, int], Leaf] = {}
        self._bytes = 0

    def add_rows(self, rows: Sequence[FeedRow]) -> None:
        """Remember the rows of a slice; those before a gap are forgotten."""
        if not rows:
            return
        if not self._head.followers or (self._rows and rows[0].seq != self._rows[-1].seq + 1):
            self._rows.clear()
        if self._head.followers:
            self._rows.extend(rows)

    def add_events(self, table: bytes, events: Sequence[Encoded]) -> None:
        """Remember committed events of a table."""
        if not self._head.followers:
            if self._leaves:
                self._leaves.clear()
                self._bytes = 0
            return
        for event in events:
            leaf = event.leaf
            # A leaf begins with its time, the first of its members by name.
            at = int(leaf[6 : leaf.index(",")])
            self._leaves[table, event.version] = Leaf(event.type, at, leaf)
            self._bytes += len(leaf) + _OVERHEAD
        while self._bytes > BYTES:
            oldest = next(iter(self._leaves))
            self._bytes -= len(self._leaves.pop(oldest).text) + _OVERHEAD

    def rows_from(self, place: Place, *, limit: int) -> list[FeedRow] | None:
        """At most `limit` rows from this place on; None if they are not all in memory."""
        rows = self._rows
        if rows and rows[-1].seq < self._head.seq:
            return None  # another process has written the newest ones
        if not rows or not rows[0].seq <= place.seq <= rows[-1].seq + 1:
            return None
        start = place.seq - rows[0].seq
        return list(islice(rows, start, start + limit))

    def leaves(self, table: bytes, first: int, last: int) -> list[Leaf] | None:
        """The events of these versions; None if they are not all in memory."""
        found = []
        for version in range(first, last + 1):
            leaf = self._leaves.get((table, version))
            if leaf is None:
                return None
            found.append(leaf)
        return found
