"""The counted costs of each shuffle method, and their growth."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from dealer.lab.costs import SIZES, cost_lines, costs
from dealer.lab.shuffles import METHODS


def operations(name):
    return [cost.operations for cost in costs(name)]


@pytest.mark.parametrize("name", ["backward", "forward", "sattolo"])
def test_one_number_per_card_except_one(name):
    assert operations(name) == [n - 1 for n in SIZES]


@pytest.mark.parametrize("name", ["swap-any", "swap-any-but-last"])
def test_one_number_per_card(name):
    assert operations(name) == list(SIZES)


def test_a_partial_shuffle_costs_one_number_per_step():
    assert operations("partial") == [n // 4 for n in SIZES]


def test_a_thousand_transpositions_cost_the_same_for_every_deck():
    assert operations("transpositions") == [2000] * len(SIZES)


@pytest.mark.parametrize("name", ["random-key", "random-comparator", "visited-set"])
def test_the_cost_per_card_grows_with_the_logarithm(name):
    per_card = [cost / n for cost, n in zip(operations(name), SIZES, strict=True)]
    steps = [b - a for a, b in pairwise(per_card)]
    # log2 of four is 2 comparisons; ln of four is 1.39 numbers.
    expected = math.log(4) if name == "visited-set" else 2
    assert steps == pytest.approx([expected] * 3, abs=0.45)


def test_a_sort_needs_at_least_the_logarithm_of_all_orders():
    for cost in costs("random-key"):
        assert cost.numbers == 4 * cost.n
        assert math.lgamma(cost.n + 1) / math.log(2) * 0.95 < cost.comparisons
        assert cost.comparisons < cost.n * math.log2(cost.n)


def test_the_table_has_a_line_for_each_method():
    measured = {name: costs(name, sizes=(8, 16)) for name in METHODS}
    assert measured["backward"][0].seconds > 0
    lines = cost_lines(measured)
    assert [line.split()[0] for line in lines[2 : 2 + len(METHODS)]] == list(METHODS)
    assert "×2.14" in lines[2]  # 15 numbers after 7
    assert "×1.00" in lines[2 + METHODS.index("transpositions")]
