"""Makes a failing plan smaller: drops steps while what is wrong stays wrong."""

from __future__ import annotations

import re
from collections.abc import Callable

from tests.simulation.plan import Plan
from tests.simulation.runs import run_plan
from tests.simulation.world import Outcome

_VARIABLE = re.compile(r"^[\d.]+ s: |[0-9a-f]{8,}|\d+|Ada|Bob|Cleo|Dan|north|south")


def kind_of(fault: str) -> str:
    """A fault's sentence without times, numbers and names."""
    return _VARIABLE.sub("…", fault)[:60]


def shrink(
    outcome: Outcome, *, runs: int = 200, attempt: Callable[[Plan], Outcome] = run_plan
) -> Outcome:
    """The outcome of the smallest plan found that has a fault of the same kind as the first."""
    wanted = kind_of(outcome.faults[0])
    best, size, left = outcome, max(1, len(outcome.plan.steps) // 2), runs
    while size and left:
        start = 0
        while start < len(best.plan.steps) and left:
            left -= 1
            found = attempt(best.plan.without(set(range(start, start + size))))
            if any(kind_of(fault) == wanted for fault in found.faults):
                best = found
            else:
                start += size
        size //= 2
    return best
