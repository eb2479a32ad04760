"""Runs many seeds in several processes, and reports the failing ones."""

from __future__ import annotations

import gc
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from multiprocessing import get_context
from typing import NamedTuple

from tests.simulation.plan import make_plan
from tests.simulation.world import run

COLLECT_EVERY = 20
RECYCLE_EVERY = 500
"""Schedules after which a process is replaced: what was dropped in the middle is not all freed."""


class Found(NamedTuple):
    """The result of one seed, without its plan."""

    seed: int
    faults: tuple[str, ...]
    seen: Counter[str]
    digest: str
    seconds: float


def run_seed(seed: int) -> Found:
    """Run one seed in this process."""
    begun = time.process_time()
    outcome = run(make_plan(seed))
    if seed % COLLECT_EVERY == 0:
        gc.collect()
    spent = time.process_time() - begun
    return Found(seed, tuple(outcome.faults), outcome.seen, outcome.digest, spent)


def run_seeds(seeds: Iterable[int], *, jobs: int = 1) -> Iterator[Found]:
    """The results of these seeds, in any order if there are several `jobs`."""
    if jobs == 1:
        yield from map(run_seed, seeds)
        return
    context = get_context("spawn")
    with context.Pool(jobs, maxtasksperchild=RECYCLE_EVERY) as pool:
        yield from pool.imap_unordered(run_seed, seeds, chunksize=1)


def first_failure(seeds: Iterable[int]) -> Found | None:
    """The first of these seeds that fails."""
    return next((found for found in map(run_seed, seeds) if found.faults), None)


def fix_hashes() -> None:
    """Start this program again with fixed hashes of texts, on which the order of sets depends."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        environment = os.environ | {"PYTHONHASHSEED": "0"}
        os.execve(sys.executable, [sys.executable, *sys.orig_argv[1:]], environment)
