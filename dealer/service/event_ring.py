"""Event ring: the newest events of a live table, for subscribers that lag a little.

It is small, because every table in play has one: a subscriber that lags more reads the log, which
costs about a millisecond.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from dealer.eventlog import EventRecord

EVENTS = 8
BYTES = 8_192
_ENTRY = 250


class EventRing:
    """At most the newest 8 events without a gap, and at most 8 KiB of them."""

    __slots__ = ("_entries", "size")

    def __init__(self) -> None:
        self._entries: deque[EventRecord] = deque()
        self.size = 0  # estimated bytes of memory

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[EventRecord]:
        return iter(self._entries)

    def __getitem__(self, place: int) -> EventRecord:
        return self._entries[place]

    def extend(self, entries: Sequence[EventRecord]) -> None:
        """Append events that follow the present ones."""
        kept, size = self._entries, self.size
        if len(entries) >= EVENTS:
            kept.clear()
            size, entries = 0, entries[-EVENTS:]
        for entry in entries:
            kept.append(entry)
            size += _ENTRY + len(entry.leaf) + len(entry.private)
        while len(kept) > EVENTS or size > BYTES:
            gone = kept.popleft()
            size -= _ENTRY + len(gone.leaf) + len(gone.private)
        self.size = size

    def clear(self) -> None:
        """Drop all events."""
        if self._entries:
            self._entries = deque()
            self.size = 0
