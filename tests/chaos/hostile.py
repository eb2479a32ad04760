"""One hostile address attacks a server in every way at once, while honest players play.

    python tests/chaos/hostile.py 600

The count is the seconds of attack on a real `dealer serve` with its default limits. All attackers
use 127.0.0.2; five tables of four players use five other addresses. Draws are timed first alone,
then next to a process that uses as much CPU time as the attackers but sends nothing, and then under
attack. The goal is about what the server can bear, not about the number of processors, so the third
figure is compared with the second. What the server writes for the honest players is measured before
the attack, per draw, and subtracted.

The exit code is 1 if a goal was missed or honest players lost anything.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import secrets
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.gateway.rpc_client import RpcClient
from tests.harness import process
from tests.harness.honest_players import Measured, Table, resumed_from_the_start
from tests.harness.server_process import ROOT, ServerProcess

HONEST = ("127.0.0.1", "127.0.0.3", "127.0.0.4", "127.0.0.5", "127.0.0.6")
MEMORY_MIB = 256.0
WRITTEN_MB = 200.0
SLOWER = 1.2
"""Goals: highest memory, bytes written in ten minutes, p99 as a multiple of the one before."""

GOAL_SECONDS = 600.0
MEASURABLE = 60.0
"""Seconds of attack from which on latencies are compared: with fewer draws a p99 means little."""

STOP_MIB, STOP_MB = 4096.0, 8192.0
"""Bytes written at which the attack is stopped to protect the machine; the goals are missed then.
"""

MISTAKES = ("Traceback", "internal error", "never retrieved", "never awaited")


@dataclass
class Phase:
    """Resources used and bytes written in one phase; seconds, MB of 10^6 bytes."""

    seconds: float = 0.0
    server: float = 0.0
    players: float = 0.0
    attackers: float = 0.0
    others: float = 0.0
    written: float = 0.0
    grown: float = 0.0


@dataclass
class Figures:
    """`missed` are goals; `faults` are violated guarantees, whatever the machine's speed."""

    seconds: float
    phases: dict[str, Phase] = field(default_factory=dict)
    memory_before: float = 0.0
    memory_at_most: float = 0.0
    memory_after: float = 0.0
    measured: Measured = field(default_factory=Measured)
    attacks: dict[str, dict[str, Any]] = field(default_factory=dict)
    refused: Counter[str] = field(default_factory=Counter)
    stopped_after: float = 0.0
    missed: list[str] = field(default_factory=list)

    @property
    def faults(self) -> list[str]:
        return self.measured.faults

    def draws(self, phase: str) -> int:
        return len(self.measured.latencies[phase])

    def of_attack(self, kind: str) -> float:
        """MB `written` or `grown` under attack, without the cost of the honest players' draws."""
        quiet, attack = self.phases["alone"], self.phases["attacked"]
        a_draw = getattr(quiet, kind) / max(1, self.draws("alone"))
        return float(getattr(attack, kind)) - a_draw * self.draws("attacked")

    @property
    def slower(self) -> float:
        """The p99 under attack as a multiple of that next to the idle load."""
        before = self.measured.percentile("loaded", 0.99)
        return round(self.measured.percentile("attacked", 0.99) / before, 2) if before else 0.0


async def attack(folder: Path, *, seconds: float, seed: int, only: Sequence[str] = ()) -> Figures:
    """Play, and attack for this many seconds, with all attacks or the named ones."""
    figures = Figures(seconds)
    before = min(90.0, max(2.0, seconds / 6))
    # Only ports and paths are set; the limits are the defaults.
    async with ServerProcess(folder, limit=()) as server:
        tables = [
            Table(server.port, address, figures.measured, random.Random(f"{seed} {address}"))
            for address in HONEST
        ]
        for table in tables:
            await table.sit_down()
        enough = asyncio.Event()
        playing = [asyncio.create_task(table.play(enough)) for table in tables]
        await _phase(figures, server, "warming up", min(5.0, before))
        await _phase(figures, server, "alone", before)
        if seconds >= MEASURABLE:
            await _phase(figures, server, "loaded", before, "--burn", str(before))
        figures.memory_before = process.rss(server.pid)
        arguments = [str(server.port), str(round(seconds)), str(seed), "--tables"]
        out = await _phase(
            figures,
            server,
            "attacked",
            seconds,
            *arguments,
            *(table.id for table in tables),
            "--only",
            *only,
        )
        figures.attacks = json.loads(out) if out else {}
        figures.measured.phase = "after"
        enough.set()
        await asyncio.gather(*playing)
        await _check_afterwards(figures, server, tables)
        server.terminate()
        if code := await server.ended():
            figures.faults.append(f"the server ended with {code}")
    log = server.output.read_text()
    for mistake in MISTAKES:
        if mistake in log:
            figures.faults.append(f"the server's log has {mistake!r}: {_around(log, mistake)}")
    _compare_with_goals(figures)
    return figures


