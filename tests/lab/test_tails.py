"""Tails against closed forms, in exact arithmetic where there is one."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dealer.lab.tails import chi_square_p, chi_square_tails, holm, normal_p


def upper(x, df):
    """More than x: e^(−x/2)·Σ (x/2)^i/i! for even df; from erfc upwards for odd ones."""
    half = Fraction(x) / 2
    if df % 2 == 0:
        terms, term = Fraction(0), Fraction(1)
        for i in range(df // 2):
            terms += term
            term = term * half / (i + 1)
        return float(terms) * math.exp(-half)
    total = math.erfc(math.sqrt(half))
    for i in range(df // 2):
        a = i + 0.5
        total += math.exp(a * math.log(half) - half - math.lgamma(a + 1))
    return total


@pytest.mark.parametrize("df", [1, 2, 3, 4, 9, 23, 24, 119, 120])
@pytest.mark.parametrize("part", [Fraction(1, 10), Fraction(1, 2), 1, Fraction(3, 2), 3, 6])
def test_chi_square(df, part):
    x = part * df
    low, high = chi_square_tails(float(x), df)
    assert high == pytest.approx(upper(x, df), rel=1e-9)
    assert low == pytest.approx(1 - upper(x, df), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("x", [2100, 2500, 2700, 3200])
def test_chi_square_of_a_whole_deck(x):
    terms = math.fsum(
        math.exp(i * math.log(x / 2) - x / 2 - math.lgamma(i + 1)) for i in range(1300)
    )
    assert chi_square_tails(x, 2600)[1] == pytest.approx(terms, rel=1e-9)


def test_known_percentiles():
    assert chi_square_tails(35.172, 23)[1] == pytest.approx(0.05, abs=1e-5)
    assert chi_square_tails(3.841459, 1)[1] == pytest.approx(0.05, abs=1e-7)
    assert normal_p(1.959964) == pytest.approx(0.05, abs=1e-7)
    assert normal_p(-5) == normal_p(5) == pytest.approx(5.733e-7, rel=1e-3)


def test_too_even_is_as_unlikely_as_too_uneven():
    assert chi_square_p(0.0, 23) == 0.0
    assert chi_square_p(3.0, 23) < 1e-6
    assert chi_square_p(90.0, 23) < 1e-6
    assert chi_square_p(22.3, 23) > 0.9
    assert chi_square_p(1e7, 23) == 0.0
    assert chi_square_p(0.0, 1) == 1.0
    assert chi_square_p(40.0, 1) < 1e-6
    assert chi_square_p(1e6, 172225) < 1e-99


def test_holm():
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.5]) == [1.0, 1.0]
    assert holm([]) == []
