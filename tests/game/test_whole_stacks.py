"""Whole stacks in one command, and deals to seats and piles."""

from __future__ import annotations

import pytest

from dealer.errors import BadRequest, DeckEmpty, NotHost, NotSealed
from dealer.game import commands as c
from dealer.game.events import CardDrawn, CardMoved, CardShown
from dealer.game.stacks import BURN, DECK

HOST, ONE = c.Actor(host=True), c.Actor(seat=1)


@pytest.fixture
def game(play):
    """The slots 7, 6 and 5 lie on pile:x, bottom first; 6 is face up."""
    game = play()
    game.do(c.Move(HOST, "pile", DECK, "pile:x", count=3))
    game.do(c.Show(HOST, "pile:x", (6,)))
    return game


def test_a_whole_pile_is_drawn_in_its_order(game):
    drawn = game.do(c.Draw(ONE, source="pile:x", whole=True))
    assert [type(event) for event in drawn] == [CardDrawn] * 3
    assert game.stack("hand:1") == [7, 6, 5]
    game.refuses(c.Draw(ONE, source="pile:x", whole=True), DeckEmpty, "has no card")


@pytest.mark.parametrize(
    ("where", "then"), [("top", [4, 7, 6, 5]), ("bottom", [7, 6, 5, 4]), (0, [7, 6, 5, 4])]
)
def test_a_whole_pile_keeps_its_order_on_another_one(game, where, then):
    game.do(c.Move(HOST, "pile", DECK, "pile:won-1"))
    game.do(c.Move(ONE, "pile", "pile:x", "pile:won-1", where=where, whole=True))
    assert game.stack("pile:won-1") == then
    assert game.stack("pile:x") == []


def test_all_cards_of_a_pile_are_turned_up(game):
    shown = game.do(c.Show(ONE, "pile:x", whole=True))
    assert [(type(event), event.slot) for event in shown] == [(CardShown, 7), (CardShown, 5)]
    assert game.do(c.Show(ONE, "pile:x", whole=True)) == []


def test_a_whole_hand_is_shown_to_all_or_to_one_seat(game):
    game.do(c.Draw(ONE, source="pile:x", whole=True))
    assert len(game.do(c.Show(ONE, "hand:1", to=2, whole=True))) == 2
    assert len(game.do(c.Show(ONE, "hand:1", whole=True))) == 2


@pytest.mark.parametrize(
    "command",
    [
        c.Move(ONE, "pile", "pile:x", "pile:y", (7,), whole=True),
        c.Move(ONE, "pile", "pile:x", "pile:y", count=1, whole=True),
        c.Show(ONE, "pile:x", (7,), whole=True),
    ],
)
def test_all_cards_are_not_some_cards(game, command):
    game.refuses(command, BadRequest, "only one of these")


def test_an_unshuffled_deck_is_not_moved_whole(fresh):
    game = fresh()
    game.refuses(c.Move(HOST, "pile", DECK, "pile:x", whole=True), NotSealed)


def test_a_deal_to_seats_and_piles(play):
    game = play()
    piles = (c.DealtPile("pile:board", 2, "up"), c.DealtPile(BURN, 1))
    assert game.do(c.Deal(HOST, 1, piles=piles)) == [
        CardDrawn(1, 1, DECK, 7, game.card(7)),
        CardDrawn(1, 2, DECK, 6, game.card(6)),
        CardMoved(1, 5, DECK, "pile:board", 0, None),
        CardShown(1, 5, game.card(5), game.house.slot_salt(5)),
        CardMoved(1, 4, DECK, "pile:board", 1, None),
        CardShown(1, 4, game.card(4), game.house.slot_salt(4)),
        CardMoved(1, 3, DECK, BURN, 0, None),
    ]
    game.do(c.Deal(HOST, 0, piles=(c.DealtPile("pile:board", 1),)))
    assert game.stack("pile:board") == [5, 4, 2]


@pytest.mark.parametrize(
    ("piles", "refusal", "saying"),
    [
        ([c.DealtPile("pile:x", 7)], DeckEmpty, "9 were requested"),
        ([c.DealtPile("pile:x", 1)] * 2, BadRequest, "each pile once"),
        ([c.DealtPile("pile:x", 0)], BadRequest, "at least one card to each pile"),
        ([c.DealtPile(DECK, 1)], BadRequest, "seats and to piles"),
        ([c.DealtPile("hand:1", 1)], BadRequest, "seats and to piles"),
        ([c.DealtPile("pile:", 1)], BadRequest, "seats and to piles"),
        ([c.DealtPile(f"pile:{n}", 1) for n in range(256)], BadRequest, "at most 256 stacks"),
    ],
)
def test_an_impossible_deal_moves_no_card(play, piles, refusal, saying):
    play().refuses(c.Deal(HOST, 1, piles=tuple(piles)), refusal, saying)


def test_a_deal_needs_a_card_for_a_seat_or_a_pile(play):
    game = play(seats=0)
    game.refuses(c.Deal(HOST, 0), BadRequest, "at least one card to each seat")
    game.refuses(c.Deal(HOST, 1, piles=(c.DealtPile("pile:x", 1),)), BadRequest, "No seat")
    assert game.decide(c.Deal(HOST, 0, piles=(c.DealtPile("pile:x", 1),)))


def test_a_deal_to_piles_does_not_get_round_the_rules_for_piles(play):
    for rule in ("pile", "turn"):
        game = play(rules={"deal": "players", rule: "host"})
        deal = c.Deal(ONE, 1, piles=(c.DealtPile("pile:x", 1, "up"),))
        game.refuses(deal, NotHost, f"only the host to {rule}")
        assert game.decide(c.Deal(ONE, 1))


def test_a_pile_may_get_cards_that_no_shuffle_has_reached(play):
    game = play(steps=2)
    piles = (c.DealtPile("pile:x", 1),)
    game.refuses(c.Deal(HOST, 2, piles=piles), NotSealed)
    assert game.decide(c.Deal(HOST, 1, piles=piles))
