"""Statistical tests: every count against its distribution for a fair shuffle, and the verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dealer.lab import expected, p_values
from dealer.lab.counts import Counted, Counts, Tally
from dealer.lab.expected import Chances

LEVEL = 1e-6
"""Significance level, for p-values with Holm's correction."""

ENOUGH = 5
EXACT_MAX = 20_000


@dataclass(slots=True)
class Finding:
    """One test: the statistic `found`, its `expected` value and its p-value.

    `holm` is p with Holm's correction for multiple tests. A test that needs more shuffles has no p;
    `needs` is the required number of shuffles.
    """

    name: str
    found: float
    expected: float
    p: float | None = None
    holm: float | None = None
    needs: int | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and variance of the counts of the orders; `expected` is the variance if fair."""

    mean: float
    variance: float
    expected: float

    @property
    def deviation(self) -> float:
        return math.sqrt(self.variance)


def evaluate(counted: Counted) -> list[Finding]:
    """All tests of the shuffles, then of the quotients of consecutive shuffles."""
    findings = [*_of(counted.shuffles, ""), *_of(counted.quotients, "one to the next: ")]
    tested = [finding for finding in findings if finding.p is not None]
    corrected = p_values.holm([finding.p for finding in tested if finding.p is not None])
    for finding, p in zip(tested, corrected, strict=True):
        finding.holm = p
    return findings


def significant(findings: Sequence[Finding], level: float = LEVEL) -> list[Finding]:
    """The findings that are significant at `level`, in ascending order of p."""
    wrong = [finding for finding in findings if finding.holm is not None and finding.holm < level]
    return sorted(wrong, key=lambda finding: finding.p or 0.0)


def _of(tally: Tally, about: str) -> Iterator[Finding]:
    if tally.orders is not None and len(tally.orders) > 1:
        yield _orders(tally.orders, tally.shuffles, f"{about}orders, χ²")
    if tally.n > 1 and tally.k:
        yield _cells(tally, f"{about}place × card, χ²")
    for name, counts, chances in (
        ("fixed points", tally.fixed, expected.fixed_points(tally.k)),
        ("cycles", tally.cycles, expected.cycles(tally.k)),
        ("rising sequences", tally.rising, expected.rising_sequences(tally.k)),
    ):
        if tally.k > 1:
            yield _mean(counts, chances, f"{about}{name}, mean")
            yield _distribution(counts, chances, f"{about}{name}, χ²")


def _orders(orders: Counts, shuffles: int, name: str) -> Finding:
    df, needs = len(orders) - 1, ENOUGH * len(orders)
    if shuffles < needs:
        return Finding(name, math.nan, df, needs=needs)
    mean = shuffles / len(orders)
    found = float(((orders - mean) ** 2).sum() / mean)
    return Finding(name, found, df, p_values.chi_square_p(found, df))


def _cells(tally: Tally, name: str) -> Finding:
    """χ² of the counts over k places × n cards, with d = count − m/n for m shuffles.

    For k = n it is (n−1)/m·Σd² with (n−1)² degrees of freedom. For k < n the column sums are not
    fixed: 1/(n−k)·Σ(column sum of d)² is added to Σd² to compensate for the covariance of the
    places, and there are k(n−1) degrees of freedom.
    """
    n, k, shuffles = tally.n, tally.k, tally.shuffles
    df = (n - 1) ** 2 if k == n else k * (n - 1)
    if shuffles < n:
        return Finding(name, math.nan, df, needs=n)
    off = tally.cells - shuffles / n
    squares = float((off**2).sum())
    if k < n:
        squares += float((off.sum(axis=0) ** 2).sum()) / (n - k)
    found = squares * (n - 1) / shuffles
    return Finding(name, found, df, p_values.chi_square_p(found, df))


def _mean(counts: Counts, chances: Chances, name: str) -> Finding:
    """Test of the mean: exact up to `EXACT_MAX` shuffles, normal approximation above."""
    shuffles, total = int(counts.sum()), int(np.arange(len(counts)) @ counts)
    mean, variance = expected.moments(chances)
    if not shuffles:
        return Finding(name, math.nan, mean, needs=1)
    found = total / shuffles
    if shuffles <= EXACT_MAX:
        p = min(1.0, 2 * min(expected.sum_tails(chances, shuffles, total)))
    else:
        p = p_values.normal_p((found - mean) / math.sqrt(variance / shuffles))
    return Finding(name, found, mean, p)


def _distribution(counts: Counts, chances: Chances, name: str) -> Finding:
    """χ² test of the distribution; neighbouring values are grouped to expect at least five."""
    shuffles = int(counts.sum())
    groups = _grouped(counts.tolist(), (chances * shuffles).tolist())
    df = len(groups) - 1
    if not df:
        return Finding(name, math.nan, math.nan, needs=_two_groups(chances))
    square = sum((found - fair) ** 2 / fair for found, fair in groups)
    return Finding(name, square, df, p_values.chi_square_p(square, df))


def _grouped(found: list[int], fair: list[float]) -> list[tuple[float, float]]:
    """(found, fair) sums over groups of neighbouring values; a remainder joins the last group."""
    groups: list[tuple[float, float]] = []
    total, expecting = 0.0, 0.0
    for count, expectation in zip(found, fair, strict=True):
        total, expecting = total + count, expecting + expectation
        if expecting >= ENOUGH:
            groups.append((total, expecting))
            total, expecting = 0.0, 0.0
    last = groups.pop() if groups else (0.0, 0.0)
    return [*groups, (last[0] + total, last[1] + expecting)]


def _two_groups(chances: Chances) -> int:
    """The number of shuffles from which two groups expect at least five each."""
    low = np.cumsum(chances)
    return math.ceil(ENOUGH / float(np.minimum(low, 1 - low).max()))


def spread(tally: Tally) -> Spread | None:
    """Mean and variance of the counts of the orders; None if orders were not counted."""
    if tally.orders is None or not tally.shuffles:
        return None
    mean = tally.shuffles / len(tally.orders)
    return Spread(mean, float(tally.orders.var()), mean * (1 - 1 / len(tally.orders)))
