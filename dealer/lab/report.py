"""Results of an experiment as lines of text, histograms and JSON members."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dealer.lab.counts import Tally
from dealer.lab.verdicts import Finding, significant, spread

MAIN = ("orders, χ²", "place × card, χ²")
_NAME = 42
ONE_BY_ONE = 24
_EDGE = 4.0
_WIDTH = 0.5
_FULL = "█"
_PARTS = " ▏▎▍▌▋▊▉"


def findings(found: Sequence[Finding], level: float) -> list[str]:
    """A table of all tests, then the verdict; `needs` is the number of shuffles required."""
    lines = [f"{'':<{_NAME}}{'found':>12}{'fair':>12}{'p':>10}{'after Holm':>12}"]
    for result in found:
        numbers = f"{result.name:<{_NAME}}{_number(result.found):>12}{_number(result.expected):>12}"
        if result.p is None or result.holm is None:
            lines.append(f"{result.name:<{_NAME}}{'needs ' + format(result.needs or 0, ','):>12}")
        else:
            mark = "  ←" if result.holm < level else ""
            lines.append(f"{numbers}{_chance(result.p):>10}{_chance(result.holm):>12}{mark}")
    return [*lines, verdict(found, level)]


def verdict(found: Sequence[Finding], level: float) -> str:
    """One sentence; without one of the `MAIN` tests no evidence of bias would mean nothing."""
    wrong = significant(found, level)
    if wrong:
        return f"Not fair by {len(wrong)} of {len(found)} statistics, most clearly {wrong[0].name}."
    if not found:
        return "With so few cards there is nothing to test."
    main = [result for result in found if result.name in MAIN]
    if main and not any(result.p is not None for result in main):
        needs = min(result.needs or 0 for result in main)
        return f"Too few shuffles for a verdict: at least {needs:,} are needed."
    return f"No evidence of bias (at level {level:g})."


def frequencies(tally: Tally) -> list[str]:
    """How many orders occurred and how often; no lines if orders were not counted."""
    spreads = spread(tally)
    if spreads is None or tally.orders is None:
        return []
    return [
        f"{int((tally.orders > 0).sum()):,} of {len(tally.orders):,} orders occurred.",
        f"Mean {spreads.mean:,.2f}, standard deviation {spreads.deviation:,.2f} (fair: "
        f"{math.sqrt(spreads.expected):,.2f}), variance {spreads.variance:,.2f} (fair: "
        f"{spreads.expected:,.2f}).",
    ]


def members(tally: Tally, found: Sequence[Finding], level: float) -> dict[str, Any]:
    spreads = spread(tally)
    return {
        "shuffles": tally.shuffles,
        "cards": tally.n,
        "sample": tally.k,
        "fair": not significant(found, level),
        "level": level,
        "orders": None if spreads is None else asdict(spreads) | {"deviation": spreads.deviation},
        "findings": [
            {key: None if value != value else value for key, value in asdict(result).items()}
            for result in found
        ],
    }


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
    """Lines for a terminal: the title, then label, count, bar, and a mark at the fair length."""
    if not shown.bars:
        return []
    most = max(max(bar.times, bar.expected) for bar in shown.bars) or 1
    left = max(len(bar.label) for bar in shown.bars)
    digits = max(len(f"{bar.times:,}") for bar in shown.bars)
    fair = {bar.expected for bar in shown.bars}
    each = f"fair: {fair.pop():,.0f} each; " if len(fair) == 1 else ""
    return [
        f"{shown.title} ({each}│ is where a fair bar would end):",
        *(
            f"{bar.label:>{left}}  {bar.times:>{digits},}  {_line(bar, width / most)}".rstrip()
            for bar in shown.bars
        ),
    ]


def _line(bar: Bar, scale: float) -> str:
    eighths = round(bar.times * scale * 8)
    drawn = _FULL * (eighths // 8) + _PARTS[eighths % 8].strip()
    mark = int(bar.expected * scale)
    if mark < len(drawn):
        return drawn
    return f"{drawn:<{mark}}│"
