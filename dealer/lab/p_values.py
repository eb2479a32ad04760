"""p-values: the probability that a fair shuffle deviates at least as far as the counts do."""

from __future__ import annotations

from collections.abc import Sequence

from scipy.special import chdtr, chdtrc, erfc

TWO_SIDED_FROM = 10
"""Degrees of freedom from which a very small χ² is also evidence against fairness. With fewer,
counts of a fair shuffle can match the expectation exactly, so that χ² = 0 is not unusual."""


def chi_square_p(x: float, df: int) -> float:
    """The p-value of χ² = `x` with `df` degrees of freedom.

    It is the upper tail; from `TWO_SIDED_FROM` degrees of freedom on, twice the smaller tail.
    """
    lower, upper = float(chdtr(df, x)), float(chdtrc(df, x))
    return min(1.0, 2 * min(lower, upper)) if df >= TWO_SIDED_FROM else upper


def normal_p(z: float) -> float:
    """The two-sided p-value of `z` standard deviations."""
    return float(erfc(abs(z) / 2**0.5))


def holm(ps: Sequence[float]) -> list[float]:
    """The p-values with S. Holm's correction (1979) for multiple tests.

    In ascending order, the smallest is multiplied by the number of tests, the next by one less and
    so on, and none may be less than the one before it. For a fair shuffle the probability that any
    result is below a level is at most that level.
    """
    result = [1.0] * len(ps)
    largest = 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        largest = max(largest, min(1.0, (len(ps) - rank) * ps[place]))
        result[place] = largest
    return result
