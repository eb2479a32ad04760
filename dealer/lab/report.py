"""Statistical tests of counts against a fair shuffle, the verdict, and results as text and JSON."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate, permutations
from typing import Any, NamedTuple

import numpy as np
from scipy.special import chdtr, chdtrc

from dealer.lab.experiment import Counted, Counts, Tally

LEVEL = 1e-6
"""Significance level, for p-values with Holm's correction."""

ENOUGH = 5

TWO_SIDED_FROM = 10
"""Degrees of freedom from which a very small χ² is also evidence against fairness. With fewer,
counts of a fair shuffle can match the expectation exactly, so that χ² = 0 is not unusual."""

MAIN = ("orders, χ²", "place × card, χ²")
_NAME = 42
ONE_BY_ONE = 24
_FULL = "█"
_PARTS = " ▏▎▍▌▋▊▉"


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


class Report:
    """All tests of one experiment: of the shuffles, then of the quotients of consecutive ones.

    `wrong` has the findings that are significant at `level`, in ascending order of p.
    """

    def __init__(self, counted: Counted, level: float = LEVEL) -> None:
        self.tally, self.level = counted.shuffles, level
        self.findings = [*_of(self.tally, ""), *_of(counted.quotients, "one to the next: ")]
        tested = sorted((one for one in self.findings if one.p is not None), key=_p)
        for finding, p in zip(tested, holm([_p(one) for one in tested]), strict=True):
            finding.holm = p
        self.wrong = [one for one in tested if one.holm is not None and one.holm < level]

    def verdict(self) -> str:
        """One sentence; without one of the `MAIN` tests no evidence of bias would mean nothing."""
        all_tests, main = len(self.findings), [one for one in self.findings if one.name in MAIN]
        if self.wrong:
            most = self.wrong[0].name
            return f"Not fair by {len(self.wrong)} of {all_tests} statistics, most clearly {most}."
        if not all_tests:
            return "With so few cards there is nothing to test."
        if main and all(one.p is None for one in main):
            needs = min(one.needs or 0 for one in main)
            return f"Too few shuffles for a verdict: at least {needs:,} are needed."
        return f"No evidence of bias (at level {self.level:g})."

    def lines(self) -> list[str]:
        """A table of all tests, then the verdict; `needs` is the number of shuffles required."""
        lines = [f"{'':<{_NAME}}{'found':>12}{'fair':>12}{'p':>10}{'after Holm':>12}"]
        for one in self.findings:
            if one.p is None or one.holm is None:
                lines.append(f"{one.name:<{_NAME}}{'needs ' + format(one.needs or 0, ','):>12}")
                continue
            numbers = f"{one.name:<{_NAME}}{_number(one.found):>12}{_number(one.expected):>12}"
            mark = "  ←" if one in self.wrong else ""
            lines.append(f"{numbers}{_chance(one.p):>10}{_chance(one.holm):>12}{mark}")
        return [*lines, self.verdict()]

    def orders(self) -> dict[str, float] | None:
        """The counts of the orders; `expected` is their variance if fair; None if not counted."""
        if self.tally.orders is None or not self.tally.shuffles:
            return None
        mean, variance = float(self.tally.orders.mean()), float(self.tally.orders.var())
        expected = mean * (1 - 1 / len(self.tally.orders))
        return {"mean": mean, "variance": variance, "expected": expected,
                "deviation": math.sqrt(variance)}  # fmt: skip

    def frequencies(self) -> list[str]:
        """How many orders occurred and how often; no lines if orders were not counted."""
        spread = self.orders()
        if spread is None or self.tally.orders is None:
            return []
        occurred, possible = np.count_nonzero(self.tally.orders), len(self.tally.orders)
        return [
            f"{occurred:,} of {possible:,} orders occurred.",
            f"Mean {spread['mean']:,.2f}, standard deviation {spread['deviation']:,.2f} (fair: "
            f"{math.sqrt(spread['expected']):,.2f}), variance {spread['variance']:,.2f} (fair: "
            f"{spread['expected']:,.2f}).",
        ]

    def members(self) -> dict[str, Any]:
        """The report as a JSON object, in which a number that there is not is null."""
        findings = [
            {key: None if value != value else value for key, value in asdict(one).items()}
            for one in self.findings
        ]
        return {"shuffles": self.tally.shuffles, "cards": self.tally.n, "sample": self.tally.k,
                "fair": not self.wrong, "level": self.level, "orders": self.orders(),
                "findings": findings}  # fmt: skip


