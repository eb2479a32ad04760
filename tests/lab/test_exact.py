"""Exact probabilities: the fair methods give every order equally often, the biased ones do not."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest

from dealer.lab.shuffles import METHODS, method, visited_set

from .enumeration import Exact, enumerated, of_method, repeated, unfairness


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", METHODS)
def test_fair_methods_are_exactly_fair(name, n):
    exact, sample = of_method(name, n)
    bias = unfairness(exact, n, sample)
    if n < 2 or method(name, n=n, steps=n // 2 if name == "partial" else None).fair:
        assert bias == 0
    elif n > 2:
        assert bias > 0


@pytest.mark.parametrize("n", range(6))
def test_every_way_is_counted_or_open(n):
    for name in METHODS:
        exact, _ = of_method(name, n)
        assert sum(exact.counts.values()) + exact.open == exact.ways
        assert (exact.open > 0) == (name in ("random-key", "visited-set") and n > 1)


def test_swap_any_of_three_gives_four_or_five_of_twenty_seven():
    exact, _ = of_method("swap-any", 3)
    assert exact.ways == 27
    assert [exact.counts[order] for order in permutations(range(3))] == [4, 5, 5, 5, 4, 4]
    assert unfairness(exact, 3) == Fraction(1, 9)


def test_sattolo_reaches_only_the_cycles():
    exact, _ = of_method("sattolo", 4)
    assert set(exact.counts.values()) == {exact.ways // 6}
    assert all(order[place] != place for order in exact.counts for place in range(4))


def test_an_impossible_order_is_unfair_even_if_the_others_are_even():
    five = dict.fromkeys(list(permutations(range(3)))[1:], 1)
    assert unfairness(Exact(five, 5), 3) == 1


@pytest.mark.parametrize("n", [3, 4])
def test_a_thousand_transpositions_have_the_bias_of_the_theory(n):
    """The mean number of fixed points is 1 + (n−1)·(1 − 2/n)^steps for any number of steps."""
    exact, _ = of_method("transpositions", n)
    stay = sum(
        Fraction(count, exact.ways) * sum(card == place for place, card in enumerate(order))
        for order, count in exact.counts.items()
    )
    assert stay == 1 + (n - 1) * (1 - Fraction(2, n)) ** 1000
    assert 0 < unfairness(exact, n) < Fraction(1, 10**200)


def test_repeated_agrees_with_consecutive_enumerations():
    once, thrice = (
        enumerated(method("transpositions", n=3, steps=steps).shuffle, 3, 9**steps)
        for steps in (1, 3)
    )
    assert repeated(once, 3) == thrice


def test_unbounded_methods_have_an_open_probability():
    exact = enumerated(visited_set, 2, 2**4)
    assert Fraction(exact.open, exact.ways) == Fraction(1, 8)
    assert {Fraction(count, exact.ways) for count in exact.counts.values()} == {Fraction(7, 16)}


def test_every_sequence_of_numbers_is_enumerated_once():
    seen: list[tuple[int, ...]] = []

    def three(decks, numbers):
        rows = np.arange(len(decks))
        seen.extend(zip(*(numbers.draw(bound, rows).tolist() for bound in (2, 3, 2)), strict=True))
        return decks

    enumerated(three, 3, 12)
    assert sorted(seen) == sorted({(a, b, c) for a in (0, 1) for b in (0, 1, 2) for c in (0, 1)})


def test_only_the_top_of_a_partial_shuffle_is_fair():
    exact, sample = of_method("partial", 4)
    assert sample == 2
    assert len(exact.counts) == math.perm(4, 2)
    assert {order[2:] for order in exact.counts} == set(permutations(range(4), 2))
    assert unfairness(exact, 4) > 0
