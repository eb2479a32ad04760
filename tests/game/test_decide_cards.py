"""Drawing, dealing, cutting and showing."""

from __future__ import annotations

import pytest

from dealer.errors import (
    BadPlace,
    BadRequest,
    CardNotInHand,
    CardNotThere,
    DeckEmpty,
    NotHost,
    NotSealed,
    NotYourSeat,
)
from dealer.game.commands import (
    Actor,
    Cut,
    Deal,
    Draw,
    DrawAtRandom,
    LeaveSeat,
    Move,
    Show,
    StartShuffle,
)
from dealer.game.events import CardDrawn, CardPeeked, CardShown, StackCut
from dealer.game.stacks import DECK

HOST = Actor(host=True)
ONE, TWO, THREE = (Actor(seat=seat) for seat in (1, 2, 3))


def drawn(game, seat, *slots, source=DECK):
    return [CardDrawn(1, seat, source, slot, game.card(slot)) for slot in slots]


def shown(game, *slots):
    return [CardShown(1, slot, game.card(slot), game.house.slot_salt(slot)) for slot in slots]


def peeked(game, seat, *slots):
    return [CardPeeked(1, slot, seat, game.card(slot)) for slot in slots]


# Drawing


def test_cards_are_drawn_from_the_top_in_order(play):
    game = play()
    assert game.do(Draw(ONE, 2)) == drawn(game, 1, 7, 6)
    assert game.stack("hand:1") == [7, 6]
    assert game.stack("deck") == [0, 1, 2, 3, 4, 5]
    assert game.round.sees(1, 7)
    assert not game.round.sees(2, 7)


def test_cards_are_drawn_from_the_bottom(play):
    game = play()
    assert game.do(Draw(ONE, 2, where="bottom")) == drawn(game, 1, 0, 1)
    assert game.stack("deck") == [2, 3, 4, 5, 6, 7]


def test_cards_are_drawn_by_their_slots_in_the_order_named(play):
    game = play()
    assert game.do(Draw(TWO, cards=(3, 0, 7))) == drawn(game, 2, 3, 0, 7)
    assert game.stack("deck") == [1, 2, 4, 5, 6]


def test_a_card_that_was_seen_is_drawn_by_its_code(play):
    game = play()
    game.do(Show(HOST, DECK, (4,), to=1))
    game.do(Show(HOST, DECK, (5,)))
    four, five = game.card(4), game.card(5)
    game.refuses(Draw(TWO, cards=(four,)), CardNotThere, "or you may not see it")
    assert game.decide(Draw(TWO, cards=(five,))) == drawn(game, 2, 5)
    assert game.do(Draw(ONE, cards=(four, five))) == drawn(game, 1, 4, 5)


def test_a_pile_is_drawn_from(play):
    game = play()
    game.do(Move(HOST, "burn", DECK, "pile:burn", count=3))
    assert game.decide(Draw(ONE, source="pile:burn")) == drawn(game, 1, 5, source="pile:burn")
    bottom = Draw(ONE, source="pile:burn", where="bottom")
    assert game.decide(bottom) == drawn(game, 1, 7, source="pile:burn")
    named = Draw(ONE, source="pile:burn", cards=(6,))
    assert game.decide(named) == drawn(game, 1, 6, source="pile:burn")


@pytest.mark.parametrize(
    ("command", "refusal", "saying"),
    [
        (Draw(ONE, 9), DeckEmpty, "8 cards left; 9 were requested"),
        (Draw(ONE, 0), BadRequest, "at least one card"),
        (Draw(ONE, -1), BadRequest, "at least one card"),
        (Draw(ONE, cards=()), BadRequest, "at least one card"),
        (Draw(ONE, cards=(3, 3)), BadRequest, "each card once"),
        (Draw(ONE, cards=(8,)), CardNotThere, "not in that stack, or you may not see it"),
        (Draw(ONE, cards=(-1,)), CardNotThere, "not in that stack"),
        (Draw(ONE, cards=(3, -1, 3)), CardNotThere, "not in that stack"),
        (Draw(ONE, cards=("a",)), CardNotThere, "not in that stack, or you may not see it"),
        (Draw(ONE, cards=("zz",)), CardNotThere, "not in that stack, or you may not see it"),
        (Draw(ONE, source="hand:2"), BadRequest, "a hand belongs to its seat"),
        (Draw(ONE, source="heap"), BadRequest, "Name deck or pile"),
        (Draw(ONE, source="pile:none"), DeckEmpty, "0 cards left"),
        (Draw(HOST), NotYourSeat, "no seat"),
        (Draw(THREE), NotYourSeat, "no seat"),
        (Draw(Actor()), NotYourSeat, "no seat"),
    ],
)
def test_an_invalid_draw_is_refused(play, command, refusal, saying):
    play().refuses(command, refusal, saying)


