"""Runs schedules: `python -m tests.simulation --seeds 1000 --jobs 2`.

--seeds N         run N seeds, from --first on
--seed N          run one seed, print its schedule in words, what happened and what is wrong
--shrink          also make the schedule of a failing seed smaller
--save            add a failing schedule to the corpus
--fault NAME      with a planted fault
--minutes M       stop after so many minutes
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from tests.simulation import faults
from tests.simulation.plan import Plan, make_plan
from tests.simulation.runs import first_failure, fix_hashes, run_seeds
from tests.simulation.shrink import kind_of, shrink
from tests.simulation.world import Outcome, run

CORPUS = Path(__file__).parent / "corpus"
PROGRESS_SECONDS = 30.0


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
    parser.add_argument("--corpus", action="store_true", help="first run the corpus")
    given = parser.parse_args()
    fix_hashes()
    with ExitStack() as stack:
        if given.fault is not None:
            given.jobs = 1
            stack.enter_context(faults.planted(given.fault))
        if given.hunt is not None:
            return _hunt(given)
        if given.seed is not None:
            return _one(make_plan(given.seed), given)
        if given.plan is not None:
            return _one(Plan.from_json(given.plan.read_text()), given)
        return _many(given)


def _one(plan: Plan, given: argparse.Namespace) -> int:
    outcome = run(plan)
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
    begun = said = time.monotonic()
    spent, count = 0.0, 0
    kinds: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    for found in run_seeds(range(given.first, given.first + given.seeds), jobs=given.jobs):
        count, spent = count + 1, spent + found.seconds
        seen.update(found.seen)
        if found.faults:
            kinds[kind_of(found.faults[0])] += 1
            print(f"seed {found.seed}: " + "\n    ".join(found.faults), flush=True)
            if given.save:
                _save(shrink(run(make_plan(found.seed))))
        if time.monotonic() - said > PROGRESS_SECONDS:
            said = time.monotonic()
            failed = sum(kinds.values())
            rate = count / spent
            print(f"{count} run, {failed} failed, {rate:.1f} a CPU second", flush=True)
        if time.monotonic() - begun > given.minutes * 60:
            break
    print(f"{count} schedules in {spent:.0f} CPU seconds: {count / spent:.1f} a second")
    print(f"{len(seen)} kinds of steps and answers, {sum(seen.values())} in all")
    for kind, number in kinds.most_common():
        print(f"{number} × {kind}")
    return bool(kinds)


def _run_corpus() -> int:
    """How many schedules of the corpus fail."""
    failed = 0
    for file in sorted(CORPUS.glob("*.json")):
        outcome = run(Plan.from_json(file.read_text()))
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
            found = first_failure(range(given.first, given.first + given.seeds))
        spent = time.process_time() - begun
        missed += found is None
        what = "NOT FOUND" if found is None else f"seed {found.seed}: {found.faults[0][:150]}"
        print(f"{name} ({spent:.0f} s): {what}", flush=True)
    return bool(missed)


def _say_faults(outcome: Outcome) -> None:
    for fault in outcome.faults:
        print(f"WRONG at {fault}")


def _save(outcome: Outcome) -> None:
    CORPUS.mkdir(exist_ok=True)
    (CORPUS / f"{outcome.plan.seed}.json").write_text(outcome.plan.to_json() + "\n")


if __name__ == "__main__":
    sys.exit(main())
