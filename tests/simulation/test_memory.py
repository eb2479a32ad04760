"""What a node keeps in memory does not grow with what has happened."""

from __future__ import annotations

import os
import sys

import pytest

from tests.harness.programs import output_of
from tests.simulation.memory import Sizes, grown, repeated
from tests.simulation.plan import Plan, Step, make_plan
from tests.simulation.world import carry_out

ONCE, OFTEN = 2, 10
SHUFFLE = [Step(0.4, "Ada", "shuffle", 1), Step(2.0, "Bob", "draw", 2)]


def plan() -> Plan:
    """A plan without faults, so that both nodes run from the beginning to the end."""
    found = make_plan(4)
    commands = [step for step in found.steps if step.who not in ("north", "south", "database")]
    settings = found.settings | {"length": 3.0, "entropy": "players", "wait_ms": 300}
    return Plan(4, settings, tuple(sorted([*commands, *SHUFFLE])))


def kept(times: int) -> list[Sizes]:
    world = carry_out(repeated(plan(), times))
    assert not world.outcome.faults, world.outcome.faults
    return list(world.kept.values())


def found_to_grow() -> list[Sizes]:
    return [grown(*sizes) for sizes in zip(kept(ONCE), kept(OFTEN), strict=True)]


@pytest.mark.slow
def test_a_repeated_plan_does_not_grow_a_node() -> None:
    """In a process with fixed hashes, so that the run is the same each time."""
    code = "from tests.simulation.test_memory import found_to_grow; print(*found_to_grow())"
    found = output_of(sys.executable, "-c", code, env=os.environ | {"PYTHONHASHSEED": "0"})
    assert found == "Counter() Counter()\n"
