"""The latest events of a table in memory, so that a subscriber that lags a little costs no read."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from dealer.service.record import Entry

EVENTS = 64
BYTES = 32_768
_ENTRY = 250


class Ring:
    """At most the latest 64 events without a gap, and no more of them than fit into 32 KiB."""

    __slots__ = ("_entries", "size")

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque()
        self.size = 0  # bytes of memory, estimated

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Entry]:
        return iter(self._entries)

    def __getitem__(self, place: int) -> Entry:
        return self._entries[place]

    def extend(self, entries: Sequence[Entry]) -> None:
        """Add events that follow those that are here."""
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
        if self._entries:
            self._entries = deque()
            self.size = 0
