"""p-values against known percentiles, and Holm's correction against a worked example."""

from __future__ import annotations

import pytest

from dealer.lab.report import TWO_SIDED_FROM, chi_square_p, holm


@pytest.mark.parametrize(("x", "df", "p"), [(3.841459, 1, 0.05), (14.067140, 7, 0.05)])
def test_few_degrees_of_freedom_use_the_upper_tail(x, df, p):
    assert df < TWO_SIDED_FROM
    assert chi_square_p(x, df) == pytest.approx(p, abs=1e-6)


@pytest.mark.parametrize("x", [38.0756, 11.6886])  # the 97.5th and the 2.5th percentile
def test_many_degrees_of_freedom_use_both_tails(x):
    assert chi_square_p(x, 23) == pytest.approx(0.05, abs=1e-4)


def test_too_even_counts_are_as_unlikely_as_too_uneven_ones():
    assert chi_square_p(0.0, 23) == 0.0
    assert chi_square_p(3.0, 23) < 1e-6
    assert chi_square_p(90.0, 23) < 1e-6
    assert chi_square_p(22.3, 23) > 0.9
    assert chi_square_p(1e7, 23) == 0.0
    assert chi_square_p(0.0, 1) == 1.0
    assert chi_square_p(40.0, 1) < 1e-6
    assert chi_square_p(1e6, 172225) < 1e-99


def test_holm():
    assert holm([0.005, 0.01, 0.03, 0.04]) == pytest.approx([0.02, 0.03, 0.06, 0.06])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []
