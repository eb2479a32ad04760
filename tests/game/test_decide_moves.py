"""Cards from stack to stack: burns, discards, plays, gifts, returns, and any other move."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from dealer.errors import BadPlace, BadRequest, CardNotInHand, CardNotThere, DeckEmpty, NotYourSeat
from dealer.game.commands import Actor, Draw, LeaveSeat, Move, Show, TransferHost
from dealer.game.decide.selection import STACKS_MAX
from dealer.game.events import CardMoved, CardShown
from dealer.game.stacks import BURN, DECK, DISCARD

HOST = Actor(host=True)
ONE, TWO, THREE = (Actor(seat=seat) for seat in (1, 2, 3))


def holding(play, cards=3, **options):
    """Seat 1 holds slots 7, 6, 5; the deck has 0 … 4."""
    game = play(**options)
    game.do(Draw(ONE, cards))
    return game


def moved(events):
    return [(e.slot, e.place) for e in events if isinstance(e, CardMoved)]


def test_a_burn_puts_the_top_card_on_the_burn_pile(play):
    game = play()
    assert game.do(Move(HOST, "burn", DECK, BURN)) == [CardMoved(1, 7, DECK, BURN, 0, None)]
    assert game.do(Move(HOST, "burn", DECK, BURN, count=2)) == [
        CardMoved(1, 6, DECK, BURN, 1, None),
        CardMoved(1, 5, DECK, BURN, 2, None),
    ]
    assert game.stack(BURN) == [7, 6, 5]
    assert not any(game.round.sees(seat, slot) for seat in (None, 1, 2) for slot in (7, 6, 5))


def test_a_discard_is_face_down_and_hidden(play):
    game = holding(play)
    card = game.card(6)
    discard = Move(ONE, "discard", "hand:1", DISCARD, (card,))
    assert game.do(discard) == [CardMoved(1, 6, "hand:1", DISCARD, 0, None)]
    assert game.stack("hand:1") == [7, 5]
    assert game.round.sees(1, 6)
    assert not game.round.sees(2, 6)


def test_a_card_is_played_face_up(play):
    game = holding(play)
    cards = Move(ONE, "play", "hand:1", "pile:table", (7, 6), face="up")
    assert game.do(cards) == [
        CardMoved(1, 7, "hand:1", "pile:table", 0, None),
        CardShown(1, 7, game.card(7), game.house.slot_salt(7)),
        CardMoved(1, 6, "hand:1", "pile:table", 1, None),
        CardShown(1, 6, game.card(6), game.house.slot_salt(6)),
    ]
    assert game.round.sees(2, 7)


def test_a_card_that_is_up_stays_up_and_is_not_shown_twice(play):
    game = holding(play)
    game.do(Show(ONE, "hand:1", (7,)))
    up = Move(ONE, "play", "hand:1", "pile:table", (7,), face="up")
    assert game.do(up) == [CardMoved(1, 7, "hand:1", "pile:table", 0, None)]
    game.do(Move(ONE, "pile", "pile:table", DECK))
    assert game.round.sees(2, 7)


def test_a_given_card_shows_its_face_to_the_receiving_seat(play):
    game = holding(play, seats=3)
    give = Move(ONE, "give", "hand:1", "hand:2", (7,))
    assert game.do(give) == [CardMoved(1, 7, "hand:1", "hand:2", 0, game.card(7))]
    assert game.round.sees(2, 7)
    assert game.round.sees(1, 7)
    assert not game.round.sees(3, 7)


def test_a_returned_card_goes_to_the_named_place(play):
    game = holding(play)
    assert moved(game.do(Move(ONE, "return", "hand:1", DECK, (7,)))) == [(7, 5)]
    assert moved(game.do(Move(ONE, "return", "hand:1", DECK, (6,), where="bottom"))) == [(6, 0)]
    assert moved(game.do(Move(ONE, "return", "hand:1", DECK, (5,), where=2))) == [(5, 2)]
    assert game.stack("deck") == [6, 0, 5, 1, 2, 3, 4, 7]


def test_several_cards_are_stacked_in_the_order_named(play):
    game = holding(play)
    at_place = Move(ONE, "return", "hand:1", DECK, (5, 7), where=2)
    assert moved(game.decide(at_place)) == [(5, 2), (7, 3)]
    to_bottom = Move(ONE, "return", "hand:1", DECK, (5, 7), where="bottom")
    assert moved(game.decide(to_bottom)) == [(5, 0), (7, 0)]
    to_top = Move(ONE, "return", "hand:1", DECK, (5, 7))
    assert moved(game.decide(to_top)) == [(5, 5), (7, 6)]


@pytest.mark.parametrize(
    ("slots", "where", "then"),
    [
        ((0,), "top", [1, 2, 3, 4, 5, 6, 7, 0]),
        ((0, 2), "top", [1, 3, 4, 5, 6, 7, 0, 2]),
        ((7,), "bottom", [7, 0, 1, 2, 3, 4, 5, 6]),
        ((7, 6), "bottom", [6, 7, 0, 1, 2, 3, 4, 5]),
        ((0,), 0, [0, 1, 2, 3, 4, 5, 6, 7]),
        ((0,), 7, [1, 2, 3, 4, 5, 6, 7, 0]),
        ((0, 1), 1, [0, 1, 2, 3, 4, 5, 6, 7]),
        ((0, 1), 7, [2, 3, 4, 5, 6, 7, 0, 1]),
        ((7, 0), 3, [1, 2, 7, 0, 3, 4, 5, 6]),
        ((6, 7), 3, [0, 1, 2, 6, 7, 3, 4, 5]),
    ],
)
def test_cards_move_within_a_stack(play, slots, where, then):
    """`place` is counted without the moved card, and cards named together stay together."""
    game = play()
    for _, place in moved(game.do(Move(HOST, "pile", DECK, DECK, slots, where=where))):
        assert 0 <= place <= 7
    assert game.stack("deck") == then


def places_one_by_one(cards, slots, where):
    """The place of each card: the first one at `where`, each later one on the one before."""
    order, places = list(cards), []
    for turn, slot in enumerate(slots):
        order.remove(slot)
        if turn:
            place = order.index(slots[turn - 1]) + 1
        else:
            place = len(order) if where == "top" else where
        order.insert(place, slot)
        places.append(place)
    return order, places


def test_any_cards_move_within_a_stack(play):
    chance = random.Random("places")
    for _ in range(200):
        game = play(deck=tuple(f"{n:02}" for n in range(12)))
        slots = tuple(chance.sample(range(12), chance.randint(1, 12)))
        where = chance.choice(["top", *range(12)])
        order, places = places_one_by_one(game.stack("deck"), slots, where)
        events = game.do(Move(HOST, "pile", DECK, DECK, slots, where=where))
        assert [place for _, place in moved(events)] == places
        assert game.stack("deck") == order


class Counted(int):
    """A card that counts how often one is compared with another."""

    comparisons = 0

    def __eq__(self, other):
        Counted.comparisons += 1
        return int(self) == int(other)

    __hash__ = int.__hash__


def test_the_work_of_a_move_grows_with_its_cards_and_not_their_square(play):
    n = 1000
    game = play(deck=tuple(f"{number:04}" for number in range(n)))
    game.round.stacks[DECK] = [Counted(card) for card in game.stack(DECK)]
    Counted.comparisons = 0
    game.decide(Move(HOST, "pile", DECK, DECK, tuple(range(n)), where="top"))
    assert Counted.comparisons <= 4 * n


def test_a_hand_may_be_sorted(play):
    game = holding(play)
    game.do(Move(ONE, "play", "hand:1", "hand:1", (7,), where="top"))
    assert game.stack("hand:1") == [6, 5, 7]


def test_the_host_collects_hands_unseen(play):
    game = holding(play)
    card = game.card(7)
    game.refuses(Move(HOST, "collect", "hand:1", DISCARD, (card,)), CardNotInHand)
    game.do(Move(HOST, "collect", "hand:1", DISCARD, count=3))
    assert game.stack(DISCARD) == [5, 6, 7]
    assert game.stack("hand:1") == []
    assert not game.round.sees(None, 7)


def test_the_player_whom_the_host_made_host_collects_hands(play):
    game = holding(play)
    game.do(TransferHost(HOST, 2))
    collect = Move(TWO, "collect", "hand:1", DISCARD, count=3)
    game.refuses(replace(collect, actor=HOST), NotYourSeat, "another seat's")
    game.refuses(replace(collect, actor=ONE, source="hand:2"), NotYourSeat, "another seat's")
    game.do(collect)
    assert game.stack(DISCARD) == [5, 6, 7]


def test_the_host_collects_an_abandoned_hand(play):
    game = holding(play)
    game.do(LeaveSeat(ONE))
    game.refuses(Move(ONE, "discard", "hand:1", DISCARD, (7,)), NotYourSeat, "no seat")
    game.do(Move(HOST, "collect", "hand:1", DECK, count=3))
    assert len(game.stack("deck")) == 8


@pytest.mark.parametrize("place", [-1, 6, "middle"])
def test_a_place_outside_the_stack_is_refused(play, place):
    game = holding(play)
    return_ = Move(ONE, "return", "hand:1", DECK, (7,), where=place)
    game.refuses(return_, BadPlace, "0 \\(the bottom\\) to 5")


def test_within_a_stack_the_last_place_is_one_less(play):
    play().refuses(Move(HOST, "pile", DECK, DECK, (0,), where=8), BadPlace, "to 7")


@pytest.mark.parametrize(
    ("command", "refusal", "saying"),
    [
        (Move(ONE, "discard", "hand:1", DISCARD, (4,)), CardNotInHand, "not in that hand"),
        (Move(ONE, "discard", "hand:1", DISCARD, ("zz",)), CardNotInHand, "not in that hand"),
        (Move(ONE, "discard", "hand:1", DISCARD, (7, 7)), BadRequest, "each card once"),
        (Move(ONE, "discard", "hand:1", DISCARD, ()), BadRequest, "at least one card"),
        (Move(ONE, "discard", "hand:1", DISCARD, (7,), 1), BadRequest, "not both"),
        (Move(ONE, "discard", "hand:1", DISCARD, count=4), DeckEmpty, "3 cards left"),
        (Move(ONE, "discard", "hand:1", DISCARD, count=0), BadRequest, "at least one card"),
        (Move(TWO, "discard", "hand:1", DISCARD, (7,)), NotYourSeat, "another seat's hand"),
        (Move(THREE, "discard", "hand:3", DISCARD, (7,)), NotYourSeat, "no seat"),
        (Move(ONE, "give", "hand:1", "hand:3", (7,)), BadRequest, "Seat 3 is not taken"),
        (Move(ONE, "give", "hand:1", "hand:1", (7,)), BadRequest, "the seat of another player"),
        (Move(ONE, "pile", "pile:x", DECK), DeckEmpty, "0 cards"),
        (Move(ONE, "pile", DECK, "pile:x", (7,)), CardNotThere, "not in that stack"),
        (Move(ONE, "pile", "hand:x", DECK), BadRequest, "A stack is deck"),
        (Move(ONE, "pile", DECK, "heap"), BadRequest, "A stack is deck"),
        (Move(ONE, "pile", DECK, "hand:0"), BadRequest, "A stack is deck"),
    ],
)
def test_an_invalid_move_is_refused(play, command, refusal, saying):
    holding(play).refuses(command, refusal, saying)


def test_a_code_names_a_card_only_for_a_player_who_has_seen_it(play):
    """The refusal is the same whether the card is there unseen, elsewhere or nowhere."""
    game = holding(play)
    game.do(Move(ONE, "discard", "hand:1", DISCARD, (7, 6)))
    sentences = set()
    for card in (game.card(7), game.card(5), game.card(0), "zz"):
        try:
            game.decide(Move(TWO, "pile", DISCARD, DECK, (card,)))
        except CardNotThere as refusal:
            sentences.add(str(refusal))
    assert len(sentences) == 1
    assert game.decide(Move(ONE, "pile", DISCARD, DECK, (game.card(7),)))


def test_the_number_of_piles_is_limited(play):
    game = play(shuffled=True)
    for number in range(STACKS_MAX):
        if len(game.table.round.stacks) == STACKS_MAX:
            break
        game.do(Move(HOST, "pile", DECK, f"pile:{number}"))
        game.do(Move(HOST, "pile", f"pile:{number}", DECK))
    game.refuses(Move(HOST, "pile", DECK, "pile:one.more"), BadRequest)
    game.do(Move(HOST, "pile", DECK, "pile:1"))
