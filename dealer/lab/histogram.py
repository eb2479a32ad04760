"""Histograms of the counts with the expected length of each bar, for a terminal or an SVG."""

from __future__ import annotations

import math
from itertools import permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dealer.lab.counts import Tally

ONE_BY_ONE = 24
_EDGE = 4.0
_WIDTH = 0.5
_FULL = "█"
_PARTS = " ▏▎▍▌▋▊▉"


class Bar(NamedTuple):
    label: str
    times: int
    expected: float


class Histogram(NamedTuple):
    title: str
    bars: list[Bar]


def histogram(tally: Tally) -> Histogram:
    """The count of each order, if there are at most 4!; else the distribution of the deviations.

    Deviations are in standard deviations and normally distributed for a fair shuffle; of the
    orders, if five of each are expected, else of each card at each place.
    """
    orders = tally.orders
    if orders is not None and len(orders) <= ONE_BY_ONE:
        mean = tally.shuffles / len(orders)
        names = (" ".join(map(str, order)) for order in permutations(range(tally.n), tally.k))
        bars = [Bar(name, int(count), mean) for name, count in zip(names, orders, strict=True)]
        return Histogram("How often each order came, the bottom card first", bars)
    counts, chance, what = tally.cells.ravel(), 1 / max(tally.n, 1), "each card came to each place"
    if orders is not None and tally.shuffles >= 5 * len(orders):
        counts, chance, what = orders, 1 / len(orders), "each order came"
    spread = math.sqrt(tally.shuffles * chance * (1 - chance))
    off = (counts - np.float64(tally.shuffles * chance)) / spread
    return Histogram(f"How often {what}, in standard deviations off", _bell(off))


def _bell(off: NDArray[np.float64]) -> list[Bar]:
    edges = np.arange(-_EDGE, _EDGE + _WIDTH, _WIDTH)
    bins = np.searchsorted(edges, off, side="right")
    counts = np.bincount(bins, minlength=len(edges) + 1)
    below = [0.0, *(math.erfc(-edge / math.sqrt(2)) / 2 for edge in edges), 1.0]
    labels = [f"under {edges[0]:g}", *(f"{edge:g} to {edge + _WIDTH:g}" for edge in edges[:-1])]
    labels.append(f"over {edges[-1]:g}")
    return [
        Bar(label, int(count), len(off) * (below[place + 1] - below[place]))
        for place, (label, count) in enumerate(zip(labels, counts, strict=True))
    ]


def lines(shown: Histogram, *, width: int = 48) -> list[str]:
    """Lines for a terminal: label, count, bar, and a mark at the expected length."""
    most = max((max(bar.times, bar.expected) for bar in shown.bars), default=0) or 1
    left = max((len(bar.label) for bar in shown.bars), default=0)
    digits = max((len(f"{bar.times:,}") for bar in shown.bars), default=0)
    return [
        f"{bar.label:>{left}}  {bar.times:>{digits},}  {_line(bar, width / most)}".rstrip()
        for bar in shown.bars
    ]


def _line(bar: Bar, scale: float) -> str:
    eighths = round(bar.times * scale * 8)
    drawn = _FULL * (eighths // 8) + _PARTS[eighths % 8].strip()
    mark = int(bar.expected * scale)
    if mark < len(drawn):
        return drawn
    return f"{drawn:<{mark}}│"
