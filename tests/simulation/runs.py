"""Runs many seeds in several processes, and reports the failing ones.

A seed has a plan of each kind: of the whole program, and of the core world below the gateway. Of a
mixture one seed of WHOLE_EVERY is run as the first kind, all others as the second.
"""

from __future__ import annotations

import gc
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from multiprocessing import get_context
from typing import NamedTuple

from tests.simulation.core.plan import KIND as CORE
from tests.simulation.core.plan import make_core_plan
from tests.simulation.core.world import run_core
from tests.simulation.plan import Plan, make_plan
from tests.simulation.world import Outcome, run

KINDS = ("mixed", "whole", "core")
WHOLE_EVERY = 400
COLLECT_EVERY = {"whole": 20, CORE: 50}
RECYCLE_EVERY = {"whole": 500, "mixed": 4_000, CORE: 4_000}
"""Schedules after which a process is replaced: what was dropped in the middle is not all freed, a
quarter of a MB of a core run. It is frozen, so that no later collection visits it."""

CHUNK = {"whole": 1, "mixed": 50, CORE: 50}


class Found(NamedTuple):
    """The result of one seed, without its plan."""

    seed: int
    kind: str
    faults: tuple[str, ...]
    seen: Counter[str]
    digest: str
    seconds: float


def plan_of(seed: int, kind: str) -> Plan:
    """The plan of a seed, of one of the KINDS."""
    whole = kind == "whole" or (kind == "mixed" and seed % WHOLE_EVERY == 0)
    return make_plan(seed) if whole else make_core_plan(seed)


def kind_of_plan(plan: Plan) -> str:
    """`whole` or `core`; plans of the corpus without a kind are whole."""
    return str(plan.settings.get("kind", "whole"))


def run_plan(plan: Plan) -> Outcome:
    """Carry out a plan of any kind, alone in the process."""
    return run_core(plan) if kind_of_plan(plan) == CORE else run(plan)


def run_seed(seed: int, *, kind: str = "whole") -> Found:
    """Run one seed in this process."""
    begun = time.process_time()
    plan = plan_of(seed, kind)
    outcome = run_plan(plan)
    if seed % COLLECT_EVERY[kind_of_plan(plan)] == 0:
        gc.collect()
        gc.freeze()
    spent = time.process_time() - begun
    faults = tuple(outcome.faults)
    return Found(seed, kind_of_plan(plan), faults, outcome.seen, outcome.digest, spent)


def run_seeds(seeds: Iterable[int], *, jobs: int = 1, kind: str = "whole") -> Iterator[Found]:
    """The results of these seeds, in any order if there are several `jobs`."""
    work = partial(run_seed, kind=kind)
    # Also for one job: a process that runs thousands keeps some of each, and they fill the memory.
    context = get_context("spawn")
    recycle = max(1, RECYCLE_EVERY[kind] // CHUNK[kind])
    with context.Pool(jobs, prepare_process, maxtasksperchild=recycle) as pool:
        yield from pool.imap_unordered(work, seeds, chunksize=CHUNK[kind])


def prepare_process() -> None:
    """Collect garbage between runs only, and never what is there before them."""
    gc.collect()
    gc.freeze()
    gc.disable()
    logging.disable(logging.CRITICAL)


def first_failure(seeds: Iterable[int], *, kind: str = "whole") -> Found | None:
    """The first of these seeds that fails."""
    work = partial(run_seed, kind=kind)
    return next((found for found in map(work, seeds) if found.faults), None)


def fix_hashes() -> None:
    """Start this program again with fixed hashes of texts, on which the order of sets depends."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        environment = os.environ | {"PYTHONHASHSEED": "0"}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)
