"""Events that this process has committed and not yet projected, kept as objects.

The projector takes them from here instead of reading, decrypting and decoding them again. What is
missing here, for whatever reason, it reads from the log.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

from dealer.eventlog import Append, EventRecord
from dealer.game import events
from dealer.game.events import Event

PENDING = 20_000
"""Events that wait to be projected, at most, about 15 MB; then the log is read."""


class RecentEvents:
    """A queue of committed events by table; may be filled and emptied on different threads."""

    def __init__(self, *, bound: int = PENDING) -> None:
        self._bound = bound
        self._lock = Lock()
        self._tables: OrderedDict[bytes, list[EventRecord]] = OrderedDict()
        self._count = 0
        self._incomplete = False

    def put(self, appends: Sequence[Append]) -> bool:
        """Add the events of appends, in the order of commits; False if some were not decided here.

        If too many wait, all of them are dropped: `pop_incomplete` says so.
        """
        decided = True
        with self._lock:
            for append in appends:
                records = append.rows
                if records[0].event is None:
                    decided = False
                    continue
                if self._count + len(records) > self._bound:
                    self._incomplete = self._incomplete or bool(self._tables)
                    self._tables.clear()
                    self._count = 0
                waiting = self._tables.get(append.table)
                if waiting is None:
                    self._tables[append.table] = list(records)
                else:
                    waiting += records
                self._count += len(records)
        return decided

    def put_back(self, table: bytes, rest: Sequence[EventRecord]) -> None:
        """Put events that were taken before all others, to be taken next."""
        with self._lock:
            self._tables[table] = [*rest, *self._tables.get(table, ())]
            self._tables.move_to_end(table, last=False)
            self._count += len(rest)

    def take(self, count: int) -> list[tuple[bytes, list[EventRecord]]]:
        """Remove whole tables, the longest waiting first, until they have `count` events."""
        taken: list[tuple[bytes, list[EventRecord]]] = []
        left = count
        with self._lock:
            while self._tables and left > 0:
                table, found = self._tables.popitem(last=False)
                taken.append((table, found))
                left -= len(found)
                self._count -= len(found)
        return taken

    def pop_incomplete(self) -> bool:
        """Whether events were dropped since the last call."""
        with self._lock:
            incomplete, self._incomplete = self._incomplete, False
        return incomplete

    def __len__(self) -> int:
        return self._count


def public_event(event: Event) -> Event:
    """The event without its hidden part, as a reader of the public log decodes it."""
    match event:
        case events.CardsSwapped(round=round_, k=k, step=step, i=i):
            return events.CardsSwapped(round_, k, step, i, None)
        case events.CardDrawn(round=round_, seat=seat, source=source, slot=slot):
            return events.CardDrawn(round_, seat, source, slot, None)
        case events.CardMoved(round=round_, slot=slot, source=source, to=to, place=place):
            return events.CardMoved(round_, slot, source, to, place, None)
        case events.CardPeeked(round=round_, slot=slot, seat=seat):
            return events.CardPeeked(round_, slot, seat, None)
        case _:
            return event
