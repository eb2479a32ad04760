"""Distributions for a fair shuffle: fixed points, cycles and rising sequences.

Each function returns the probabilities of 0, 1, 2 … over all n! equally likely orders. Means and
variances for n = 52: fixed points 1 and 1, cycles 4.538 and 2.912, rising sequences 26.5 and 4.417.
"""

from __future__ import annotations

import math
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

Chances = NDArray[np.float64]

_NEVER = 1e-40


def fixed_points(n: int) -> Chances:
    """Cards at their old place: exactly k with probability (1/k!)·Σ (−1)^i/i! over i = 0…n−k."""
    strays = list(accumulate((-1) ** i / math.factorial(i) for i in range(n + 1)))
    return np.array([strays[n - k] * (1 / math.factorial(k)) for k in range(n + 1)])


def cycles(n: int) -> Chances:
    """Stirling numbers of the first kind over n!: card i closes a cycle with probability 1/i."""
    chances = np.array([1.0])
    for i in range(1, n + 1):
        chances = np.convolve(chances, [(i - 1) / i, 1 / i])
    return chances


def rising_sequences(n: int) -> Chances:
    """Eulerian numbers: A(n, k) = k·A(n−1, k) + (n+1−k)·A(n−1, k−1), over n!."""
    chances = np.array([0.0, 1.0] if n else [1.0])
    for size in range(2, n + 1):
        k = np.arange(size + 1)
        before = np.append(chances, 0.0)
        chances = (k * before + (size + 1 - k) * np.roll(before, 1)) / size
    return chances


def moments(chances: Chances) -> tuple[float, float]:
    """Mean and variance."""
    values = np.arange(len(chances))
    mean = float(values @ chances)
    return mean, float((values - mean) ** 2 @ chances)


def sum_tails(chances: Chances, count: int, total: int) -> tuple[float, float]:
    """The probabilities that `count` such numbers add up to at most, and to at least, `total`.

    Computed by repeated convolution; all terms are positive, so that small probabilities keep their
    precision. Terms below 1e-40 are treated as 0.
    """
    first, sums = 0, np.array([1.0])
    for bit in f"{count:b}":
        first, sums = _trimmed(2 * first, np.convolve(sums, sums))
        if bit == "1":
            first, sums = _trimmed(first, np.convolve(sums, chances))
    place = total - first
    low, high = sums[: max(place + 1, 0)], sums[max(place, 0) :]
    return min(float(low.sum()), 1.0), min(float(high.sum()), 1.0)


def _trimmed(first: int, sums: Chances) -> tuple[int, Chances]:
    places = np.flatnonzero(sums > _NEVER)
    return first + int(places[0]), sums[places[0] : places[-1] + 1]