def test_a_draw_from_an_unshuffled_deck_is_refused(play):
    game = play(shuffled=False)
    for command in (Draw(ONE), Draw(ONE, where="bottom"), Deal(HOST, 1), Show(HOST, DECK)):
        game.refuses(command, NotSealed, "shuffle it first")
    game.refuses(Move(HOST, "burn", DECK, "pile:burn"), NotSealed, "shuffle it first")
    game.refuses(Draw(ONE, cards=(-1,)), CardNotThere)
    game.refuses(Draw(ONE, cards=("a",)), CardNotThere)


def test_one_card_is_a_card(play):
    game = play()
    game.do(Draw(ONE, 7))
    game.refuses(Draw(ONE, 2), DeckEmpty, "has 1 card left; 2 were requested")
    game.refuses(DrawAtRandom(ONE, 2), DeckEmpty, "has 1 card left; draw 1 to 1.")
    game.refuses(StartShuffle(HOST, steps=2), BadRequest, "shuffle of 1 card takes 0 to 0 steps.")


def test_a_draw_from_an_empty_deck_is_refused(play):
    game = play()
    game.do(Draw(ONE, 8))
    game.refuses(Draw(ONE), DeckEmpty, "0 cards left; 1 was requested")
    assert game.stack("deck") == []


def test_a_slot_of_an_earlier_shuffle_is_refused(play):
    game = play()
    game.shuffle()
    game.refuses(Draw(ONE, cards=(7,)), CardNotThere)
    assert game.do(Draw(ONE, cards=(15,)))


# Dealing


def test_cards_are_dealt_one_at_a_time_round_the_table(play):
    game = play(seats=3)
    dealt = game.do(Deal(HOST, 2))
    assert [(event.seat, event.slot) for event in dealt] == [
        (1, 7), (2, 6), (3, 5), (1, 4), (2, 3), (3, 2),
    ]  # fmt: skip
    assert dealt[0] == drawn(game, 1, 7)[0]
    assert game.stack("hand:2") == [6, 3]


def test_cards_are_dealt_to_the_seats_that_are_named_in_their_order(play):
    dealt = play(seats=3).do(Deal(HOST, 2, (3, 1)))
    assert [(e.seat, e.slot) for e in dealt] == [(3, 7), (1, 6), (3, 5), (1, 4)]


def test_seats_are_dealt_to_in_order_of_their_numbers(play):
    assert [event.seat for event in play(seats=10, deck="abcdefghijkl").do(Deal(HOST, 1))] == [
        *range(1, 11)
    ]


def test_an_empty_seat_is_skipped(play):
    game = play(seats=3)
    game.do(LeaveSeat(TWO))
    assert [event.seat for event in game.do(Deal(HOST, 1))] == [1, 3]


@pytest.mark.parametrize(
    ("command", "refusal", "saying"),
    [
        (Deal(HOST, 5), DeckEmpty, "8 cards left; 10"),
        (Deal(HOST, 0), BadRequest, "at least one card to each"),
        (Deal(HOST, -1), BadRequest, "at least one card to each"),
        (Deal(HOST, 1, (1, 3)), BadRequest, "seats that are taken"),
        (Deal(HOST, 1, (1, 1)), BadRequest, "each of them once"),
        (Deal(HOST, 1, ()), BadRequest, "No seat of this table is taken"),
        (Deal(ONE, 1), NotHost, "only the host to deal"),
    ],
)
def test_an_invalid_deal_is_refused(play, command, refusal, saying):
    play().refuses(command, refusal, saying)


def test_a_deal_at_an_empty_table_is_refused(play):
    play(seats=0).refuses(Deal(HOST, 1), BadRequest, "No seat of this table is taken")


# Cutting


@pytest.mark.parametrize("at", [0, 3, 8])
def test_a_cut_brings_the_top_to_the_bottom(play, at):
    game = play()
    assert game.do(Cut(ONE, at)) == [StackCut(1, DECK, at)]
    assert game.stack("deck") == [*range(at, 8), *range(at)]


