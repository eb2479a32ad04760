"""Many runs and what the checkers say of them: porcupine of the histories, sumdb of the heads.

    python tests/consistency/check.py FOLDER --runs 200 --operations 5000 --seed 1

Each run has a set-up and a seed of its own; `FOLDER/result.json` has the sums, every fault that a
checker found, and the versions of all programs. The folder of a run without a fault keeps
`run.json` and, of the first of each set-up, everything.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import shutil
import sqlite3
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from traceback import format_exc
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from dealer.version import __version__
from tests.consistency.run import Figures, one_run
from tests.consistency.setups import CLUSTER, SETUPS
from tests.harness.cluster import installed
from tests.harness.installed import GO_SOURCES, go, missing
from tests.harness.programs import output_of

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PORCUPINE = "DEALER_TEST_PORCUPINE"
"""A folder with porcupine's source; without it, `go` gets the module from its registry."""

MODULE = "github.com/anishathalye/porcupine"
MODULE_VERSION = "v1.3.0"


@dataclass(frozen=True)
class Checkers:
    """The two programs, built."""

    linear: Path
    heads: Path

    @classmethod
    def build(cls, folder: Path) -> Checkers:
        """Build both in `folder`; a test is skipped where Go or a module is not there."""
        folder.mkdir(parents=True, exist_ok=True)
        program = go()
        checkers = cls(folder / "linear", folder / "heads")
        cache = {"GOCACHE": str(folder / "cache"), "GOFLAGS": ""}
        old = {**os.environ, **cache, "GO111MODULE": "off"}
        subprocess.run(
            [program, "build", "-o", checkers.heads, HERE / "heads.go"],
            check=True,
            env=old | {"GOPATH": str(GO_SOURCES)},
        )
        if source := os.environ.get(PORCUPINE):
            module = folder / "gopath/src" / MODULE
            module.parent.mkdir(parents=True, exist_ok=True)
            if not module.exists():
                module.symlink_to(Path(source).resolve())
            built = subprocess.run(
                [program, "build", "-o", checkers.linear, HERE / "linear.go"],
                check=False,
                env=old | {"GOPATH": str(folder / "gopath")},
            )
        else:
            place = folder / "linear-module"
            place.mkdir(exist_ok=True)
            shutil.copy(HERE / "linear.go", place)
            (place / "go.mod").write_text(
                f"module linear\n\ngo 1.19\n\nrequire {MODULE} {MODULE_VERSION}\n"
            )
            built = subprocess.run(
                [program, "build", "-mod=mod", "-o", checkers.linear, "."],
                check=False,
                cwd=place,
                env={**os.environ, **cache},
                stderr=subprocess.DEVNULL,
            )
        if built.returncode:
            missing(f"{MODULE} {MODULE_VERSION} cannot be had; {PORCUPINE} may name its source")
        return checkers

    def faults(self, folder: Path) -> list[str]:
        """What the checkers say against the run in `folder`, a text each; none if nothing."""
        said = []
        done = subprocess.run(
            [self.linear, folder / "history.jsonl"], capture_output=True, text=True, check=False
        )
        if done.returncode:
            said.append(done.stdout + done.stderr)
        keys = json.loads((folder / "run.json").read_text())["keys"]
        for table, key in keys.items():
            files = (folder / f"{table}.bundle.jsonl", key, folder / f"{table}.heads.jsonl")
            done = subprocess.run([self.heads, *files], capture_output=True, text=True, check=False)
            if done.returncode:
                said.append(f"heads of {table}: {done.stdout}{done.stderr}")
        return said


@dataclass
class Sums:
    """Of one set-up."""

    runs: int = 0
    operations: int = 0
    unknown: int = 0
    refused: int = 0
    repeated: int = 0
    heads: int = 0
    tables: int = 0
    seconds: float = 0.0
    subscriptions: Counter[str] = field(default_factory=Counter)
    faults_injected: Counter[str] = field(default_factory=Counter)

    def add(self, figures: Figures) -> None:
        self.runs += 1
        for name in ("operations", "unknown", "refused", "repeated", "heads", "tables", "seconds"):
            setattr(self, name, getattr(self, name) + getattr(figures, name))
        self.seconds = round(self.seconds, 1)
        self.subscriptions.update(figures.subscriptions)
        self.faults_injected.update(figures.faults)


