"""Expected distributions, compared with all orders of a few cards and known values for 52."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

from dealer.lab.report import cycles, fixed_points, moments, rising_sequences, sum_tails


def fixed_in(order):
    return sum(card == place for place, card in enumerate(order))


def cycles_in(order):
    seen, found = set(), 0
    for start in range(len(order)):
        found += start not in seen
        while start not in seen:
            seen.add(start)
            start = order[start]
    return found


def rising_in(order):
    """The number of rising sequences, each collected from its least card."""
    left, found = sorted(order), 0
    while left:
        found += 1
        card, place = left.pop(0), -1
        while card is not None:
            place = order.index(card, place + 1)
            card = card + 1 if card + 1 in order[place + 1 :] else None
            if card is not None:
                left.remove(card)
    return found


@pytest.mark.parametrize("n", range(7))
@pytest.mark.parametrize(
    ("chances", "number"),
    [(fixed_points, fixed_in), (cycles, cycles_in), (rising_sequences, rising_in)],
)
def test_all_orders_of_a_few_cards(chances, number, n):
    orders = list(permutations(range(n)))
    counts = np.bincount([number(order) for order in orders], minlength=n + 1)
    assert chances(n) == pytest.approx(counts / len(orders))


@pytest.mark.parametrize("n", [52, 416, 1024])
def test_large_decks(n):
    harmonic = sum(1 / i for i in range(1, n + 1))
    squares = sum(1 / i**2 for i in range(1, n + 1))
    assert moments(fixed_points(n)) == pytest.approx((1, 1))
    assert moments(cycles(n)) == pytest.approx((harmonic, harmonic - squares))
    assert moments(rising_sequences(n)) == pytest.approx(((n + 1) / 2, (n + 1) / 12))
    for chances in (fixed_points(n), cycles(n), rising_sequences(n)):
        assert len(chances) == n + 1
        assert chances.sum() == pytest.approx(1)
        assert (chances >= 0).all()


def test_the_numbers_for_a_deck_of_52():
    assert moments(cycles(52)) == pytest.approx((4.538, 2.912), abs=5e-4)
    assert moments(rising_sequences(52)) == pytest.approx((26.5, 4.417), abs=5e-4)


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_sums_of_a_few(count):
    chances = cycles(3)
    exact: dict[int, float] = {}
    for numbers in product(range(4), repeat=count):
        chance = float(np.prod(chances[list(numbers)]))
        exact[sum(numbers)] = exact.get(sum(numbers), 0.0) + chance
    for total in range(-1, 3 * count + 2):
        low, high = sum_tails(chances, count, total)
        assert low == pytest.approx(sum(p for s, p in exact.items() if s <= total))
        assert high == pytest.approx(sum(p for s, p in exact.items() if s >= total))


def test_sums_of_many_shuffles_keep_small_probabilities():
    """The probability of no fixed point in 40 shuffles of 52 is e^−40, to a millionth of it."""
    low, high = sum_tails(fixed_points(52), 40, 0)
    assert low == pytest.approx(np.exp(-40.0), rel=1e-6)
    assert high == 1.0
    low, high = sum_tails(fixed_points(52), 10_000, 10_000)
    assert low + high == pytest.approx(1 + 1 / np.sqrt(2 * np.pi * 10_000), rel=1e-5)
