"""The verdict: each thing that was counted against what is fair, and how likely that is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from dealer.lab import expected, tails
from dealer.lab.expected import Chances
from dealer.lab.tally import Counted, Counts, Tally

LEVEL = 1e-6
"""How unlikely, after Holm's correction, is too unlikely to be chance."""

ENOUGH = 5
EXACT_MAX = 20_000


@dataclass(slots=True)
class Finding:
    """One question: `found` against `expected`, and the chance `p` to be as far off if all is fair.

    `holm` is p with the correction for the number of questions. A question that so few shuffles
    cannot answer has no p, and says in `needs` how many could.
    """

    name: str
    found: float
    expected: float
    p: float | None = None
    holm: float | None = None
    needs: int | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean and variance of how often each order came; `expected` are those of a fair shuffle."""

    mean: float
    variance: float
    expected: float

    @property
    def deviation(self) -> float:
        return math.sqrt(self.variance)


def judge(counted: Counted) -> list[Finding]:
    """Every statistic of the shuffles, then of what leads from one to the next, with Holm's p."""
    findings = [*_of(counted.shuffles, ""), *_of(counted.quotients, "one to the next: ")]
    asked = [finding for finding in findings if finding.p is not None]
    corrected = tails.holm([finding.p for finding in asked if finding.p is not None])
    for finding, p in zip(asked, corrected, strict=True):
        finding.holm = p
    return findings


def caught(findings: Sequence[Finding], level: float = LEVEL) -> list[Finding]:
    """Those that are too unlikely, the unlikeliest first."""
    wrong = [one for one in findings if one.holm is not None and one.holm < level]
    return sorted(wrong, key=lambda one: one.p or 0.0)


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
    return Finding(name, found, df, tails.chi_square_p(found, df))


def _cells(tally: Tally, name: str) -> Finding:
    """d = count − m/n over k places × n cards; (n−1)/m·Σd² is χ² with (n−1)² for k = n.

    For k < n the sums of the columns are free: 1/(n−k)·Σ(column of d)² is added to Σd², which
    undoes the covariance of the places, and the degrees of freedom are k(n−1).
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
    return Finding(name, found, df, tails.chi_square_p(found, df))


def _mean(counts: Counts, chances: Chances, name: str) -> Finding:
    """Exact for few shuffles; by the normal distribution for many."""
    shuffles, total = int(counts.sum()), int(np.arange(len(counts)) @ counts)
    mean, variance = expected.moments(chances)
    if not shuffles:
        return Finding(name, math.nan, mean, needs=1)
    found = total / shuffles
    if shuffles <= EXACT_MAX:
        p = min(1.0, 2 * min(expected.sum_tails(chances, shuffles, total)))
    else:
        p = tails.normal_p((found - mean) / math.sqrt(variance / shuffles))
    return Finding(name, found, mean, p)


def _distribution(counts: Counts, chances: Chances, name: str) -> Finding:
    """χ² over the numbers, neighbours taken together until each expects five shuffles at least."""
    shuffles = int(counts.sum())
    groups = _grouped(counts.tolist(), (chances * shuffles).tolist())
    df = len(groups) - 1
    if not df:
        return Finding(name, math.nan, math.nan, needs=_two_groups(chances))
    square = sum((found - fair) ** 2 / fair for found, fair in groups)
    return Finding(name, square, df, tails.chi_square_p(square, df))


def _grouped(found: list[int], fair: list[float]) -> list[tuple[float, float]]:
    """Neighbours added up, found and fair alike, from 0 on; what is left over joins the last."""
    groups: list[tuple[float, float]] = []
    some, expecting = 0.0, 0.0
    for count, expectation in zip(found, fair, strict=True):
        some, expecting = some + count, expecting + expectation
        if expecting >= ENOUGH:
            groups.append((some, expecting))
            some, expecting = 0.0, 0.0
    last = groups.pop() if groups else (0.0, 0.0)
    return [*groups, (last[0] + some, last[1] + expecting)]


def _two_groups(chances: Chances) -> int:
    """How many shuffles it takes until two groups of numbers expect five each."""
    low = np.cumsum(chances)
    return math.ceil(ENOUGH / float(np.minimum(low, 1 - low).max()))


def spread(tally: Tally) -> Spread | None:
    """How often the orders came, if they were counted."""
    if tally.orders is None or not tally.shuffles:
        return None
    mean = tally.shuffles / len(tally.orders)
    return Spread(mean, float(tally.orders.var()), mean * (1 - 1 / len(tally.orders)))
