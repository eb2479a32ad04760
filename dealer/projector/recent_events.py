"""Events that this process has committed and not yet projected, kept as objects.

The projector takes them from here instead of reading, decrypting and decoding them again. What is
missing here, for whatever reason, it reads from the log. Also keeps the open rounds' events with
their hidden parts, for the replay at the round's end.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock
from typing import NamedTuple

from dealer.game import events
from dealer.game.events import Event
from dealer.projector.types import Number

PENDING = 50_000
"""Events that wait to be projected, at most, about 6 MB; then the log is read."""

ROUND_EVENTS = 100_000
"""Events of open rounds that are kept, at most, about 12 MB; then the log is read."""


class RecentEvent(NamedTuple):
    """An event with its hidden part, its version and its time in milliseconds."""

    version: int
    at: int
    event: Event


class RecentEvents:
    """A queue of committed events by table; may be filled and emptied on different threads."""

    def __init__(self, *, bound: int = PENDING) -> None:
        self._bound = bound
        self._lock = Lock()
        self._tables: OrderedDict[bytes, list[RecentEvent]] = OrderedDict()
        self._count = 0
        self._incomplete = False

    def put(self, table: bytes, more: Sequence[RecentEvent]) -> None:
        """Add the events of one append, in the order of commits.

        If too many wait, all of them are dropped: `pop_incomplete` says so.
        """
        if not more:
            return
        with self._lock:
            if self._count + len(more) > self._bound:
                self._drop()
            self._tables.setdefault(table, []).extend(more)
            self._count += len(more)

    def put_back(self, table: bytes, rest: Sequence[RecentEvent]) -> None:
        """Put events that were taken before all others, to be taken next."""
        with self._lock:
            self._tables[table] = [*rest, *self._tables.get(table, ())]
            self._tables.move_to_end(table, last=False)
            self._count += len(rest)

    def take(self, count: int) -> list[tuple[bytes, list[RecentEvent]]]:
        """Remove whole tables, the longest waiting first, until they have `count` events."""
        taken: list[tuple[bytes, list[RecentEvent]]] = []
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

    def _drop(self) -> None:
        self._incomplete = self._incomplete or bool(self._tables)
        self._tables.clear()
        self._count = 0


class RoundEvents:
    """The events of each stream from the RoundOpened of its open round on, where none is missing.

    When there are more than `bound`, the streams whose last event is the oldest are dropped.
    """

    def __init__(self, *, bound: int = ROUND_EVENTS) -> None:
        self._bound = bound
        self._streams: OrderedDict[Number, list[RecentEvent]] = OrderedDict()
        self._count = 0

    def add(self, number: Number, more: Sequence[RecentEvent]) -> None:
        """Add the next events of a stream, some of which may have been added before."""
        kept = self._pop(number)
        known = kept[-1].version if kept else 0
        if kept and more[0].version > known + 1:
            kept = []
        for each in more:
            if each.version > known and (kept or isinstance(each.event, events.RoundOpened)):
                kept.append(each)
        self._put(number, kept)
        while self._count > self._bound:
            self._count -= len(self._streams.popitem(last=False)[1])

    def opened(self, number: Number, before: int) -> int | None:
        """The version of the last RoundOpened before version `before`; None if it is not kept."""
        for each in reversed(self._streams.get(number, ())):
            if each.version < before and isinstance(each.event, events.RoundOpened):
                return each.version
        return None

    def range(self, number: Number, first: int, last: int) -> list[RecentEvent] | None:
        """Versions first … last of a stream; None unless all of them are kept."""
        kept = self._streams.get(number)
        if kept is None or first < kept[0].version or last > kept[-1].version:
            return None
        offset = kept[0].version
        return kept[first - offset : last - offset + 1]

    def forget(self, number: Number, closed: int) -> None:
        """Drop the events of the round that version `closed` closes."""
        rest = [each for each in self._pop(number) if each.version > closed]
        while rest and not isinstance(rest[0].event, events.RoundOpened):
            rest.pop(0)
        self._put(number, rest)

    def _pop(self, number: Number) -> list[RecentEvent]:
        kept = self._streams.pop(number, [])
        self._count -= len(kept)
        return kept

    def _put(self, number: Number, kept: list[RecentEvent]) -> None:
        if kept:
            self._streams[number] = kept
            self._count += len(kept)


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
