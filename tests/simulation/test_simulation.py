"""The simulation finds nothing in the program, and finds faults that are planted in it.

What has to be replayed exactly runs as a program of its own, which fixes the hashes of texts.
"""

from __future__ import annotations

import os
import sys
import time

import pytest

from tests.harness.depth import amount
from tests.harness.programs import output_of
from tests.simulation import faults
from tests.simulation.plan import Plan, make_plan
from tests.simulation.shrink import kind_of, shrink
from tests.simulation.world import run

FOUND = (
    "reply_before_commit",
    "backlog_ends_too_early",
    "conflict_taken_for_success",
    "hint_trusted_instead_of_the_log",
    "private_face_sent_to_every_seat",
    "webhook_failure_counts_as_delivered",
    *amount((), many=("length_shows_a_card",)),  # after half a minute
)
"""Planted faults; README.md has the others, and the seeds that find them."""

MINUTES = amount(0.1, many=3.0)
QUICK_SEEDS = 2


def simulation(*arguments: str) -> str:
    return output_of(sys.executable, "-m", "tests.simulation", *arguments)


def fresh_seed() -> str:
    """The first of the seeds that no run before had: as given, or by the time."""
    return os.environ.get("DEALER_SIMULATION_SEED") or str(int(time.time()) * 1000)


@pytest.mark.parametrize("seed", range(QUICK_SEEDS))
def test_a_few_schedules_hold_every_invariant(seed: int) -> None:
    outcome = run(make_plan(seed))
    assert not outcome.faults, "\n".join([*outcome.plan.words(), *outcome.faults])


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_corpus_and_fresh_schedules_hold_every_invariant() -> None:
    """Schedules that once failed, made small; and as many new ones as fit in the time."""
    seeds = ("--first", fresh_seed(), "--seeds", "1000000", "--minutes", str(MINUTES))
    found = simulation("--kind", "whole", "--corpus", *seeds)
    print(found)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_planted_faults_are_found() -> None:
    found = simulation("--kind", "whole", "--seeds", "60", "--hunt", *FOUND)
    assert found.count(": whole seed ") == len(FOUND)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_schedule_is_replayed_exactly_in_another_process() -> None:
    one, other = (simulation("--kind", "whole", "--seed", "3") for _ in range(2))
    assert "digest" in one
    assert one == other


def test_a_schedule_is_replayed_exactly() -> None:
    first, again = run(make_plan(1)), run(make_plan(1))
    assert (first.digest, first.callbacks) == (again.digest, again.callbacks)


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_two_jobs_run_what_one_does() -> None:
    """Each process gives the same digests, whatever ran in it before."""
    jobs = "(sorted((one.seed, one.digest) for one in run_seeds(range(3), jobs=n)) for n in (1, 2))"
    code = f"from tests.simulation.runs import run_seeds; one, two = {jobs}; assert one == two; "
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    found = output_of(sys.executable, "-c", code + "print(len(set(one)))", env=environment)
    assert found == "3\n"


def test_a_plan_is_read_as_it_was_written() -> None:
    plan = make_plan(7)
    assert Plan.from_json(plan.to_json()) == plan


@pytest.mark.slow
def test_a_failing_schedule_is_made_smaller() -> None:
    faults.load()
    with faults.planted("conflict_taken_for_success"):
        outcome = next(o for o in (run(make_plan(seed)) for seed in range(60)) if o.faults)
        smaller = shrink(outcome, runs=12)
    assert kind_of(outcome.faults[0]) in {kind_of(each) for each in smaller.faults}
    assert len(smaller.plan.steps) < len(outcome.plan.steps)
