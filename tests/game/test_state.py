"""`evolve`, for the server and for a reader that does not know every face."""

from __future__ import annotations

import pytest

from dealer.game.commands import Actor, Draw, LeaveSeat, Move
from dealer.game.events import (
    CardDrawn,
    CardMoved,
    CardPeeked,
    CardShown,
    CardsSwapped,
    DeckSealed,
    EntropyClosed,
    EntropyCommitted,
    EntropyRevealed,
    RoundOpened,
    SeatTaken,
    ShuffleStarted,
    ShuffleVoided,
    StackCut,
    TableOpened,
)
from dealer.game.state import Table, evolve

OPENED = TableOpened("house.example/t/1", b"k" * 32, {"seats": 3})
ROUND = RoundOpened(1, ("a", "b", "c"), "house", 100, 100, b"c" * 32)
SLOTS = tuple(bytes([n]) * 32 for n in range(3))


def replay(history):
    """The state after all events of a table, given in order with their times in milliseconds."""
    table = Table()
    for event, at in history:
        evolve(table, event, at)
    return table


def state_after(*events):
    return replay((event, 10 * n) for n, event in enumerate(events, start=1))


def test_a_table_starts_empty():
    assert state_after() == Table()
    table = state_after(OPENED, SeatTaken(2, "ann"))
    assert (table.version, table.at, table.origin) == (2, 20, "house.example/t/1")
    assert table.rules.seats == 3
    assert table.seats[2].taken_at == 2


def test_the_versions_of_openings_and_closings_are_remembered():
    table = state_after(
        OPENED, ROUND, ShuffleStarted(1, 0, "deck", 3, "backward", 2), EntropyClosed(1, 0)
    )
    assert table.round_versions == [2]
    shuffle = table.round.shuffle
    assert (shuffle.started_at, shuffle.closed_version, shuffle.closed_at) == (30, 4, 40)


def test_swaps_exchange_places_and_the_seal_names_the_slots():
    table = state_after(
        OPENED,
        ROUND,
        ShuffleStarted(1, 0, "deck", 3, "backward", 2),
        EntropyClosed(1, 0),
        CardsSwapped(1, 0, 0, 2, 0),
        CardsSwapped(1, 0, 1, 1, 1),
        DeckSealed(1, 0, 0, SLOTS),
    )
    assert table.round.faces == ["c", "b", "a"]
    assert table.round.cards("deck") == [0, 1, 2]
    assert [table.round.commitment_of(slot) for slot in range(3)] == list(SLOTS)
    assert table.round.all_shuffled([0, 1, 2])
    assert table.round.stack_of(1) == "deck"
    assert table.round.stack_of(3) is None


def test_a_hidden_swap_hides_every_face_of_its_shuffle():
    """After one unknown swap, earlier knowledge is valid for no place."""
    table = state_after(
        OPENED,
        ROUND,
        ShuffleStarted(1, 0, "deck", 3, "backward", 2),
        EntropyClosed(1, 0),
        CardsSwapped(1, 0, 0, 2, 0),
        CardsSwapped(1, 0, 1, 1, None),
        DeckSealed(1, 0, 0, SLOTS),
        CardDrawn(1, 1, "deck", 2, None),
        CardDrawn(1, 2, "deck", 1, "b"),
    )
    assert table.round.faces == [None, "b", None]
    assert table.round.cards("hand:1") == [2]
    assert table.round.sees(1, 2)


@pytest.mark.parametrize(
    ("event", "needs"),
    [
        (CardDrawn(1, 1, "deck", 0, None), "needs an open round"),
        (ShuffleStarted(1, 0, "deck", 3, "backward", 2), "needs an open round"),
        (CardsSwapped(1, 0, 0, 2, 0), "needs an open round"),
    ],
)
def test_an_impossible_log_is_rejected(event, needs):
    with pytest.raises(ValueError, match=f"version 2 {needs}"):
        state_after(OPENED, event)


def test_a_swap_without_a_shuffle_is_an_error():
    for event in (CardsSwapped(1, 0, 0, 2, 0), EntropyRevealed(1, 0, 1, b""), EntropyClosed(1, 0)):
        with pytest.raises(ValueError, match="version 3 needs a running shuffle"):
            state_after(OPENED, ROUND, event)


def test_events_that_need_a_round_are_errors_without_one():
    for event in (
        CardMoved(1, 0, "deck", "pile:x", 0, None),
        CardShown(1, 0, "a", b""),
        CardPeeked(1, 0, 1, None),
        StackCut(1, "deck", 1),
        EntropyCommitted(1, 0, 1, b""),
        EntropyRevealed(1, 0, 1, b""),
        EntropyClosed(1, 0),
        ShuffleVoided(1, 0),
        DeckSealed(1, 0, 0, SLOTS),
    ):
        with pytest.raises(ValueError, match="version 1 needs an open round"):
            state_after(event)


def test_a_card_that_left_a_hand_stays_known_to_its_former_holder(play):
    game = play()
    game.do(Draw(Actor(seat=1)))
    game.do(Move(Actor(seat=1), "return", "hand:1", "deck"))
    assert game.round.sees(1, 7)
    game.do(LeaveSeat(Actor(seat=1)))
    assert not game.round.sees(1, 7)
