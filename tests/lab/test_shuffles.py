"""Each shuffle in two forms, one deck and many at once: equal numbers give equal decks."""

from __future__ import annotations

import random
import sys
from functools import cmp_to_key

import numpy as np
import pytest

from dealer.errors import ConfigurationError
from dealer.game import shuffle as game
from dealer.lab import shuffles, vectorised
from dealer.lab.methods import METHODS, method
from dealer.lab.vectorised import ordered
from tests.game.test_shuffle import answers


class RowByRow:
    """A number source with an engine for each row, so that the rows are independent."""

    def __init__(self, seeds):
        self.engines = [random.Random(seed) for seed in seeds]

    def begin(self, shuffles):
        pass

    def draw(self, bound, rows):
        assert len(set(rows.tolist())) == len(rows)
        return np.array([self.engines[row].randrange(bound) for row in rows], dtype=np.intp)


def steps_for(name, n):
    return {"partial": n // 3, "transpositions": 40}.get(name)


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 52, 70])
@pytest.mark.parametrize("name", METHODS)
def test_one_deck_and_many_decks_agree(name, n):
    one = method(name, n=n, steps=steps_for(name, n))
    seeds = range(40)
    many = one.many(ordered(len(seeds), n), RowByRow(seeds))
    for seed, deck in zip(seeds, many.tolist(), strict=True):
        assert deck == one.one(range(n), random.Random(seed).randrange)


def test_equal_keys_are_drawn_again_in_both_forms():
    seeds = range(60)
    many = vectorised.random_key(ordered(60, 4), RowByRow(seeds), base=5, digits=1)
    redrawn = 0
    for seed, deck in zip(seeds, many.tolist(), strict=True):
        engine = random.Random(seed)
        assert deck == shuffles.random_key(range(4), engine.randrange, base=5, digits=1)
        four = random.Random(seed)
        for _ in range(4):
            four.randrange(5)
        redrawn += engine.getstate() != four.getstate()
    assert redrawn > 20


@pytest.mark.parametrize("n", [0, 1, 2, 9])
@pytest.mark.parametrize("name", METHODS)
def test_the_result_has_the_same_cards_and_the_input_is_unchanged(name, n):
    given = [f"card {number}" for number in range(n)]
    kept = list(given)
    shuffled = method(name, n=n).one(given, random.Random(1).randrange)
    assert given == kept
    assert sorted(shuffled) == sorted(given)
    assert shuffled is not given


def test_fair_methods_take_the_same_steps_as_the_game():
    cards, below = list("ABCDE"), random.Random(5).randrange
    assert shuffles.backward(cards, random.Random(5).randrange) == game.shuffled(cards, below)
    # The swaps 4↔1, 3↔3, 2↔0, 1↔1 of the well-known example.
    assert shuffles.backward("ABCDE", answers([1, 3, 0, 1])) == list("CEADB")
    # From the bottom: 0↔3, 1↔4, 2↔2, 3↔4.
    assert shuffles.forward("ABCDE", answers([3, 3, 0, 1])) == list("DECBA")
    assert shuffles.partial("ABCDE", answers([1, 3]), steps=2) == list("AECDB")


def test_a_partial_shuffle_draws_the_cards_of_a_sample():
    below = random.Random(8).randrange
    top = shuffles.partial(range(52), random.Random(8).randrange, steps=13)[-13:][::-1]
    assert top == game.sample(range(52), 13, below)


def test_biased_methods_have_their_known_bias():
    assert shuffles.swap_any("ABC", answers([1, 2, 0])) == list("ACB")
    assert shuffles.swap_any_but_last("ABC", answers([1, 1, 0])) == list("CAB")
    assert shuffles.transpositions("ABC", answers([0, 2, 2, 1]), steps=2) == list("CAB")
    assert shuffles.sattolo("ABC", answers([0, 0])) == list("BCA")


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="its sort makes other comparisons")
@pytest.mark.parametrize("n", [2, 3, 10, 52, 63])
def test_the_random_comparator_agrees_with_the_sort_of_python(n):
    def sorted_by(coin):
        return sorted(range(n), key=cmp_to_key(lambda a, b: -coin.randrange(2)))

    for seed in range(50):
        own = sorted_by(random.Random(seed))
        assert shuffles.random_comparator(range(n), random.Random(seed).randrange) == own


@pytest.mark.parametrize("n", [3, 52])
def test_sattolo_has_no_fixed_point_and_one_cycle(n):
    deck = shuffles.sattolo(range(n), random.Random(3).randrange)
    place, length = deck[0], 1
    while place:
        place, length = deck[place], length + 1
    assert length == n


@pytest.mark.parametrize(
    ("name", "n", "steps"),
    [("riffle", 52, None), ("backward", 52, 3), ("backward", 1025, None), ("partial", 5, 5)],
)
def test_missing_tables_are_reported(name, n, steps):
    with pytest.raises(ConfigurationError):
        method(name, n=n, steps=steps)


def test_a_partial_shuffle_of_all_steps_is_a_full_one():
    assert method("partial", n=5, steps=4).sample == 5
    assert method("partial", n=5, steps=3).sample == 3
    assert method("partial", n=52).sample == 13
    assert "70 times" in method("transpositions", n=5, steps=70).sentence
