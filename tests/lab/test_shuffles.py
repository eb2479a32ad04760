"""Each shuffle of many decks takes each deck's numbers as a shuffle of that deck alone would."""

from __future__ import annotations

import random
import sys
from functools import cmp_to_key

import numpy as np
import pytest

from dealer.errors import ConfigurationError
from dealer.game import shuffle as game
from dealer.lab.shuffles import (
    METHODS,
    NumberSource,
    exchanges,
    method,
    ordered,
    random_comparator,
    random_key,
    visited_set,
)
from tests.game.test_shuffle import answers

SEEDS = range(40)


class RowByRow(NumberSource):
    """A number source with a function `below` for each row, so that the rows are independent."""

    def __init__(self, *belows):
        self.belows = belows

    def draw(self, bound, rows):
        assert len(set(rows.tolist())) == len(rows)
        return np.array([self.belows[row](bound) for row in rows], dtype=np.intp)


def engines(seeds=SEEDS):
    return RowByRow(*[random.Random(seed).randrange for seed in seeds])


def shuffled(cards, name, *numbers, steps=None):
    """One deck, shuffled with these numbers."""
    n = len(cards)
    (deck,) = method(name, n=n, steps=steps).shuffle(ordered(1, n), RowByRow(answers(numbers)))
    return "".join(cards[place] for place in deck)


def by_key(n, randrange, *, base, digits):
    while True:
        keys = []
        for _ in range(n):
            key = 0
            for _ in range(digits):
                key = key * base + randrange(base)
            keys.append(key)
        if len(set(keys)) == n:
            return sorted(range(n), key=keys.__getitem__)


def unvisited(n, randrange):
    taken: list[int] = []
    while len(taken) < n:
        if (place := randrange(n)) not in taken:
            taken.append(place)
    return taken


@pytest.mark.parametrize("n", [0, 1, 2, 3, 7, 52, 70])
def test_many_decks_are_shuffled_as_each_of_them_alone(n):
    for name, alone in (
        ("backward", game.shuffled),
        ("random-key", lambda cards, below: by_key(n, below, base=1024, digits=4)),
        ("visited-set", lambda cards, below: unvisited(n, below)),
    ):
        many = method(name, n=n).shuffle(ordered(len(SEEDS), n), engines()).tolist()
        assert many == [list(alone(range(n), random.Random(seed).randrange)) for seed in SEEDS]


def test_equal_keys_are_drawn_again():
    many = random_key(ordered(60, 4), engines(range(60)), base=5, digits=1).tolist()
    assert many == [
        by_key(4, random.Random(seed).randrange, base=5, digits=1) for seed in range(60)
    ]


@pytest.mark.parametrize("n", [0, 1, 2, 9])
@pytest.mark.parametrize("name", METHODS)
def test_the_result_has_the_same_cards(name, n):
    decks = method(name, n=n).shuffle(ordered(len(SEEDS), n), engines())
    assert np.sort(decks, axis=1).tolist() == ordered(len(SEEDS), n).tolist()


def test_fair_methods_take_the_same_steps_as_the_game():
    # The swaps 4↔1, 3↔3, 2↔0, 1↔1 of the well-known example.
    assert shuffled("ABCDE", "backward", 1, 3, 0, 1) == "CEADB"
    # From the bottom: 0↔3, 1↔4, 2↔2, 3↔4.
    assert shuffled("ABCDE", "forward", 3, 3, 0, 1) == "DECBA"
    assert shuffled("ABCDE", "partial", 1, 3, steps=2) == "AECDB"
    below = random.Random(3).randrange
    steps = [(i, j) for _, i, j in game.forward(52, below)]
    drawn = random.Random(3).randrange
    own = [(i, first + drawn(count)) for i, first, count in exchanges("forward", 52, 51)]
    assert own == steps


def test_a_partial_shuffle_makes_the_exchanges_of_the_game():
    decks = method("partial", n=52, steps=13).shuffle(ordered(1, 52), engines([8]))
    cards = list(range(52))
    for _, i, j in game.backward(52, 13, random.Random(8).randrange):
        cards[i], cards[j] = cards[j], cards[i]
    assert decks[0].tolist() == cards


def test_biased_methods_have_their_known_bias():
    assert shuffled("ABC", "swap-any", 1, 2, 0) == "ACB"
    assert shuffled("ABC", "swap-any-but-last", 1, 1, 0) == "CAB"
    assert shuffled("ABC", "transpositions", 0, 2, 2, 1, steps=2) == "CAB"
    assert shuffled("ABC", "sattolo", 0, 0) == "BCA"


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="its sort makes other comparisons")
@pytest.mark.parametrize("n", [2, 3, 10, 52, 63])
def test_the_random_comparator_agrees_with_the_sort_of_python(n):
    def sorted_by(coin):
        return sorted(range(n), key=cmp_to_key(lambda a, b: -coin.randrange(2)))

    many = random_comparator(ordered(len(SEEDS), n), engines()).tolist()
    assert many == [sorted_by(random.Random(seed)) for seed in SEEDS]


def test_a_visited_place_is_skipped():
    decks = visited_set(ordered(1, 3), RowByRow(answers([2, 2, 0, 2, 1])))
    assert decks.tolist() == [[2, 0, 1]]


@pytest.mark.parametrize("n", [3, 52])
def test_sattolo_has_no_fixed_point_and_one_cycle(n):
    for deck in method("sattolo", n=n).shuffle(ordered(len(SEEDS), n), engines()).tolist():
        place, length = deck[0], 1
        while place:
            place, length = deck[place], length + 1
        assert length == n


@pytest.mark.parametrize(
    ("name", "n", "steps"),
    [("riffle", 52, None), ("backward", 52, 3), ("backward", 1025, None), ("partial", 5, 5)],
)
def test_wrong_methods_are_reported(name, n, steps):
    with pytest.raises(ConfigurationError):
        method(name, n=n, steps=steps)


def test_a_partial_shuffle_of_all_steps_is_a_full_one():
    assert method("partial", n=5, steps=4).sample == 5
    assert method("partial", n=5, steps=3).sample == 3
    assert method("partial", n=52).sample == 13
    assert "70 times" in method("transpositions", n=5, steps=70).sentence
