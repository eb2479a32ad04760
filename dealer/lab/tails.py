"""How unlikely is what was counted, if all is fair?

The χ² tail is the regularised incomplete gamma function, by its series below a + 1 and by its
continued fraction above (Abramowitz and Stegun 6.5.29 and 6.5.31, the latter by W. Lentz's
method); the normal tail is `math.erfc`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_EPSILON = 1e-16
_TINY = 1e-300


def chi_square_tails(x: float, df: int) -> tuple[float, float]:
    """The chances that χ² with `df` degrees of freedom is at most `x`, and more than `x`."""
    a, half = df / 2, x / 2
    if half <= 0:
        return 0.0, 1.0
    scale = math.exp(a * math.log(half) - half - math.lgamma(a))
    if half < a + 1:
        term = total = 1 / a
        place = a
        while term > total * _EPSILON:
            place += 1
            term *= half / place
            total += term
        low = min(scale * total, 1.0)
        return low, 1 - low
    high = min(scale * _fraction(a, half), 1.0)
    return 1 - high, high


def _fraction(a: float, x: float) -> float:
    """1/(x+1−a− 1(1−a)/(x+3−a− 2(2−a)/(x+5−a− …))), for x > a + 1."""
    b = x + 1 - a
    c, d = 1 / _TINY, 1 / b
    result = d
    step = 0
    change = 0.0
    while abs(change - 1) > _EPSILON * 4:
        step += 1
        factor = step * (a - step)
        b += 2
        d = factor * d + b
        d = 1 / (d if abs(d) > _TINY else _TINY)
        c = b + factor / c
        c = c if abs(c) > _TINY else _TINY
        change = c * d
        result *= change
    return result


EVEN_FROM = 10
"""Degrees of freedom from which a sum can be too even: with fewer cells counts of whole shuffles
meet what was expected exactly now and then, and χ² is 0 by chance."""


def chi_square_p(x: float, df: int) -> float:
    """What is too uneven to be chance; from `EVEN_FROM` on, what is too even counts as much."""
    lower, upper = chi_square_tails(x, df)
    return min(1.0, 2 * min(lower, upper)) if df >= EVEN_FROM else upper


def normal_p(z: float) -> float:
    """The chance to be at least |z| standard deviations off, on either side."""
    return math.erfc(abs(z) / math.sqrt(2))


def holm(ps: Sequence[float]) -> list[float]:
    """The p-values with S. Holm's correction (1979) for having asked that many questions.

    In order of size the smallest is multiplied by their number, the next by one less and so on;
    none may be less than one before it. If all is fair, the chance that any of the results is
    below a level is at most that level.
    """
    result = [1.0] * len(ps)
    worst = 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        worst = max(worst, min(1.0, (len(ps) - rank) * ps[place]))
        result[place] = worst
    return result
