"""Simultaneous passing: cards wait in piles, and are delivered together."""

from __future__ import annotations

import pytest

from dealer.errors import (
    BadRequest,
    CardNotInHand,
    NotEntitled,
    NothingToTakeBack,
    NotHost,
    NotYourSeat,
)
from dealer.game import commands as c
from dealer.game.events import CardMoved, EntropyClosed, NoteAdded, ShuffleStarted
from dealer.game.rules import Rules
from dealer.game.stacks import DECK, DISCARD

HOST, ONE, TWO, THREE = c.Actor(host=True), *(c.Actor(seat=seat) for seat in (1, 2, 3))


@pytest.fixture
def game(play):
    """Seat 1 holds the slots 8 and 5, seat 2 the slots 7 and 4, seat 3 the slots 6 and 3."""
    game = play(seats=3, deck="abcdefghi")
    game.do(c.Deal(HOST, 2))
    return game


def hands(game):
    return [game.stack(f"hand:{seat}") for seat in (1, 2, 3)]


def test_cards_wait_until_the_last_seat_has_passed(game):
    assert game.do(c.Pass(ONE, (8,), 2)) == [CardMoved(1, 8, "hand:1", "pile:pass:2", 0, None)]
    assert game.do(c.Pass(TWO, (7, 4), 3)) == [
        CardMoved(1, 7, "hand:2", "pile:pass:3", 0, None),
        CardMoved(1, 4, "hand:2", "pile:pass:3", 1, None),
    ]
    assert game.do(c.Pass(THREE, (3,), 1)) == [
        CardMoved(1, 3, "hand:3", "pile:pass:1", 0, None),
        CardMoved(1, 3, "pile:pass:1", "hand:1", 1, game.card(3)),
        CardMoved(1, 8, "pile:pass:2", "hand:2", 0, game.card(8)),
        CardMoved(1, 7, "pile:pass:3", "hand:3", 1, game.card(7)),
        CardMoved(1, 4, "pile:pass:3", "hand:3", 2, game.card(4)),
    ]
    assert hands(game) == [[5, 3], [8], [6, 7, 4]]
    assert not game.round.moves.passed


def test_a_card_is_named_by_its_code_and_has_to_be_in_the_hand(game):
    assert game.decide(c.Pass(ONE, (game.card(8),), 2))
    game.refuses(c.Pass(ONE, (7,), 2), CardNotInHand)
    game.refuses(c.Pass(ONE, (), 2), BadRequest)


def test_all_may_pass_to_one_seat(game):
    game.do(c.Pass(TWO, (7,), 1))
    game.do(c.Pass(THREE, (6,), 1))
    game.do(c.Pass(ONE, (8, 5), 2))
    assert hands(game) == [[7, 6], [4, 8, 5], [3]]


def test_seats_without_cards_are_not_waited_for(game):
    game.do(c.TakeSeat("late", 4))
    game.do(c.Move(THREE, "discard", "hand:3", DISCARD, whole=True))
    game.do(c.Pass(ONE, (8,), 2))
    game.do(c.Pass(TWO, (7,), 4))
    assert (game.stack("hand:2"), game.stack("hand:4")) == ([4, 8], [7])


def test_a_seat_passes_once_until_the_delivery(game):
    game.do(c.Pass(ONE, (8,), 2))
    game.refuses(c.Pass(ONE, (5,), 2), NotEntitled, "passed already")
    game.do(c.Pass(TWO, (7,), 1))
    game.do(c.Pass(THREE, (6,), 1))
    assert game.decide(c.Pass(ONE, (5,), 2))


@pytest.mark.parametrize("to", [1, 4, None])
def test_the_receiver_is_another_taken_seat(game, to):
    game.refuses(c.Pass(ONE, (8,), to), BadRequest, "taken seat")


def test_a_host_without_a_seat_passes_no_cards(game):
    game.refuses(c.Pass(HOST, (8,), 2), NotYourSeat)


def test_passed_cards_are_taken_back_also_after_others_have_passed(game):
    game.do(c.Pass(ONE, (8,), 2))
    game.do(c.Pass(TWO, (7,), 1))
    first = game.table.version - 1
    assert game.do(c.TakeBack(ONE)) == [
        CardMoved(1, 8, "pile:pass:2", "hand:1", 0, game.card(8)),
        NoteAdded(1, "take_back", str(first)),
    ]
    game.do(c.Pass(THREE, (6,), 1))
    assert game.round.moves.passed.keys() == {2, 3}  # seat 1 is awaited again
    game.do(c.Pass(ONE, (5, 8), 3))
    assert hands(game) == [[7, 6], [4], [3, 5, 8]]


def test_passed_cards_return_to_a_hand_that_has_fewer_cards_now(game):
    game.do(c.Pass(ONE, (5,), 2))
    game.do(c.Move(ONE, "play", "hand:1", "pile:x", (8,), face="up"))
    back, _ = game.do(c.TakeBack(ONE))
    assert back == CardMoved(1, 5, "pile:pass:2", "hand:1", 0, game.card(5))


def test_a_pass_is_taken_back_and_not_the_move_before_it(play):
    game = play(rules={"collect": "nobody"})
    game.do(c.Deal(HOST, 2))
    game.do(c.Move(ONE, "discard", "hand:1", DISCARD, (5,)))
    game.now += 1
    game.do(c.Pass(ONE, (7,), 2))
    game.do(c.TakeBack(ONE))
    assert (game.stack("hand:1"), game.stack(DISCARD)) == ([7], [5])
    game.refuses(c.TakeBack(ONE), NothingToTakeBack)


