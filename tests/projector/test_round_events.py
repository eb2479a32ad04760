"""Events of an open round: every range is exact, packed."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from dealer.game import events
from dealer.game.events import Event
from dealer.projector.round_events import OBJECT, PART, RoundEvents

OPENED = events.RoundOpened(1, ("As", "Td"), "house", 1, 2, bytes(32))
REAL: list[Any] = [
    events.SeatTaken(1, "a", None),
    events.CardsSwapped(1, 1, 3, 4, None),
    events.CardDrawn(1, 2, "deck", 5, "As"),
    events.DeckSealed(1, 1, 0, (bytes(32), b"x" * 32)),
]
ANY_TYPE: list[Any] = [kind(*range(len(fields(kind)))) for kind in get_args(Event)]


def without_commitments(event: Event) -> Event:
    if isinstance(event, events.DeckSealed):
        return events.DeckSealed(event.round, event.k, event.first, ())
    return event


@given(more=st.lists(st.sampled_from([*REAL, *ANY_TYPE]), min_size=70, max_size=100))
def test_a_range_has_the_events_that_were_added(more: list[Event]) -> None:
    first = 7
    kept = RoundEvents(first)
    for event in [OPENED, *more]:
        kept.append(event)
        assert kept.bytes < PART * OBJECT + 100 * len(more)
    found = list(enumerate(map(without_commitments, [OPENED, *more]), first))
    for begin in range(0, len(found), 9):
        for end in range(begin, len(found), 13):
            assert kept.range(first + begin, first + end) == found[begin : end + 1]
