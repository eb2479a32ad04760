"""Fair methods pass, biased ones are detected, and p is uniform for fair shuffles."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from scipy.special import chdtrc

from dealer.lab import report as verdicts
from dealer.lab.experiment import Counted, run
from dealer.lab.report import Report
from dealer.lab.shuffles import METHODS, method, number_source

pytestmark = pytest.mark.slow

RUNS, EACH = 300, 700
FAR = 1.95 / math.sqrt(RUNS)
"""Kolmogorov–Smirnov distance that uniform values exceed once in a thousand times."""


def experiment(name, n, shuffles, *, source="pcg64", seed=1, **options):
    numbers = number_source(source, n=n, seed=seed)
    return run(method(name, n=n, **options), numbers, shuffles=shuffles)


@pytest.mark.parametrize("source", ["tape", "pcg64", "mersenne"])
@pytest.mark.parametrize("n", [4, 52])
@pytest.mark.parametrize("name", [name for name in METHODS if method(name, n=4).fair])
def test_fair_methods_pass(name, n, source):
    result = Report(experiment(name, n, 4000, source=source))
    assert result.wrong == []
    assert min(one.p for one in result.findings if one.p is not None) > 1e-4


@pytest.mark.parametrize("n", [4, 7, 52])
@pytest.mark.parametrize("name", ["swap-any", "swap-any-but-last", "random-comparator", "sattolo"])
def test_biased_methods_are_detected(name, n):
    for seed in range(3):
        findings = Report(experiment(name, n, 30_000, seed=seed)).wrong
        assert any("card" in one.name or "orders" in one.name for one in findings)


def test_too_few_transpositions_are_detected():
    assert Report(experiment("transpositions", 416, 1500)).wrong
    assert Report(experiment("transpositions", 52, 2000, steps=100)).wrong
    assert not Report(experiment("transpositions", 52, 2000)).wrong


def test_a_partial_shuffle_tested_as_a_full_one_is_not_fair():
    counted = Counted(n=8, k=8)
    partial = method("partial", n=8, steps=4)
    numbers = number_source("pcg64", n=8, seed=1)
    counted.add(partial.shuffle(np.tile(np.arange(8, dtype=np.uint16), (3000, 1)), numbers))
    assert Report(counted).wrong


def test_too_even_counts_and_dependent_shuffles_are_detected():
    orders = np.array(list(permutations(range(4))), dtype=np.uint16)
    counted = Counted(n=4, k=4)
    counted.add(np.tile(orders, (100, 1)))
    names = [one.name for one in Report(counted).wrong]
    assert "orders, χ²" in names
    assert any(name.startswith("one to the next") for name in names)


@pytest.fixture(scope="module")
def many_runs():
    """Counts of RUNS small experiments, full and partial, all fair."""
    counted = []
    for name, n, steps in (("backward", 3, None), ("partial", 7, 3)):
        one = method(name, n=n, steps=steps)
        numbers = number_source("pcg64", n=n, seed=11)
        counted.append([run(one, numbers, shuffles=EACH) for _ in range(RUNS)])
    return counted


def distances(counted):
    """For each statistic the Kolmogorov–Smirnov distance of the p of all runs from uniform."""
    ps: dict[str, list[float]] = {}
    for one in counted:
        for finding in Report(one).findings:
            if finding.p is not None:
                ps.setdefault(finding.name, []).append(finding.p)
    even = np.arange(1, RUNS + 1) / RUNS
    return {name: float(np.abs(np.sort(p) - even).max()) for name, p in ps.items()}


def upper_tail(x, df):
    return float(chdtrc(df, x))


@pytest.fixture(params=["both sides", "upper side"])
def side(request, monkeypatch):
    """χ² tested on both sides, and on one side only, where a shift is detected more easily."""
    if request.param == "upper side":
        monkeypatch.setattr(verdicts, "chi_square_p", upper_tail)
    return request.param


def test_p_is_uniform_for_fair_shuffles(many_runs, side):
    whole, partial = (distances(counted) for counted in many_runs)
    assert (len(whole), len(partial)) == (4, 3)
    assert {name: far for name, far in whole.items() if far > FAR} == {}
    assert {name: far for name, far in partial.items() if far > FAR} == {}


BREAKS = {
    "a degree of freedom too few": (verdicts, "chi_square_p", lambda x, df: upper_tail(x, df - 1)),
    "a degree too many": (verdicts, "chi_square_p", lambda x, df: upper_tail(x, df + 1)),
    "half of the deviation": (verdicts, "chi_square_p", lambda x, df: upper_tail(x / 2, df)),
}


@pytest.mark.parametrize("what", BREAKS)
def test_a_wrong_distribution_is_detected(many_runs, what, monkeypatch):
    monkeypatch.setattr(verdicts, "chi_square_p", upper_tail)
    monkeypatch.setattr(*BREAKS[what])
    assert max(distances(many_runs[0]).values()) > FAR


def test_a_statistic_of_too_few_shuffles_has_the_number_needed():
    findings = {one.name: one for one in Report(experiment("backward", 5, 4)).findings}
    assert findings["orders, χ²"].needs == 600
    assert findings["place × card, χ²"].needs == 5
    assert all(one.p is None for one in findings.values())
    enough = {one.name: one for one in Report(experiment("backward", 5, 5)).findings}
    assert enough["place × card, χ²"].p is not None
    assert enough["one to the next: place × card, χ²"].needs == 5


@pytest.mark.parametrize("n", [0, 1])
def test_decks_of_0_and_1_cards_have_no_findings(n):
    assert Report(experiment("backward", n, 10)).findings == []


def test_place_by_card_is_the_sum_of_squares_over_the_expected_count():
    counted = experiment("backward", 6, 900)
    cells, fair = counted.shuffles.cells, 900 / 6
    finding = next(one for one in Report(counted).findings if one.name == "place × card, χ²")
    square = ((cells - fair) ** 2 / fair).sum()
    assert finding.found == pytest.approx(square * 5 / 6)
    assert finding.expected == 25


def test_the_orders_have_mean_and_variance_of_the_orders():
    counted = experiment("backward", 3, 600)
    found = Report(counted).orders()
    assert found is not None
    assert found["mean"] == 100
    assert found["variance"] == pytest.approx(np.var(counted.shuffles.orders))
    assert found["deviation"] == pytest.approx(math.sqrt(found["variance"]))
    assert found["expected"] == pytest.approx(100 * 5 / 6)
    assert Report(experiment("backward", 8, 10)).orders() is None