def _p(finding: Finding) -> float:
    return finding.p or 0.0


def _of(tally: Tally, about: str) -> Iterator[Finding]:
    if tally.orders is not None and len(tally.orders) > 1:
        yield _orders(tally.orders, tally.shuffles, f"{about}orders, χ²")
    if tally.n > 1 and tally.k:
        yield _cells(tally, f"{about}place × card, χ²")


def _orders(orders: Counts, shuffles: int, name: str) -> Finding:
    df, needs = len(orders) - 1, ENOUGH * len(orders)
    if shuffles < needs:
        return Finding(name, math.nan, df, needs=needs)
    mean = shuffles / len(orders)
    found = float(((orders - mean) ** 2).sum() / mean)
    return Finding(name, found, df, chi_square_p(found, df))


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
    return Finding(name, found, df, chi_square_p(found, df))


# p-values: the probability that a fair shuffle deviates at least as far as the counts do.


def chi_square_p(x: float, df: int) -> float:
    """The p-value of χ² = `x` with `df` degrees of freedom.

    It is the upper tail; from `TWO_SIDED_FROM` degrees of freedom on, twice the smaller tail.
    """
    lower, upper = float(chdtr(df, x)), float(chdtrc(df, x))
    return min(1.0, 2 * min(lower, upper)) if df >= TWO_SIDED_FROM else upper


def holm(ps: Sequence[float]) -> list[float]:
    """Ascending p-values with S. Holm's correction (1979) for multiple tests.

    The smallest is multiplied by the number of tests, the next by one less and so on, and none may
    be less than the one before it. For a fair shuffle the probability that any result is below a
    level is at most that level.
    """
    return list(accumulate((min(1.0, (len(ps) - i) * p) for i, p in enumerate(ps)), max))


def _number(value: float) -> str:
    return f"{value:,.4f}" if abs(value) < 1000 else f"{value:,.1f}"


def _chance(p: float) -> str:
    if p < 1e-99:
        return "<1e-99"
    return f"{p:.1e}" if p < 0.001 else f"{p:.4f}"


class Bar(NamedTuple):
    label: str
    times: int
    expected: float


def histogram(tally: Tally) -> list[Bar]:
    """The count of each order, if there are at most 4!; else none."""
    orders = tally.orders
    if orders is None or len(orders) > ONE_BY_ONE:
        return []
    mean = tally.shuffles / len(orders)
    names = (" ".join(map(str, order)) for order in permutations(range(tally.n), tally.k))
    return [Bar(name, int(count), mean) for name, count in zip(names, orders, strict=True)]


def lines(bars: Sequence[Bar], *, width: int = 48) -> list[str]:
    """Lines for a terminal: the title, then label, count, bar, and a mark at the fair length."""
    if not bars:
        return []
    fair = bars[0].expected
    scale = width / (max(fair, *(bar.times for bar in bars)) or 1)
    digits = max(len(f"{bar.times:,}") for bar in bars)
    return [
        f"How often each order came, the bottom card first (fair: {fair:,.0f} each; │ is where a "
        "fair bar would end):",
        *(f"{bar.label}  {bar.times:>{digits},}  {_line(bar, scale)}".rstrip() for bar in bars),
        "",
    ]


def _line(bar: Bar, scale: float) -> str:
    eighths = round(bar.times * scale * 8)
    drawn = _FULL * (eighths // 8) + _PARTS[eighths % 8].strip()
    mark = int(bar.expected * scale)
    if mark < len(drawn):
        return drawn
    return f"{drawn:<{mark}}│"
