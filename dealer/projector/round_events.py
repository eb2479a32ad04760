"""Events of an open round with their hidden parts, packed: for the replay at the round's end.

A packed event takes about 30 bytes, an object over 150. Once 32 events have gathered they are
packed into one part with `marshal`, as tuples of the type's number and the fields. Only this
process reads a part, so that its form need not be the same in another version of Python. The
commitments of a DeckSealed are left out: the replay does not need them, and they take the most.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Iterable
from dataclasses import fields
from operator import attrgetter
from typing import Any, get_args

from dealer.game.events import DeckSealed, Event

PART = 32
OBJECT = 160
"""Estimated bytes of an event that is not packed yet."""

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


class RoundEvents:
    """Consecutive events of one round: version `first`, the RoundOpened, and those that follow."""

    __slots__ = ("_packed", "_parts", "_rest", "first")

    def __init__(self, first: int) -> None:
        self.first = first
        self._parts: list[bytes] = []
        self._packed = 0
        self._rest: list[Event] = []

    @property
    def bytes(self) -> int:
        """The estimated size in memory."""
        return self._packed + OBJECT * len(self._rest)

    def append(self, event: Event) -> None:
        """Add the event of the next version."""
        if isinstance(event, DeckSealed):
            event = DeckSealed(event.round, event.k, event.first, ())
        self._rest.append(event)
        if len(self._rest) == PART:
            part = _pack(self._rest)
            self._parts.append(part)
            self._packed += len(part)
            self._rest = []

    def range(self, first: int, last: int) -> list[tuple[int, Event]]:
        """Versions first … last, which must be among them, each with its event."""
        begin, end = first - self.first, last - self.first + 1
        skipped = begin // PART
        found: list[Event] = []
        for part in self._parts[skipped : -(-end // PART)]:
            found += _unpack(part)
        if end > len(self._parts) * PART:
            found += self._rest
        offset = min(skipped, len(self._parts)) * PART
        return list(enumerate(found[begin - offset : end - offset], first))
