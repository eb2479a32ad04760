"""The core world finds nothing in the program, and finds faults that are planted in it."""

from __future__ import annotations

import sys

import pytest

from tests.harness.depth import amount
from tests.harness.programs import output_of
from tests.simulation.core.plan import make_core_plan
from tests.simulation.core.world import run_core
from tests.simulation.plan import Plan
from tests.simulation.runs import kind_of_plan, plan_of
from tests.simulation.test_simulation import fresh_seed

FOUND = ("reply_before_commit", "lost_append_is_not_reloaded")
"""Planted faults; README.md has the others, and the seeds that find them."""

SEEDS, MINUTES = 1_000_000, amount(0.2, many=3.0)


def simulation(*arguments: str) -> str:
    return output_of(sys.executable, "-m", "tests.simulation", "--kind", "core", *arguments)


@pytest.mark.parametrize("seed", range(5))
def test_a_few_schedules_hold_every_invariant(seed: int) -> None:
    outcome = run_core(make_core_plan(seed))
    assert not outcome.faults, "\n".join([*outcome.plan.words(), *outcome.faults])
    assert outcome.seen["step follow"] or outcome.plan.settings["seats"] == 1


def test_a_schedule_depends_on_its_seed_only() -> None:
    """What other runs leave in the process, such as prepared tables, changes nothing."""
    first = run_core(make_core_plan(11))
    for seed in range(20, 25):
        run_core(make_core_plan(seed))
    again = run_core(make_core_plan(11))
    assert (first.digest, first.callbacks) == (again.digest, again.callbacks)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_schedule_is_replayed_exactly_in_another_process() -> None:
    one, other = (simulation("--seed", "11") for _ in range(2))
    assert "digest" in one
    assert one == other


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_fresh_schedules_hold_every_invariant() -> None:
    seeds = ("--first", fresh_seed(), "--seeds", str(SEEDS), "--minutes", str(MINUTES))
    print(simulation(*seeds))


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_planted_faults_are_found() -> None:
    found = simulation("--seeds", "10", "--hunt", *FOUND)
    assert found.count(": core seed ") == len(FOUND)


def test_a_mixture_has_plans_of_both_kinds() -> None:
    kinds = [kind_of_plan(plan_of(seed, "mixed")) for seed in range(799, 802)]
    assert kinds == ["core", "whole", "core"]
    plan = make_core_plan(7)
    assert kind_of_plan(Plan.from_json(plan.to_json())) == "core"
