"""Events of the open rounds with their hidden parts, packed: for the replay at a round's end.

A packed event takes about 30 bytes, an object over 150. Once 32 events of a stream have gathered
they are packed into one part with `marshal`, as tuples of the type's number and the fields. Only
this process reads a part, so that its form need not be the same in another version of Python. The
commitments of a DeckSealed are left out: the replay does not need them, and they take the most.
"""

from __future__ import annotations

import marshal
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, get_args

from dealer.game.events import DeckSealed, Event, RoundOpened
from dealer.projector.recent_events import RecentEvent
from dealer.projector.types import Number

BOUND = 100_000
"""Events of open rounds that are kept, at most, about 4 MB; then the log is read."""

PART = 32

_KINDS: tuple[Callable[..., Event], ...] = get_args(Event)


def _getter(kind: Any) -> Callable[[Event], tuple[Any, ...]]:
    names = [field.name for field in fields(kind)]
    if len(names) > 1:
        return attrgetter(*names)
    return lambda event: tuple(getattr(event, name) for name in names)


_PACKING = {kind: (number, _getter(kind)) for number, kind in enumerate(_KINDS)}


def _pack(events: Iterable[Event]) -> bytes:
    packed = []
    for event in events:
        number, values = _PACKING[type(event)]
        packed.append((number, *values(event)))
    return marshal.dumps(packed)


def _unpack(part: bytes) -> list[Event]:
    return [_KINDS[number](*values) for number, *values in marshal.loads(part)]


class _Kept:
    """Consecutive events of one stream: version `first` and those that follow."""

    __slots__ = ("_parts", "_rest", "first", "opened")

    def __init__(self, first: int) -> None:
        self.first = first
        self.opened: list[int] = []  # versions of the RoundOpened among them
        self._parts: list[bytes] = []
        self._rest: list[Event] = []

    def __len__(self) -> int:
        return len(self._parts) * PART + len(self._rest)

    @property
    def last(self) -> int:
        return self.first + len(self) - 1

    def append(self, event: Event) -> None:
        if isinstance(event, RoundOpened):
            self.opened.append(self.last + 1)
        elif isinstance(event, DeckSealed):
            event = DeckSealed(event.round, event.k, event.first, ())
        self._rest.append(event)
        if len(self._rest) == PART:
            self._parts.append(_pack(self._rest))
            self._rest = []

    def range(self, first: int, last: int) -> list[tuple[int, Event]]:
        """Versions first … last, which must be among them."""
        begin, end = first - self.first, last - self.first + 1
        skipped = begin // PART
        found: list[Event] = []
        for part in self._parts[skipped : -(-end // PART)]:
            found += _unpack(part)
        if end > len(self._parts) * PART:
            found += self._rest
        offset = min(skipped, len(self._parts)) * PART
        return list(enumerate(found[begin - offset : end - offset], first))


class RoundEvents:
    """The events of each stream from the RoundOpened of its open round on, where none is missing.

    When there are more than `bound`, the streams whose last event is the oldest are dropped.
    """

    def __init__(self, *, bound: int = BOUND) -> None:
        self._bound = bound
        self._streams: OrderedDict[Number, _Kept] = OrderedDict()
        self._count = 0

    def add(self, number: Number, more: Sequence[RecentEvent]) -> None:
        """Add the next events of a stream, some of which may have been added before."""
        kept = self._pop(number)
        if kept is not None and more[0].version > kept.last + 1:
            kept = None
        for version, _, event in more:
            if kept is None and isinstance(event, RoundOpened):
                kept = _Kept(version)
            if kept is not None and version > kept.last:
                kept.append(event)
        self._put(number, kept)
        while self._count > self._bound:
            self._count -= len(self._streams.popitem(last=False)[1])

    def opened(self, number: Number, before: int) -> int | None:
        """The version of the last RoundOpened before version `before`; None if it is not kept."""
        kept = self._streams.get(number)
        if kept is None:
            return None
        return next((version for version in reversed(kept.opened) if version < before), None)

    def range(self, number: Number, first: int, last: int) -> list[tuple[int, Event]] | None:
        """Versions first … last of a stream, each with its event; None unless all are kept."""
        kept = self._streams.get(number)
        if kept is None or first < kept.first or last > kept.last:
            return None
        return kept.range(first, last)

    def forget(self, number: Number, closed: int) -> None:
        """Drop the events of the round that version `closed` closes."""
        kept = self._pop(number)
        if kept is None:
            return
        rest = None
        begin = next((version for version in kept.opened if version > closed), None)
        if begin is not None:
            rest = _Kept(begin)
            for _, event in kept.range(begin, kept.last):
                rest.append(event)
        self._put(number, rest)

    def _pop(self, number: Number) -> _Kept | None:
        kept = self._streams.pop(number, None)
        self._count -= 0 if kept is None else len(kept)
        return kept

    def _put(self, number: Number, kept: _Kept | None) -> None:
        if kept is not None:
            self._streams[number] = kept
            self._count += len(kept)