def _around(log: str, mistake: str) -> str:
    """The first mention of a mistake with what was logged after it, such as a traceback."""
    at = log.rfind("\n", 0, log.index(mistake)) + 1
    return log[at : at + 3000]


async def _phase(
    figures: Figures, server: ServerProcess, name: str, seconds: float, *arguments: str
) -> bytes:
    """Let `seconds` pass, with the attackers' process if there are arguments for it."""
    phase = figures.phases[name] = Phase()
    load = None
    if arguments:
        load = await asyncio.create_subprocess_exec(
            "nice", "-n", "5", sys.executable, str(Path(__file__).parent / "attackers.py"),
            *arguments, cwd=ROOT, stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
    reading = asyncio.create_task(load.stdout.read()) if load and load.stdout else None
    files = [server.database, *(Path(f"{server.database}-{end}") for end in ("wal", "shm"))]
    files.append(server.output)
    begun, used, busy = time.monotonic(), time.process_time(), process.busy_seconds()
    cpu, written = process.processor_seconds(server.pid), process.bytes_written(server.pid)
    size = process.size_of(*files)
    figures.measured.phase = name
    while time.monotonic() < begun + seconds or (load and load.returncode is None):
        await asyncio.sleep(0.1)
        memory = process.rss(server.pid)
        figures.memory_at_most = max(figures.memory_at_most, memory)
        phase.written = (process.bytes_written(server.pid) - written) / 1e6
        if load and load.returncode is None:
            with suppress(OSError, IndexError):
                phase.attackers = process.processor_seconds(load.pid)
            late = time.monotonic() > begun + seconds + 60
            if memory > STOP_MIB or phase.written > STOP_MB or late:
                figures.stopped_after = round(time.monotonic() - begun, 1)
                load.send_signal(signal.SIGKILL)
                await load.wait()
                break
    phase.seconds = round(time.monotonic() - begun, 1)
    phase.server = process.processor_seconds(server.pid) - cpu
    phase.players = time.process_time() - used
    phase.others = process.busy_seconds() - busy - phase.server - phase.players - phase.attackers
    phase.grown = (process.size_of(*files) - size) / 1e6
    figures.memory_at_most = max(figures.memory_at_most, process.peak(server.pid))
    return await reading if reading else b""


async def _check_afterwards(figures: Figures, server: ServerProcess, tables: list[Table]) -> None:
    """The server must still answer, and every honest table must verify."""
    client = await RpcClient.connect(server.port, local_addr=(HONEST[0], 0))
    await client.call("ping")
    await client.close()
    for table in tables:
        figures.faults.extend(await table.audit(await server.bundle(table.id)))
        figures.faults.extend(await resumed_from_the_start(server.port, table))
        await table.leave()
    figures.memory_after = process.rss(server.pid)
    for name, tally in figures.attacks.items():
        figures.refused.update(tally["refused"])
        if not tally["visits"]:
            figures.faults.append(f"the attack {name} was never carried out")


def _compare_with_goals(figures: Figures) -> None:
    """Compare the figures with the goals."""
    if figures.memory_at_most >= MEMORY_MIB:
        figures.missed.append(f"memory {figures.memory_at_most:.0f} MiB, under {MEMORY_MIB:.0f}")
    allowed = WRITTEN_MB * max(1.0, figures.seconds / GOAL_SECONDS)
    for kind in ("written", "grown"):
        if figures.of_attack(kind) >= allowed:
            figures.missed.append(f"{figures.of_attack(kind):.0f} MB {kind}, under {allowed:.0f}")
    if figures.seconds >= MEASURABLE and figures.slower > SLOWER:
        figures.missed.append(f"p99 {figures.slower} times as long, at most {SLOWER}")
    if figures.stopped_after:
        figures.missed.append(f"the attack was stopped after {figures.stopped_after} s")


def table_of(figures: Figures) -> list[str]:
    """The figures as lines of text."""
    names = [name for name in figures.phases if name != "warming up"]
    rows = [("", *names)]
    for label, value in (
        ("seconds", lambda name: figures.phases[name].seconds),
        ("draws", figures.draws),
        ("p50 ms", lambda name: figures.measured.percentile(name, 0.5)),
        ("p99 ms", lambda name: figures.measured.percentile(name, 0.99)),
        ("slowest ms", lambda name: figures.measured.percentile(name, 1 - 1e-9)),
        ("server, processors", lambda name: _share(figures, name, "server")),
        ("load, processors", lambda name: _share(figures, name, "attackers")),
        ("players, processors", lambda name: _share(figures, name, "players")),
        ("everything else, processors", lambda name: _share(figures, name, "others")),
        ("write_bytes MB", lambda name: round(figures.phases[name].written, 1)),
        ("files grown MB", lambda name: round(figures.phases[name].grown, 1)),
    ):
        rows.append((label, *(str(value(name)) for name in names)))
    lines = [f"{row[0]:28}" + "".join(f"{cell:>12}" for cell in row[1:]) for row in rows]
    lines += [
        "",
        f"memory MiB: {figures.memory_before:.0f} before, {figures.memory_at_most:.0f} at most,"
        f" {figures.memory_after:.0f} after (goal: under {MEMORY_MIB:.0f})",
        f"written for the attack: {figures.of_attack('written'):.0f} MB by write_bytes,"
        f" {figures.of_attack('grown'):.0f} MB by the files' size (goal: under"
        f" {WRITTEN_MB:.0f} in ten minutes)",
        f"p99 under attack: {figures.slower} times that next to an equal load"
        f" (goal: at most {SLOWER})",
        f"honest players: {sum(map(len, figures.measured.latencies.values()))} draws,"
        f" {figures.measured.resumes} resumes, faults {len(figures.faults)}",
        "",
        f"{'attack':24}{'visits':>8}{'tcp':>8}{'ws':>8}{'requests':>10}{'granted':>10}  ended",
    ]
    for name, tally in figures.attacks.items():
        ended = ", ".join(f"{why} {n}" for why, n in sorted(tally["ended"].items()))
        lines.append(
            f"{name:24}{tally['visits']:8}{tally['connections']:8}{tally['admitted']:8}"
            f"{tally['requests']:10}{tally['granted']:10}  {ended}"
        )
    refused = ", ".join(f"{why} {n}" for why, n in figures.refused.most_common())
    return [*lines, "", f"refused: {refused or 'nothing'}"]


def _share(figures: Figures, phase: str, of: str) -> float:
    found = figures.phases[phase]
    return round(getattr(found, of) / max(found.seconds, 0.1), 2)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("seconds", type=float, nargs="?", default=GOAL_SECONDS)
    parser.add_argument("seed", type=int, nargs="?", default=None, help="of the random choices")
    parser.add_argument("--only", nargs="*", default=[], help="names of attacks; all, if not given")
    options = parser.parse_args()
    seed = secrets.randbelow(2**32) if options.seed is None else options.seed
    with tempfile.TemporaryDirectory(prefix="dealer-trial-") as folder:
        figures = asyncio.run(
            attack(Path(folder), seconds=options.seconds, seed=seed, only=options.only)
        )
    print("\n".join(table_of(figures)))
    for sentence in figures.missed:
        print(f"MISSED: {sentence}")
    for sentence in figures.faults[:20]:
        print(f"FAULT: {sentence}")
    print(f"hostile: {len(figures.missed)} goals missed, faults {len(figures.faults)}, seed {seed}")
    return 1 if figures.missed or figures.faults else 0


if __name__ == "__main__":
    sys.exit(main())
