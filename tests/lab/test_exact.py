"""Exact probabilities: the fair methods give every order equally often, the biased ones do not."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations

import pytest

from dealer.lab import shuffles
from dealer.lab.exact import Exact, enumerated, of_method, repeated, unfairness
from dealer.lab.methods import METHODS, method


@pytest.mark.parametrize("n", [2, 3, 4, 5])
@pytest.mark.parametrize("name", METHODS)
def test_fair_methods_are_exactly_fair(name, n):
    if n == 5 and name in ("random-key", "visited-set", "transpositions"):
        n = 2  # too many branches for 5 cards
    chances, sample = of_method(name, n)
    bias = unfairness(chances, n, sample)
    if method(name, n=n, steps=n // 2 if name == "partial" else None).fair:
        assert bias == 0
    elif n > 2:
        assert bias > 0


def test_the_chances_of_all_orders_are_one():
    for name in METHODS:
        exact, _ = of_method(name, 3)
        assert sum(exact.chances.values()) + exact.open == 1


def test_swap_any_of_three_gives_four_or_five_of_twenty_seven():
    exact = enumerated(shuffles.swap_any, 3)
    assert sorted(exact.chances.values()) == [Fraction(4, 27)] * 3 + [Fraction(5, 27)] * 3
    assert unfairness(exact, 3) == Fraction(1, 9)


def test_sattolo_reaches_only_the_cycles():
    exact = enumerated(shuffles.sattolo, 4)
    assert set(exact.chances.values()) == {Fraction(1, 6)}
    assert all(order[place] != place for order in exact.chances for place in range(4))


def test_an_impossible_order_is_unfair_even_if_the_others_are_even():
    five = dict.fromkeys(list(permutations(range(3)))[1:], Fraction(1, 5))
    assert unfairness(Exact(five, Fraction(0)), 3) == 1


@pytest.mark.parametrize("n", [3, 4])
def test_a_thousand_transpositions_have_the_bias_of_the_theory(n):
    """The mean number of fixed points is 1 + (n−1)·(1 − 2/n)^steps for any number of steps."""
    exact, _ = of_method("transpositions", n)
    stay = sum(
        chance * sum(card == place for place, card in enumerate(order))
        for order, chance in exact.chances.items()
    )
    assert stay == 1 + (n - 1) * (1 - Fraction(2, n)) ** 1000
    assert 0 < unfairness(exact, n) < Fraction(1, 10**200)


def test_repeated_agrees_with_consecutive_enumerations():
    once = enumerated(lambda cards, below: shuffles.transpositions(cards, below, steps=1), 3)
    thrice = enumerated(lambda cards, below: shuffles.transpositions(cards, below, steps=3), 3)
    assert repeated(once.chances, 3) == thrice.chances


def test_unbounded_methods_have_an_open_probability():
    exact = enumerated(shuffles.visited_set, 2, limit=4)
    assert exact.open == Fraction(1, 8)
    assert set(exact.chances.values()) == {Fraction(7, 16)}


def test_every_sequence_of_numbers_is_enumerated_once():
    seen = []

    def one(cards, below):
        seen.append((below(2), below(3), below(2)))
        return list(cards)

    enumerated(one, 3)
    assert sorted(seen) == sorted({(a, b, c) for a in (0, 1) for b in (0, 1, 2) for c in (0, 1)})


def test_only_the_top_of_a_partial_shuffle_is_fair():
    exact, sample = of_method("partial", 4)
    assert sample == 2
    assert len(exact.chances) == math.perm(4, 2)
    assert {order[2:] for order in exact.chances} == set(permutations(range(4), 2))
    assert unfairness(exact, 4) > 0
