"""Power cuts under a server's database; nothing that was acknowledged is lost.

    python tests/chaos/powercut.py 200

A server plays with real clients while `powercut.c` traces the writes and syncs of its files. Each
client notes the length of the trace at each event and answer. Then the disk is rebuilt as a cut at
some moment leaves it, and a server opens it. A second server, with synchronous=NORMAL, shows that
the check would detect losses.
"""

from __future__ import annotations

import asyncio
import json
import random
import subprocess
import sys
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from dealer.proof import canonical
from tests.chaos.game_under_faults import play
from tests.harness.database_check import check_files
from tests.harness.disk_trace import Disk, steps
from tests.harness.script import run
from tests.harness.server_process import ServerProcess
from tests.harness.table_of_clients import Clients, RecordedClient, connect_clients

SOURCE = Path(__file__).with_name("powercut.c")
EVENTS = 25
"""Events played for each cut, up to `MOST`."""

FEWEST, MOST = 400, 3000


@dataclass
class Figures:
    """`lost` and `halves` count the cuts that removed an acknowledged append, or half of one.

    `lost_with_normal` counts what the same cuts lost of a server that does not sync its commits.
    """

    cuts: int = 0
    events: int = 0
    syncs: int = 0
    loose_writes: int = 0
    cuts_after_first_answer: int = 0
    unacknowledged_events: int = 0
    lost: int = 0
    halves: int = 0
    cuts_with_normal: int = 0
    lost_with_normal: int = 0
    faults: list[str] = field(default_factory=list)


@dataclass
class Received:
    """What the clients of one table received: the length of the trace, and the version."""

    table: str = ""
    lengths: list[int] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    leaves: dict[int, bytes] = field(default_factory=dict)
    ends: set[int] = field(default_factory=set)
    notes: list[tuple[int, str]] = field(default_factory=list)

    def upto(self, length: int) -> int:
        """The newest version that a client had received when the trace had this length."""
        place = bisect_right(self.lengths, length)
        return self.versions[place - 1] if place else 0

    def record_received(self, length: int, frame: dict[str, Any]) -> None:
        method, params = frame.get("method"), frame.get("params", {})
        if method in ("event", "events"):
            received = params["list"] if method == "events" else [params]
            for event in received:
                bare = {name: event[name] for name in event if name not in ("private", "opened")}
                self.leaves[event["version"]] = canonical.encode(bare)
            self._reach(length, received[-1]["version"])
        elif method == "checkpoint":
            self.notes.append((length, params["note"]))
        elif method is None and "version" in frame.get("result", {}):
            self._reach(length, frame["result"]["version"])

    def _reach(self, length: int, version: int) -> None:
        self.ends.add(version)
        if not self.versions or version > self.versions[-1]:
            self.lengths.append(length)
            self.versions.append(version)


def library(folder: Path) -> Path:
    """The tracer, compiled."""
    made = folder / "powercut.so"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-O1", "-o", made, SOURCE, "-ldl", "-lpthread"], check=True
    )
    return made


async def cut_power(folder: Path, *, cuts: int, seed: int) -> Figures:
    """Cut the power this often, and a quarter as often with synchronous=NORMAL."""
    figures, chance = Figures(cuts=cuts, cuts_with_normal=max(12, cuts // 4)), random.Random(seed)
    preload = library(folder)
    events = min(MOST, max(FEWEST, cuts * EVENTS))
    trace, received = await traced(folder / "full", preload, events=events, synchronous="FULL")
    figures.events = len(received.leaves)
    await check_cuts(trace, received, figures.cuts, chance, figures, folder / "cut")
    loose = Figures()
    trace, received = await traced(folder / "normal", preload, events=FEWEST, synchronous="NORMAL")
    many = figures.cuts_with_normal
    await check_cuts(trace, received, many, chance, loose, folder / "loose", half=many)
    figures.lost_with_normal = loose.lost
    return figures


async def traced(
    folder: Path, preload: Path, *, events: int, synchronous: str
) -> tuple[tuple[bytes, int], Received]:
    """Play this many events; the trace with the folder's inode, and what the clients received."""
    place, file, received = folder / "disk", folder / "trace", Received()
    place.mkdir(parents=True)
    server = ServerProcess(place, synchronous=synchronous)
    server.output = folder / "server.log"
    server.environment = {
        "LD_PRELOAD": str(preload),
        "POWERCUT_FOLDER": str(place),
        "POWERCUT_TRACE": str(file),
    }
    async with server, connect_clients(server.url) as clients:
        for client in clients.clients:
            record_frames(client, file, received)
        await clients.sit_down(seats=len(clients.players))
        received.table = clients.id
        await play_events(clients, events)
    return (file.read_bytes(), place.stat().st_ino), received


def record_frames(client: RecordedClient, trace: Path, received: Received) -> None:
    """Note the length of the trace before the client handles the frame."""
    record = client.record
    inner = record._receive

    def receive(text: str | bytes) -> None:
        received.record_received(trace.stat().st_size, json.loads(text))
        inner(text)

    record._receive = receive


async def play_events(clients: Clients, events: int) -> None:
    enough = asyncio.Event()
    playing = asyncio.create_task(play(clients, enough))
    await clients.spectator.table.until(lambda table: table.version >= events)
    enough.set()
    await playing
    await clients.all_see(lambda table: table.closed)


async def check_cuts(
    trace: tuple[bytes, int],
    received: Received,
    cuts: int,
    chance: random.Random,
    figures: Figures,
    folder: Path,
    *,
    half: int | None = None,
) -> None:
    """Rebuild the disk as each of the cuts leaves it, and check it.

    A share of the cuts, by default half, come right after a client received something.
    """
    whole, inode = trace
    half = cuts // 2 if half is None else half
    at = sorted(
        [chance.randrange(len(whole)) for _ in range(cuts - half)]
        + [chance.choice(received.lengths) for _ in range(half)]
    )
    disk = Disk(inode)
    for step in steps(whole):
        while at and at[0] < step.end:
            await check_cut(disk, at.pop(0), received, chance, figures, folder)
        disk.take(step)
        figures.syncs += step.kind == 3
        figures.loose_writes += step.kind == 1
    for moment in at:
        await check_cut(disk, moment, received, chance, figures, folder)


async def check_cut(
    disk: Disk,
    moment: int,
    received: Received,
    chance: random.Random,
    figures: Figures,
    folder: Path,
) -> None:
    disk.cut(folder, chance)
    saved = [note for length, note in received.notes if length <= moment]
    found = await check_files(folder / "dealer.db", saved={received.table: saved})
    figures.faults += [f"cut at {moment}: {fault}" for fault in found.faults]
    leaves = found.tables.get(received.table, [])
    known = received.upto(moment)
    figures.cuts_after_first_answer += bool(known)
    figures.unacknowledged_events += max(0, len(leaves) - known)
    if len(leaves) < known:
        figures.lost += 1
        figures.faults.append(f"cut at {moment}: {known} events acknowledged, {len(leaves)} found")
    if len(leaves) not in received.ends | {0}:
        figures.halves += 1
        figures.faults.append(f"cut at {moment}: an append ends half-way, at {len(leaves)}")
    if any(received.leaves.get(version, leaf) != leaf for version, leaf in enumerate(leaves, 1)):
        figures.faults.append(f"cut at {moment}: an event differs from the one received")


if __name__ == "__main__":
    sys.exit(run(__doc__, cut_power, count="cuts", default=200))