def test_a_pile_is_cut(play):
    game = play()
    game.do(Move(HOST, "burn", DECK, "pile:burn", count=3))
    game.do(Cut(ONE, 1, "pile:burn"))
    assert game.stack("pile:burn") == [6, 5, 7]


def test_a_fresh_deck_may_be_cut_before_its_shuffle(play):
    game = play(shuffled=False)
    game.do(Cut(ONE, 6))
    game.shuffle(steps=0)
    assert [game.card(slot) for slot in range(8)] == list("ghabcdef")


def test_a_cut_of_an_empty_pile_does_not_create_it(play):
    game = play()
    assert game.do(Cut(ONE, 0, "pile:none")) == [StackCut(1, "pile:none", 0)]
    assert "pile:none" not in game.round.stacks


@pytest.mark.parametrize(
    ("command", "refusal", "saying"),
    [
        (Cut(ONE, 9), BadPlace, "0 to 8"),
        (Cut(ONE, -1), BadPlace, "0 to 8"),
        (Cut(ONE, 1, "pile:none"), BadPlace, "0 to 0"),
        (Cut(ONE, 0, "hand:1"), BadRequest, "a hand belongs to its seat"),
        (Cut(ONE, 0, "heap"), BadRequest, "Name deck or pile"),
    ],
)
def test_an_invalid_cut_is_refused(play, command, refusal, saying):
    play().refuses(command, refusal, saying)


# Showing


def test_a_player_shows_cards_of_their_hand_to_all(play):
    game = play()
    game.do(Draw(ONE, 3))
    assert game.decide(Show(ONE, "hand:1")) == shown(game, 5)
    assert game.do(Show(ONE, "hand:1", (7, game.card(6)))) == shown(game, 7, 6)
    assert all(game.round.sees(seat, slot) for seat in (2, None) for slot in (7, 6))
    assert not game.round.sees(2, 5)


def test_a_card_is_not_shown_twice(play):
    game = play()
    game.do(Draw(ONE, 2))
    game.do(Show(ONE, "hand:1", (7,)))
    assert game.do(Show(ONE, "hand:1", (7, 6))) == shown(game, 6)
    assert game.do(Show(ONE, "hand:1", (7, 6))) == []
    assert game.do(Show(ONE, "hand:1", (7,), to=2)) == []


def test_a_hand_may_be_shown_to_one_seat(play):
    game = play(seats=3)
    game.do(Draw(ONE))
    assert game.do(Show(ONE, "hand:1", to=2)) == peeked(game, 2, 7)
    assert game.round.sees(2, 7)
    assert not game.round.sees(3, 7)
    assert game.do(Show(ONE, "hand:1", to=2)) == []
    assert game.do(Show(ONE, "hand:1", to=1)) == []


def test_a_stack_is_turned_up(play):
    game = play()
    assert game.do(Show(ONE, DECK)) == shown(game, 7)
    game.do(Move(HOST, "pile", DECK, "pile:x", count=2))
    assert game.do(Show(ONE, "pile:x")) == shown(game, 6)
    assert game.do(Show(ONE, DECK, (0, 1), to=2)) == peeked(game, 2, 0, 1)


@pytest.mark.parametrize(
    ("command", "refusal", "saying"),
    [
        (Show(ONE, "hand:2"), NotYourSeat, "only the cards of your own hand"),
        (Show(HOST, "hand:2"), NotYourSeat, "only the cards of your own hand"),
        (Show(THREE, "hand:3"), NotYourSeat, "no seat"),
        (Show(ONE, "hand:1", (6,)), CardNotInHand, "not in that hand, or you may not see it"),
        (Show(ONE, "hand:1", ("a",)), CardNotInHand, "not in that hand, or you may not see it"),
        (Show(ONE, "hand:1", to=3), BadRequest, "Seat 3 is not taken"),
        (Show(ONE, DECK, (0, 0)), BadRequest, "each card once"),
        (Show(ONE, DECK, ()), BadRequest, "at least one card"),
        (Show(ONE, DECK, (99,)), CardNotThere, "not in that stack"),
        (Show(ONE, "pile:none"), DeckEmpty, "0 cards"),
        (Show(ONE, "hand:x"), BadRequest, "A stack is deck"),
        (Show(ONE, "heap"), BadRequest, "A stack is deck"),
    ],
)
def test_an_invalid_show_is_refused(play, command, refusal, saying):
    game = play(deck="bcdefghi")
    game.do(Draw(ONE))
    game.do(Draw(TWO))
    game.refuses(command, refusal, saying)
