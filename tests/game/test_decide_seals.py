"""Swaps from the tape, a new slot for every place, and the cards that a partial shuffle reached."""

from __future__ import annotations

import pytest

from dealer.errors import (
    NoShuffle,
    NotSealed,
)
from dealer.game.commands import (
    Actor,
    Deal,
    Draw,
    DrawAtRandom,
    FinishShuffle,
    Move,
    Show,
    StartShuffle,
)
from dealer.game.events import (
    CardsSwapped,
    DeckSealed,
    EntropyClosed,
    ShuffleStarted,
)
from dealer.game.shuffle import steps_of
from dealer.game.tape import Tape

HOST = Actor(host=True)
ONE, TWO, THREE = (Actor(seat=seat) for seat in (1, 2, 3))
SHUFFLE = StartShuffle(HOST)
STARTED = ShuffleStarted(1, 0, "deck", 8, "backward", 7)


# The swaps of the tape, and the seal


@pytest.mark.parametrize(
    ("algorithm", "steps"), [("backward", 7), ("backward", 3), ("backward", 0), ("forward", 7)]
)
def test_a_shuffle_makes_the_swaps_of_its_tape(fresh, algorithm, steps):
    game = fresh()
    game.do(StartShuffle(HOST, "deck", algorithm, steps))
    for seat in (2, 1):
        game.do(game.commit(seat))
    for seat in (2, 1):
        game.do(game.reveal(seat))
    tape = Tape(
        secret=game.house.secret,
        nonces=[game.nonce(1), game.nonce(2)],
        root=b"R" * 32,
        k=0,
        n=8,
    )
    order = list("abcdefgh")
    swaps = []
    for step, i, j in steps_of(algorithm, n=8, steps=steps, below=tape.below):
        order[i], order[j] = order[j], order[i]
        swaps.append(CardsSwapped(1, 0, step, i, j))
    sealed = DeckSealed(1, 0, 0, tuple(game.house.slot_commitments(0, order)))
    assert game.do(FinishShuffle(b"R" * 32)) == [*swaps, sealed]
    assert game.stack("deck") == list(range(8))
    assert [game.card(slot) for slot in range(8)] == order
    assert game.round.commitment_of(3) == sealed.slots[3]
    assert game.round.k == 1
    assert game.round.shuffle is None


def test_a_shuffle_is_finished_once(play):
    play().refuses(FinishShuffle(b"R" * 32), NoShuffle, "No shuffle is running")


def test_every_seal_gives_new_slots(play):
    """No card can be followed through a shuffle, even if it was public."""
    game = play()
    game.do(Draw(ONE))
    game.do(Show(HOST, "deck"))
    game.do(Show(HOST, "deck", (0,), to=2))
    held = game.stack("hand:1")
    start, *_ = game.decide(SHUFFLE)
    assert (start.k, start.n) == (1, 7)
    before = [game.card(slot) for slot in game.stack("deck")]
    game.shuffle()
    assert game.stack("deck") == list(range(8, 15))
    assert sorted(game.card(slot) for slot in range(8, 15)) == sorted(before)
    assert not any(game.round.sees(seat, s) for seat in (1, 2) for s in (0, 6, *range(8, 15)))
    assert game.stack("hand:1") == held
    assert game.round.sees(1, held[0])


def test_a_pile_is_shuffled_alone(play):
    game = play()
    game.do(Move(HOST, "burn", "deck", "pile:burn", count=3))
    deck = game.stack("deck")
    assert game.decide(StartShuffle(HOST, "pile:burn"))[0].n == 3
    game.shuffle("pile:burn")
    assert game.stack("pile:burn") == [8, 9, 10]
    assert game.stack("deck") == deck


# Partial shuffles: cards that they did not reach may not be drawn


def test_only_cards_that_a_partial_shuffle_reached_may_be_drawn(play):
    game = play(steps=3)
    game.refuses(Draw(ONE, 4), NotSealed, "did not reach")
    game.refuses(Draw(ONE, where="bottom"), NotSealed, "did not reach")
    game.refuses(Draw(ONE, cards=(4,)), NotSealed, "did not reach")
    game.refuses(Deal(HOST, 2), NotSealed, "did not reach")
    assert [event.slot for event in game.do(Draw(ONE, 3))] == [7, 6, 5]
    game.refuses(Draw(ONE), NotSealed)


def test_an_unreached_card_cannot_be_moved_to_a_hand_by_a_pile(play):
    game = play(steps=2)
    game.do(Move(HOST, "pile", "deck", "pile:x", cards=(0, 7)))
    game.refuses(Draw(ONE, source="pile:x", cards=(0,)), NotSealed)
    game.refuses(Move(ONE, "pile", "pile:x", "hand:1", cards=(0,)), NotSealed)
    game.refuses(Move(ONE, "pile", "pile:x", "hand:2", cards=(7, 0)), NotSealed)
    assert game.do(Draw(ONE, source="pile:x", cards=(7,)))


def test_after_a_full_shuffle_all_cards_may_be_drawn(play):
    game = play(steps=2)
    game.shuffle()
    assert len(game.do(Draw(ONE, 8))) == 8


def test_a_partial_shuffle_of_a_shuffled_deck_leaves_all_drawable(play):
    game = play()
    game.shuffle(steps=1)
    assert len(game.do(Draw(ONE, 8))) == 8


def test_a_second_partial_shuffle_reaches_only_its_own_steps(play):
    game = play(steps=3)
    game.shuffle(steps=2)
    game.refuses(Draw(ONE, 3), NotSealed)
    assert game.do(Draw(ONE, 2))


def test_one_card_is_shuffled_without_a_step(play):
    game = play(deck="a", steps=0)
    assert game.do(Draw(ONE))


def test_drawing_at_random_is_a_partial_shuffle(play):
    game = play(shuffled=False)
    started = ShuffleStarted(1, 0, "deck", 8, "backward", 2)
    assert game.do(DrawAtRandom(ONE, 2)) == [started, EntropyClosed(1, 0)]
    game.settle()
    assert [event.slot for event in game.do(Draw(ONE, 2))] == [7, 6]
    game.refuses(Draw(ONE), NotSealed)


def test_drawing_all_at_random_takes_one_step_less(play):
    assert play(shuffled=False).decide(DrawAtRandom(ONE, 8))[0].steps == 7


def test_a_random_draw_from_a_pile(play):
    game = play()
    game.do(Move(HOST, "pile", "deck", "pile:x", count=4))
    started = game.decide(DrawAtRandom(ONE, 1, "pile:x"))[0]
    assert started == ShuffleStarted(1, 1, "pile:x", 4, "backward", 1)
