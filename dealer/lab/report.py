"""Results of an experiment as lines of text and as JSON members."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from dealer.lab.counts import Tally
from dealer.lab.verdicts import Finding, significant, spread

_NAME = 42


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
    wrong = significant(found, level)
    if wrong:
        return f"Not fair by {len(wrong)} of {len(found)} statistics, most clearly {wrong[0].name}."
    if not found:
        return "With so few cards there is nothing to test."
    if not any(result.p is not None for result in found):
        return "Too few shuffles for any test."
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
