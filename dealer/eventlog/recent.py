"""Recent events: the one memory of what this process has committed.

A committed event that is needed again is taken from here, the same record: by subscribers that lag
or come back, notes of decks, followers of the feed, and the projector. What is not here is read
from the log.

These events of a table are kept, always without a gap up to its newest one:

- what the projector has not taken yet;
- with `keep`, while it has subscribers, the newest 8 events, and at most 8 KiB of them;
- while the feed is followed, what came since the memory was last full.

A closed table's events are given to the projector only: they may leave the log at any time, by a
`dealer tables archive` of which this process does not hear, and then readers report that they did.

All of it takes at most `bound` bytes. When that is reached, the first of these that frees a quarter
is done: drop what only the feed needs, what subscribers need, what the projector has not taken.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from threading import Lock

from dealer.eventlog.rows import EventRecord
from dealer.game.events import TableClosed

EVENTS = 8
BYTES = 8_192
"""What is kept of a table for its subscribers; one that lags more costs a read of a millisecond."""

CLOSED = TableClosed.__name__

BOUND = 16 * 2**20

_ENTRY = 300
"""Estimated bytes of a record with its event, without its leaf and the face that one seat sees."""

_TABLE = 800
"""Estimated bytes that a table takes here without its records."""


class _Ring:
    """The newest events of one table, and their estimated bytes."""

    __slots__ = ("closed", "keep", "records", "size")

    def __init__(self) -> None:
        self.records: deque[EventRecord] = deque()
        self.size = _TABLE
        self.keep = False
        self.closed = False


class RecentEvents:
    """The memory of one process, of any thread.

    `bytes` is its estimated size, at most `bound`. `waiting` are the tables of which the projector
    has not taken all, the longest waiting first, each with the first version that it has not taken.
    `dropped` counts how often events were dropped that the projector has not taken.
    """

    def __init__(self, *, bound: int = BOUND) -> None:
        self.bytes = 0
        self.waiting: OrderedDict[bytes, int] = OrderedDict()
        self.bound = bound
        self._followed = False
        self.dropped = 0
        self._lock = Lock()
        self._rings: dict[bytes, _Ring] = {}

    def add(self, table: bytes, records: Sequence[EventRecord], *, keep: bool) -> None:
        """Remember what was committed to a table, and with `keep` the newest for subscribers."""
        size = _ENTRY * len(records)
        for record in records:
            size += len(record.leaf) + len(record.private)
        first = records[0].version
        with self._lock:
            ring = self._rings.get(table)
            if ring is None:
                ring = self._rings[table] = _Ring()
                self.bytes += ring.size
            elif ring.records[-1].version + 1 != first:
                # Another process has written what is between them.
                self.dropped += self.waiting.pop(table, None) is not None
                ring.records.clear()
                size -= ring.size - _TABLE
            ring.records += records
            ring.size += size
            ring.keep = keep
            ring.closed = records[-1].type == CLOSED
            self.bytes += size
            if table not in self.waiting:
                self.waiting[table] = first
            if self.bytes > self.bound:
                self._make_room()

    def between(self, table: bytes, first: int, last: int) -> list[EventRecord] | None:
        """The events of these versions; None unless all are here and the table is open."""
        with self._lock:
            ring = self._rings.get(table)
            if ring is None or ring.closed:
                return None
            start = first - ring.records[0].version
            if start < 0 or last > ring.records[-1].version:
                return None
            return list(islice(ring.records, start, start + last - first + 1))

    def release(self, table: bytes) -> None:
        """Keep nothing for subscribers until the next `add`: there are none, or no memory is."""
        with self._lock:
            ring = self._rings.get(table)
            if ring is not None:
                ring.keep = False
                if not self._followed:
                    self._trim(table, ring)

    def follow(self, followed: bool) -> None:
        """Whether to keep for followers of the feed what the projector has taken."""
        if followed != self._followed:
            with self._lock:
                self._followed = followed
                if not followed:
                    self._trim_all()

    def forget(self) -> None:
        """Forget all events: the log was rewound, or a table left it."""
        with self._lock:
            self.dropped += bool(self.waiting)
            self.waiting.clear()
            self._rings.clear()
            self.bytes = 0

    # For the projector

    def tables_waiting(self) -> list[bytes]:
        """The tables of `waiting`."""
        with self._lock:
            return [*self.waiting]

    def take(
        self, count: int, *, of: Collection[bytes] | None = None
    ) -> list[tuple[bytes, list[EventRecord]]]:
        """What whole tables have waiting, the longest waiting first, until it is `count` events.

        If `of` is given, only of these tables.
        """
        taken: list[tuple[bytes, list[EventRecord]]] = []
        left = count
        with self._lock:
            for table, first in list(self.waiting.items()):
                if left <= 0:
                    break
                if of is not None and table not in of:
                    continue
                del self.waiting[table]
                records = self._rings[table].records
                found = list(islice(records, first - records[0].version, None))
                taken.append((table, found))
                left -= len(found)
        return taken

    def put_back(self, table: bytes, version: int) -> None:
        """What was taken from `version` on waits again, before all others."""
        with self._lock:
            ring = self._rings.get(table)
            if ring is None or ring.records[0].version > version:
                self.dropped += 1  # it was dropped meanwhile
                return
            self.waiting[table] = version
            self.waiting.move_to_end(table, last=False)

    def projected(self, tables: Iterable[bytes]) -> None:
        """The projector needs no more of these tables than what waits."""
        if self._followed:
            return
        with self._lock:
            for table in tables:
                ring = self._rings.get(table)
                if ring is not None:
                    self._trim(table, ring)

    # Under the lock

    def _make_room(self) -> None:
        enough = self.bytes - self.bound / 4
        self._trim_all()
        if self.bytes > enough:
            for ring in self._rings.values():
                ring.keep = False
            self._trim_all()
        if self.bytes > enough:
            self.dropped += 1
            self.waiting.clear()
            self._trim_all()

    def _trim_all(self) -> None:
        for table, ring in list(self._rings.items()):
            self._trim(table, ring)

    def _trim(self, table: bytes, ring: _Ring) -> None:
        """Drop the oldest events that neither the projector nor a subscriber needs."""
        records, before = ring.records, ring.size
        waiting = self.waiting.get(table)
        while records and (waiting is None or records[0].version < waiting):
            if ring.keep and not ring.closed and len(records) <= EVENTS and ring.size <= BYTES:
                break
            gone = records.popleft()
            ring.size -= _ENTRY + len(gone.leaf) + len(gone.private)
        if not records:
            del self._rings[table]
            ring.size = 0
        self.bytes -= before - ring.size
