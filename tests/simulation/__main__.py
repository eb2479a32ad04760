"""Runs schedules: `python -m tests.simulation --seeds 1000 --jobs 2`.

--seeds N         run N seeds, from --first on
--seed N          run one seed, print its schedule in words, what happened and what is wrong
--shrink          also make the schedule of a failing seed smaller
--save            add a failing schedule to the corpus
--fault NAME      with a planted fault
--minutes M       stop after so many minutes
--kind KIND       whole program, core, or mixed: one seed of 400 whole, the others core
--coverage        print the branches of each room that were reached
--results FILE    append the result as a line of JSON; continue with --first
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from contextlib import ExitStack
from pathlib import Path

from tests.simulation import faults
from tests.simulation.plan import Plan
from tests.simulation.progress import Progress
from tests.simulation.runs import (
    KINDS,
    Found,
    first_failure,
    fix_hashes,
    kind_of_plan,
    plan_of,
    run_plan,
    run_seeds,
)
from tests.simulation.shrink import shrink
from tests.simulation.world import Outcome

CORPUS = Path(__file__).parent / "corpus"
HUNT_CORE = 20
"""Core plans that a hunt tries for each whole one: they take about as long."""


def main() -> int:
    faults.load()
    parser = argparse.ArgumentParser(prog="python -m tests.simulation")
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int)
    parser.add_argument("--plan", type=Path, help="a schedule of the corpus")
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--save", action="store_true")
    parser.add_argument("--fault", choices=sorted(faults.FAULTS))
    parser.add_argument("--hunt", nargs="*", metavar="NAME", help="find these, or all, faults")
    parser.add_argument("--kind", choices=KINDS, default="mixed")
    parser.add_argument("--results", type=Path)
    parser.add_argument("--coverage", action="store_true", help="in one process")
    parser.add_argument("--corpus", action="store_true", help="first run the corpus")
    given = parser.parse_args()
    fix_hashes()
    with ExitStack() as stack:
        if given.fault is not None:
            from tests.simulation.reached import branches_printed  # needs coverage

            given.jobs = 1
            stack.enter_context(faults.planted(given.fault))
        if given.coverage:
            given.jobs = 1
            stack.enter_context(branches_printed())
        if given.hunt is not None:
            return _hunt(given)
        if given.seed is not None:
            return _one(plan_of(given.seed, given.kind), given)
        if given.plan is not None:
            return _one(Plan.from_json(given.plan.read_text()), given)
        return _many(given)


def _one(plan: Plan, given: argparse.Namespace) -> int:
    outcome = run_plan(plan)
    if outcome.faults and given.shrink:
        outcome = shrink(outcome)
    print("\n".join(outcome.plan.words()))
    print(", ".join(f"{what} {count}" for what, count in sorted(outcome.seen.items())))
    print(f"{outcome.seconds:.1f} s, {outcome.callbacks} callbacks, digest {outcome.digest[:16]}")
    _say_faults(outcome)
    if outcome.faults and given.save:
        _save(outcome)
    return bool(outcome.faults)


def _many(given: argparse.Namespace) -> int:
    if given.corpus and (failed := _run_corpus()):
        return failed
    seeds = range(given.first, given.first + given.seeds)
    progress = Progress(len(seeds))
    for found in run_seeds(seeds, jobs=given.jobs, kind=given.kind):
        progress.add(found)
        if found.faults:
            plan = plan_of(found.seed, found.kind)
            print("\n".join(plan.words()), flush=True)
            if given.save:
                _save(shrink(run_plan(plan)))
        if progress.minutes > given.minutes:
            break
    progress.say_result()
    if given.results is not None:
        line = {"first": given.first, "kind": given.kind} | progress.result()
        with given.results.open("a") as file:
            file.write(json.dumps(line) + "\n")
    return bool(progress.failed)


def _run_corpus() -> int:
    """How many schedules of the corpus fail."""
    failed = 0
    for file in sorted(CORPUS.glob("*.json")):
        outcome = run_plan(Plan.from_json(file.read_text()))
        print(f"corpus {file.stem}: {len(outcome.faults)} faults", flush=True)
        _say_faults(outcome)
        failed += bool(outcome.faults)
    return failed


def _hunt(given: argparse.Namespace) -> int:
    """For each planted fault the first seed that finds it, of at most --seeds."""
    missed = 0
    for name in given.hunt or sorted(faults.FAULTS):
        begun = time.process_time()
        with faults.planted(name):
            found = _hunted(given)
        spent = time.process_time() - begun
        missed += found is None
        what = "NOT FOUND"
        if found is not None:
            what = f"{found.kind} seed {found.seed}: {found.faults[0][:150]}"
        print(f"{name} ({spent:.0f} s): {what}", flush=True)
    return bool(missed)


def _hunted(given: argparse.Namespace) -> Found | None:
    """The first seed that finds the fault that is planted, first of the core plans."""
    found = None
    if given.kind != "whole":
        seeds = range(given.first, given.first + HUNT_CORE * given.seeds)
        found = first_failure(seeds, kind="core")
    if found is None and given.kind != "core":
        found = first_failure(range(given.first, given.first + given.seeds), kind="whole")
    return found


def _say_faults(outcome: Outcome) -> None:
    for fault in outcome.faults:
        print(f"WRONG at {fault}")


def _save(outcome: Outcome) -> None:
    CORPUS.mkdir(exist_ok=True)
    name = f"{kind_of_plan(outcome.plan)}-{outcome.plan.seed}"
    (CORPUS / f"{name}.json").write_text(outcome.plan.to_json() + "\n")


if __name__ == "__main__":
    sys.exit(main())
