"""The simulation finds nothing in the program, and finds faults that are planted in it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.harness.installed import in_ci
from tests.simulation import faults
from tests.simulation.plan import Plan, make_plan
from tests.simulation.runs import first_failure, run_seed
from tests.simulation.shrink import kind_of, shrink
from tests.simulation.world import run

CORPUS = sorted((Path(__file__).parent / "corpus").glob("*.json"))
"""Schedules that once failed, made small."""

FOUND_BY = {
    "reply_before_commit": 0,
    "backlog_ends_too_early": 0,
    "hint_trusted_instead_of_the_log": 4,
    "conflict_taken_for_success": 0,
    "private_face_sent_to_every_seat": 8,
}
"""Planted faults, each with a seed that finds it; README.md has the others."""

CI_SECONDS = 45.0
QUICK_SEEDS = 4


def fresh_seeds() -> int:
    """The first of the seeds that no run before had: by the run's number in CI, or by the date."""
    base = os.environ.get("DEALER_SIMULATION_SEED")
    return int(base) if base else int(time.time()) * 1000


@pytest.mark.parametrize("seed", range(QUICK_SEEDS))
def test_a_few_schedules_hold_every_invariant(seed: int) -> None:
    outcome = run(make_plan(seed))
    assert not outcome.faults, "\n".join([*outcome.plan.words(), *outcome.faults])


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_fresh_schedules_hold_every_invariant() -> None:
    """As many as fit in the time; a failing seed is run again with `--seed`."""
    first, until, count = fresh_seeds(), time.monotonic() + (CI_SECONDS if in_ci() else 5.0), 0
    while time.monotonic() < until:
        found = run_seed(first + count)
        assert not found.faults, f"python -m tests.simulation --seed {found.seed}\n" + "\n".join(
            found.faults
        )
        count += 1
    print(f"{count} schedules from seed {first} on")


@pytest.mark.slow
@pytest.mark.parametrize("file", CORPUS, ids=lambda file: file.stem)
def test_a_schedule_of_the_corpus_holds_every_invariant(file: Path) -> None:
    outcome = run(Plan.from_json(file.read_text()))
    assert not outcome.faults


@pytest.mark.slow
@pytest.mark.parametrize("name", FOUND_BY)
def test_a_planted_fault_is_found(name: str) -> None:
    faults.load()
    with faults.planted(name):
        assert first_failure([FOUND_BY[name]]) is not None


def test_a_schedule_is_replayed_exactly() -> None:
    """In another process, with the hashes of texts that this one has."""
    first, again = run(make_plan(1)), run(make_plan(1))
    assert (first.digest, first.callbacks) == (again.digest, again.callbacks)


@pytest.mark.slow
def test_a_schedule_is_replayed_exactly_in_another_process() -> None:
    """Both have the hashes of texts that `python -m tests.simulation` gives itself."""
    command = [sys.executable, "-m", "tests.simulation", "--seed", "3"]
    one, other = (subprocess.run(command, capture_output=True, text=True) for _ in range(2))
    assert one.stdout
    assert one.stdout == other.stdout


def test_a_plan_is_read_as_it_was_written() -> None:
    plan = make_plan(7)
    assert Plan.from_json(plan.to_json()) == plan
    assert json.loads(plan.to_json())["seed"] == 7


@pytest.mark.slow
def test_a_failing_schedule_is_made_smaller() -> None:
    faults.load()
    with faults.planted("conflict_taken_for_success"):
        outcome = run(make_plan(0))
        smaller = shrink(outcome, runs=12)
    assert kind_of(smaller.faults[0]) == kind_of(outcome.faults[0])
    assert len(smaller.plan.steps) < len(outcome.plan.steps)
