"""Events of open rounds: exact, whole rounds or nothing, packed."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_args

from hypothesis import given
from hypothesis import strategies as st

from dealer.game import events
from dealer.game.events import Event
from dealer.projector.recent_events import RecentEvent
from dealer.projector.round_events import RoundEvents
from tests.projector.random_games import short_game
from tests.projector.test_recent_events import events_of

OPENED = events.RoundOpened(1, ("As", "Td"), "house", 1, 2, bytes(32))
REAL: list[Any] = [
    OPENED,
    events.SeatTaken(1, "a", None),
    events.CardsSwapped(1, 1, 3, 4, None),
    events.CardDrawn(1, 2, "deck", 5, "As"),
    events.DeckSealed(1, 1, 0, (bytes(32), b"x" * 32)),
]
ANY_TYPE: list[Any] = [kind(*range(len(fields(kind)))) for kind in get_args(Event)]
EVENTS = st.sampled_from([*REAL, *(event for event in ANY_TYPE if type(event) is not type(OPENED))])


def without_commitments(event: Event) -> Event:
    if isinstance(event, events.DeckSealed):
        return events.DeckSealed(event.round, event.k, event.first, ())
    return event


@given(
    history=st.lists(EVENTS, min_size=70, max_size=100),
    takes=st.lists(st.integers(1, 50), min_size=3, max_size=10),
    closed=st.sampled_from([0, 1, 2, 60, 61, 62, 90]),
)
def test_a_range_has_the_events_that_were_added(
    history: list[Event], takes: list[int], closed: int
) -> None:
    history = [OPENED, *history]
    history[60] = OPENED
    added = [RecentEvent(version, 0, event) for version, event in enumerate(history, 1)]
    kept, at = RoundEvents(), 0
    for take in [*takes, len(added)]:
        more = added[max(0, at - 1) : at + take]  # one of them was added before
        if more:
            kept.add(1, more)
        at += take
    found = [(each.version, without_commitments(each.event)) for each in added]
    opened = [version for version, event in found if event is OPENED]
    _compare(kept, found, 1)
    for before in range(1, len(found) + 2, 10):
        expected = max((version for version in opened if version < before), default=None)
        assert kept.opened(1, before) == expected
    kept.forget(1, closed)
    _compare(kept, found, min((version for version in opened if version > closed), default=None))


def _compare(kept: RoundEvents, found: list[tuple[int, Event]], begin: int | None) -> None:
    """Every range is there that begins at version `begin` or later, and no other one."""
    for first in range(0, len(found) + 2, 9):
        for last in range(max(first, 1), len(found) + 2, 13):
            there = begin is not None and begin <= first and last <= len(found)
            assert kept.range(1, first, last) == (found[first - 1 : last] if there else None)


def test_round_events_are_dropped_if_one_is_missing_or_there_are_too_many() -> None:
    found = events_of(short_game().open_round())
    last = len(found)
    first, second = (each.version for each in found if type(each.event).__name__ == "RoundOpened")
    kept = RoundEvents(bound=2 * last)
    kept.add(1, found[:20])
    assert kept.opened(1, last + 1) == first
    assert kept.range(1, first, 20) == [
        (each.version, without_commitments(each.event)) for each in found[first - 1 : 20]
    ]
    assert kept.range(1, first - 1, 20) is None
    assert kept.range(1, first, 21) is None
    kept.add(1, found[21:])
    assert kept.opened(1, second) is None
    for number in (1, 2, 3):
        kept.add(number, found)
    assert [kept.opened(number, second) for number in (1, 2, 3)] == [None, first, first]
    kept.forget(2, second - 1)
    assert kept.opened(2, last + 1) == second
    assert kept.opened(2, second) is None
    kept.forget(2, last)
    assert kept.range(2, second, last) is None
