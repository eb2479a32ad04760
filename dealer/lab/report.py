"""What an experiment found, as lines for a person and as members for a script."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from dealer.lab.findings import Finding, caught, spread
from dealer.lab.tally import Tally

_NAME = 42


def findings(found: Sequence[Finding], level: float) -> list[str]:
    """A table of all questions, then the verdict; `needs` is how many shuffles would answer one."""
    lines = [f"{'':<{_NAME}}{'found':>12}{'fair':>12}{'p':>10}{'after Holm':>12}"]
    for one in found:
        numbers = f"{one.name:<{_NAME}}{_number(one.found):>12}{_number(one.expected):>12}"
        if one.p is None or one.holm is None:
            lines.append(f"{one.name:<{_NAME}}{'needs ' + format(one.needs or 0, ','):>12}")
        else:
            mark = "  ←" if one.holm < level else ""
            lines.append(f"{numbers}{_chance(one.p):>10}{_chance(one.holm):>12}{mark}")
    return [*lines, verdict(found, level)]


def verdict(found: Sequence[Finding], level: float) -> str:
    wrong = caught(found, level)
    if wrong:
        return f"Not fair, say {len(wrong)} of {len(found)} statistics; first {wrong[0].name}."
    if not found:
        return "With so few cards there is nothing to ask."
    if not any(one.p is not None for one in found):
        return "Too few shuffles to say anything."
    return f"Nothing here speaks against it (at {level:g})."


def frequencies(tally: Tally) -> list[str]:
    """How many orders came and how often, where they were counted."""
    spreads = spread(tally)
    if spreads is None or tally.orders is None:
        return []
    return [
        f"{int((tally.orders > 0).sum()):,} of {len(tally.orders):,} orders came.",
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
        "fair": not caught(found, level),
        "level": level,
        "orders": None if spreads is None else asdict(spreads) | {"deviation": spreads.deviation},
        "findings": [
            {key: None if value != value else value for key, value in asdict(one).items()}
            for one in found
        ],
    }


def _number(value: float) -> str:
    return f"{value:,.4f}" if abs(value) < 1000 else f"{value:,.1f}"


def _chance(p: float) -> str:
    if p < 1e-99:
        return "<1e-99"
    return f"{p:.1e}" if p < 0.001 else f"{p:.4f}"
