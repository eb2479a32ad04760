"""How many people a machine seats: players at a human pace, until they wait for more than 50 ms.

    seats.py [--machines 1:512 1:1024 2:1024] [--step 1000] [--seconds 20] [--most-ms 50]

A machine is PROCESSORS:MIB, for the server alone: its affinity, and a memory cgroup without swap,
for which this program needs root. The players are those of `pace.py`, four at a table, each of whom
draws every two seconds on average. Seats are added, `step` at a time, until the p99 of an answer or
of the last push is above `most-ms`, or the server was killed for its memory; then half a step less
is tried. The load uses the other processors, or on a machine without others the same ones.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[2]))

from load import memory
from pace import SEATS, Run, Table, measure, run_loop, seated
from server import alone

MIB = 2**20


class Machine(NamedTuple):
    """What the server may use."""

    processors: int
    mib: int

    def __str__(self) -> str:
        return f"{self.processors} processor{'s' * (self.processors > 1)}, {self.mib} MiB"


@contextmanager
def memory_group(mib: int) -> Iterator[Path]:
    """A cgroup (version 1 or 2) with this much memory; the file to which a process adds itself."""
    version_1 = Path("/sys/fs/cgroup/memory")
    group = (version_1 if version_1.is_dir() else version_1.parent) / f"dealer-bench-{os.getpid()}"
    names = ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes")
    limits = dict.fromkeys(names, mib * MIB)
    if not version_1.is_dir():
        limits = {"memory.max": mib * MIB, "memory.swap.max": 0}
    try:
        group.mkdir()
    except OSError as error:
        sys.exit(f"No cgroup can be made ({error}): run this as root, on Linux.")
    try:
        for name, limit in limits.items():
            (group / name).write_text(str(limit))
        yield group / "cgroup.procs"
    finally:
        group.rmdir()


def entering(machine: Machine, members: Path) -> Callable[[], None]:
    """What the server's process does first."""

    def enter() -> None:
        members.write_text("0")
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: machine.processors])

    return enter


class Step(NamedTuple):
    """One measurement: seats, the run, CPU in processors, and memory in MiB."""

    seats: int
    run: Run
    cpu: float
    mib: float

    def __str__(self) -> str:
        answer, push = self.run.answers, self.run.pushes
        return (
            f"{self.seats} seats: answer p50 {answer.at(0.5):.1f} ms, p99 {answer.at(0.99):.1f} ms,"
            f" last push p99 {push.at(0.99):.1f} ms; {self.cpu:.2f} processors,"
            f" {self.run.cpu:.0f} µs a draw, {self.mib:.0f} MiB;"
            f" the load was late by {self.run.late.at(0.99):.1f} ms (p99)"
        )


async def find(machine: Machine, given: argparse.Namespace) -> list[Step]:
    """The measurements, the last of which is of half a step less than the first that failed."""
    everyone = os.sched_getaffinity(0)
    steps: list[Step] = []
    with (
        memory_group(machine.mib) as members,
        alone(enter=entering(machine, members)) as server,
    ):
        os.sched_setaffinity(0, set(sorted(everyone)[machine.processors :]) or everyone)
        pid, chance = server.process.pid, random.Random()
        tables: list[Table] = []

        async def step(count: int) -> Step:
            run = Run()
            for table in tables[:count]:
                table.counts_in(run)
            await measure(
                tables[:count],
                run,
                port=server.port,
                pid=pid,
                folder=server.folder,
                seconds=given.seconds,
                every=given.every,
            )
            cpu = run.cpu * len(run.answers.all) / given.seconds / 1e6
            return Step(count * SEATS, run, cpu, memory(pid) / MIB)

        try:
            while not steps or steps[-1].run.worst() <= given.most_ms:
                tables += await seated(given.step // SEATS, server.port, Run(), chance)
                steps.append(await step(len(tables)))
                print(f"  {steps[-1]}", flush=True)
            steps.append(await step(len(tables) - given.step // SEATS // 2))
            print(f"  {steps[-1]}", flush=True)
        except (OSError, AssertionError) as error:
            print(f"  with {len(tables) * SEATS + given.step}: {error or 'the server has ended'}")
        finally:
            os.sched_setaffinity(0, everyone)
    return steps


async def main(given: argparse.Namespace) -> None:
    found = []
    for machine in given.machines:
        print(machine, flush=True)
        steps = await find(machine, given)
        good = [step for step in steps if step.run.worst() <= given.most_ms]
        found.append((machine, max(good, key=lambda step: step.seats, default=None)))
    print(
        f"\n| machine | seats at p99 ≤ {given.most_ms:g} ms | answer p99 | last push p99 | memory |"
    )
    print("|---|---|---|---|---|")
    for machine, best in found:
        if best is None:
            print(f"| {machine} | fewer than {given.step} | | | |")
        else:
            answer, push = best.run.answers.at(0.99), best.run.pushes.at(0.99)
            row = f"{best.seats:,} | {answer:.0f} ms | {push:.0f} ms | {best.mib:.0f} MiB"
            print(f"| {machine} | {row} |")


def _machine(text: str) -> Machine:
    processors, _, mib = text.partition(":")
    return Machine(int(processors), int(mib))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    machines = [Machine(1, 512), Machine(1, 1024), Machine(2, 1024)]
    parser.add_argument("--machines", type=_machine, nargs="+", default=machines)
    parser.add_argument("--step", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--every", type=float, default=2.0)
    parser.add_argument("--most-ms", type=float, default=50.0)
    return parser.parse_args()


if __name__ == "__main__":
    run_loop(main(_arguments()))