async def check_runs(
    folder: Path,
    *,
    runs: int,
    operations: int,
    seed: int,
    setups: tuple[str, ...],
    checkers: Checkers,
    at_once: int = 1,
) -> dict[str, Any]:
    """Runs of the set-ups in turn, `at_once` so many, each checked when it has ended.

    Returns the result, as it is written after each run. Runs that `folder` has a result of are
    counted, and those in which something was found are checked again.
    """
    sums: dict[str, Sums] = {}
    found: list[dict[str, Any]] = []
    begun, first_seed = monotonic(), seed
    tree = await asyncio.to_thread(_tree)
    if (folder / "result.json").exists():
        before = json.loads((folder / "result.json").read_text())
        if before["tree"] != tree:
            raise SystemExit(f"{folder} has runs of another version; name another folder.")
        begun -= before["seconds"]
        first_seed = before["seeds"][0]
        for name, figures in before["setups"].items():
            for counted in ("subscriptions", "faults_injected"):
                figures[counted] = Counter(figures[counted])
            sums[name] = Sums(**figures)
        for one in before["found"]:
            place = folder / str(one["seed"])
            if not (place / "run.json").exists():
                found.append(one)
            elif said := checkers.faults(place):
                found.append(one | {"said": said})
    version = await asyncio.to_thread(output_of, go(), "version")
    places = asyncio.Semaphore(at_once)

    async def check(number: int) -> None:
        setup, place = setups[number % len(setups)], folder / f"{seed + number}"
        run: dict[str, Any] = {"setup": setup, "seed": seed + number}
        async with places:
            try:
                figures = await one_run(place, operations=operations, **run)
            except Exception:  # as of a command that was never answered
                found.append(run | {"said": [f"the run did not end: {format_exc()}"]})
                return
            said = await asyncio.to_thread(checkers.faults, place)
        first = setup not in sums
        sums.setdefault(setup, Sums()).add(figures)
        if said:
            found.append(run | {"said": said})
        shutil.rmtree(place / "server", ignore_errors=True)
        if not said and not first:
            for file in place.glob("*.jsonl"):
                file.unlink()
        (folder / "result.json").write_text(json.dumps(result(), indent=1) + "\n")

    def result() -> dict[str, Any]:
        return {
            "dealer": __version__,
            "tree": tree,
            "porcupine": MODULE_VERSION,
            "go": version.strip(),
            "python": platform.python_version(),
            "sqlite": sqlite3.sqlite_version,
            "runs": sum(one.runs for one in sums.values()),
            "operations": sum(one.operations for one in sums.values()),
            "seeds": [first_seed, seed + runs - 1],
            "seconds": round(monotonic() - begun),
            "setups": {name: vars(sums[name]) for name in SETUPS if name in sums},
            "found": found,
        }

    async with asyncio.TaskGroup() as group:
        for number in range(runs):
            group.create_task(check(number))
    return result()


def _tree() -> str:
    """The hash by Git of the package whose servers run, with a `+` if it was changed since."""
    if not (ROOT / ".git").exists():
        return "no repository"
    changed = output_of("git", "status", "--porcelain", "dealer", "migrations", cwd=ROOT)
    tree = output_of("git", "rev-parse", "HEAD:dealer", cwd=ROOT).strip()
    return tree + ("+" if changed else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=len(SETUPS))
    parser.add_argument("--operations", type=int, default=5000, help="of the clients, in a run")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--setup", action="append", choices=SETUPS, help="default: all in turn")
    parser.add_argument("--at-once", type=int, default=1, help="so many runs beside each other")
    given = parser.parse_args()
    there = [name for name in SETUPS if name != CLUSTER or installed()]
    result = asyncio.run(
        check_runs(
            given.folder,
            runs=given.runs,
            operations=given.operations,
            seed=given.seed,
            setups=tuple(given.setup or there),
            at_once=given.at_once,
            checkers=Checkers.build(given.folder / "checkers"),
        )
    )
    print(f"{result['operations']} operations, {len(result['found'])} runs with a fault")
    return 1 if result["found"] else 0


if __name__ == "__main__":
    sys.exit(main())