def test_a_delivery_cannot_be_taken_back(game):
    game.do(c.Show(ONE, "hand:1"))
    game.do(c.Show(ONE, "hand:1", whole=True))
    for actor, card, to in ((ONE, 8, 2), (TWO, 7, 1), (THREE, 6, 1)):
        game.do(c.Pass(actor, (card,), to))
    for actor in (ONE, TWO, THREE):
        game.refuses(c.TakeBack(actor), NothingToTakeBack, "no move to take back")


@pytest.mark.parametrize(
    "command",
    [
        c.Draw(TWO, source="pile:pass:2"),
        c.Draw(THREE, source="pile:pass:2", cards=(8,)),
        c.DrawAtRandom(TWO, 1, "pile:pass:2"),
        c.StartShuffle(HOST, "pile:pass:2"),
        c.Cut(ONE, 0, "pile:pass:2"),
        c.Move(HOST, "pile", "pile:pass:2", "pile:x"),
        c.Move(ONE, "pile", "pile:pass:2", "hand:1"),
        c.Show(ONE, "pile:pass:2"),
        c.Show(TWO, "pile:pass:2", to=2),
    ],
)
def test_cards_that_wait_are_not_touched(game, command):
    game.do(c.Pass(ONE, (8,), 2))
    game.refuses(command, NotEntitled, "wait to be passed")


@pytest.mark.parametrize(
    "command",
    [
        c.Move(ONE, "play", "hand:1", "pile:pass:2", (8,)),
        c.Move(HOST, "pile", DECK, "pile:pass:2"),
        c.Deal(HOST, 0, piles=(c.DealtPile("pile:pass:2", 1),)),
    ],
)
def test_cards_get_into_these_piles_by_passing_only(game, command):
    game.refuses(command, BadRequest, "by hand.pass only")


def test_other_piles_of_similar_names_are_ordinary(game):
    for name in ("pile:pass:0", "pile:pass:x", "pile:pass-2", "pile:pass:2x"):
        game.do(c.Move(ONE, "play", "hand:1", name, (game.stack("hand:1")[0],)))
        game.do(c.Draw(ONE, source=name))
    assert not game.round.moves.passed


def test_a_seat_that_leaves_is_not_waited_for_any_more(game):
    game.do(c.Pass(ONE, (8,), 2))
    game.refuses(c.Pass(ONE), NotEntitled, r"seats: 2, 3\)")
    game.do(c.Pass(TWO, (7,), 1))
    game.do(c.VacateSeat(HOST, 3))
    game.do(c.Pass(ONE))
    assert hands(game) == [[5, 7], [4, 8], [6, 3]]


def test_the_host_delivers_without_the_seats_that_did_not_pass(game):
    game.do(c.Pass(ONE, (8,), 3))
    game.refuses(c.Pass(TWO), NotEntitled, "only the host")
    game.do(c.Pass(HOST))
    assert hands(game) == [[5], [7, 4], [6, 3, 8]]
    game.refuses(c.Pass(HOST), BadRequest, "No cards wait")
    game.refuses(c.Pass(HOST, None, 2), BadRequest, "Name the cards")


def test_cards_for_a_free_seat_go_back_to_their_givers(game):
    game.do(c.Pass(ONE, (8,), 3))
    game.do(c.Pass(TWO, (4,), 3))
    game.do(c.LeaveSeat(THREE))
    game.do(c.LeaveSeat(TWO))
    game.do(c.Pass(HOST))
    assert hands(game) == [[5, 8], [7], [6, 3]]
    assert game.stack(DISCARD) == [4]


def test_who_takes_over_a_seat_takes_over_its_pass(game):
    game.do(c.Pass(ONE, (8,), 2))
    game.do(c.LeaveSeat(ONE))
    game.do(c.TakeSeat("new", 1))
    game.refuses(c.Pass(ONE, (5,), 2), NotEntitled, "passed already")
    game.do(c.TakeBack(ONE))
    assert hands(game)[0] == [8, 5]


def test_a_shuffle_of_the_deck_does_not_disturb_what_waits(game):
    game.do(c.Pass(ONE, (8,), 2))
    game.shuffle()
    game.do(c.Pass(TWO, (7,), 3))
    game.do(c.Pass(THREE, (6,), 1))
    assert hands(game) == [[5, 6], [4, 8], [3, 7]]


def test_the_rule_is_of_its_own(play):
    game = play(rules={"preset": "dealer", "pass": "host"})
    game.do(c.Deal(HOST, 1))
    game.refuses(c.Pass(ONE, (7,), 2), NotHost, "only the host to pass")
    game.table.rules = Rules.check({"pass": "nobody"})
    game.refuses(c.Pass(ONE, (7,), 2), NotEntitled)


def test_a_pile_of_an_earlier_release_with_such_a_name_is_read(game):
    """Piles of these names had no meaning: cards of the deck in them are no passed ones."""
    pile = "pile:pass:2"
    game.take(CardMoved(1, 2, DECK, pile, 0, None))
    game.do(c.Draw(ONE, source=pile))
    game.take(CardMoved(1, 2, "hand:1", pile, 0, None))
    game.take(CardMoved(1, 8, "hand:1", "pile:pass:3", 0, None))
    assert [card.slot for card in game.round.moves.passed[1].cards] == [8]
    game.do(c.TakeBack(ONE))
    assert (hands(game)[0], game.stack(pile)) == ([8, 5], [2])
    assert game.decide(c.Draw(TWO, source=pile))


def test_passed_cards_that_an_earlier_release_shuffled_do_not_wait_any_more(game):
    pile = "pile:pass:2"
    game.do(c.Pass(ONE, (8,), 2))
    game.take(ShuffleStarted(1, game.round.k, pile, 1, "backward", 0))
    game.take(EntropyClosed(1, game.round.k))
    game.do(game.finish())
    assert not game.round.moves.passed
    assert game.decide(c.Draw(TWO, source=pile))
