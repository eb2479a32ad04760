"""The power is cut under a house's database again and again; nothing that was told is lost.

    python tests/whole/powercut.py 200

A house plays with real clients while `powercut.c` writes down what reaches its files and what is
synced. Each client notes how long that trace is when it is told or answered something. Then the
disk is made as a cut at some moment leaves it, and a house is opened on it. A second house that
runs with synchronous=NORMAL shows that losses would be seen.
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
from tests.whole.disk import Disk, steps
from tests.whole.found import look_into
from tests.whole.house import HouseProcess
from tests.whole.ordeal import play
from tests.whole.party import Guest, Party, party
from tests.whole.script import run

SOURCE = Path(__file__).with_name("powercut.c")
EVENTS = 25
"""How many events are played for each cut, up to `MOST`."""

FEWEST, MOST = 400, 3000


@dataclass
class Figures:
    """`lost` and `halves` count the cuts after which something told, or half of it, was missing.

    `lost_with_normal` is what the same cuts cost a house that does not sync its commits.
    """

    cuts: int = 0
    events: int = 0
    syncs: int = 0
    loose_writes: int = 0
    cuts_after_first_word: int = 0
    events_not_told_found: int = 0
    lost: int = 0
    halves: int = 0
    cuts_with_normal: int = 0
    lost_with_normal: int = 0
    faults: list[str] = field(default_factory=list)


@dataclass
class Told:
    """What everybody was told of one table: at which length of the trace, up to which version."""

    table: str = ""
    lengths: list[int] = field(default_factory=list)
    versions: list[int] = field(default_factory=list)
    leaves: dict[int, bytes] = field(default_factory=dict)
    ends: set[int] = field(default_factory=set)
    notes: list[tuple[int, str]] = field(default_factory=list)

    def upto(self, length: int) -> int:
        """The version that somebody had been told of when the trace was so long."""
        place = bisect_right(self.lengths, length)
        return self.versions[place - 1] if place else 0

    def hear(self, length: int, frame: dict[str, Any]) -> None:
        method, params = frame.get("method"), frame.get("params", {})
        if method in ("event", "events"):
            told = params["list"] if method == "events" else [params]
            for event in told:
                bare = {name: event[name] for name in event if name != "private"}
                self.leaves[event["version"]] = canonical.encode(bare)
            self._reach(length, told[-1]["version"])
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
    """Cut the power that often, and a quarter as often under a house with synchronous=NORMAL."""
    figures, chance = Figures(cuts=cuts, cuts_with_normal=max(12, cuts // 4)), random.Random(seed)
    preload = library(folder)
    events = min(MOST, max(FEWEST, cuts * EVENTS))
    trace, told = await traced(folder / "full", preload, events=events, synchronous="FULL")
    figures.events = len(told.leaves)
    await judge(trace, told, figures.cuts, chance, figures, folder / "cut")
    loose = Figures()
    trace, told = await traced(folder / "normal", preload, events=FEWEST, synchronous="NORMAL")
    many = figures.cuts_with_normal
    await judge(trace, told, many, chance, loose, folder / "loose", half=many)
    figures.lost_with_normal = loose.lost
    return figures


async def traced(
    folder: Path, preload: Path, *, events: int, synchronous: str
) -> tuple[tuple[bytes, int], Told]:
    """Play so many events; the trace with the folder's inode, and what everybody was told."""
    place, file, told = folder / "disk", folder / "trace", Told()
    place.mkdir(parents=True)
    house = HouseProcess(place, synchronous=synchronous)
    house.output = folder / "house.log"
    house.environment = {
        "LD_PRELOAD": str(preload),
        "POWERCUT_FOLDER": str(place),
        "POWERCUT_TRACE": str(file),
    }
    async with house, party(house.url) as guests:
        for guest in guests.guests:
            listen(guest, file, told)
        await guests.sit_down(seats=len(guests.players))
        told.table = guests.id
        await play_events(guests, events)
    return (file.read_bytes(), place.stat().st_ino), told


def listen(guest: Guest, trace: Path, told: Told) -> None:
    """Note the length of the trace before the client hears what came."""
    record = guest.record
    inner = record._receive

    def receive(text: str | bytes) -> None:
        told.hear(trace.stat().st_size, json.loads(text))
        inner(text)

    record._receive = receive


async def play_events(guests: Party, events: int) -> None:
    enough = asyncio.Event()
    playing = asyncio.create_task(play(guests, enough))
    await guests.onlooker.table.until(lambda table: table.version >= events)
    enough.set()
    await playing
    await guests.all_see(lambda table: table.closed)


async def judge(
    trace: tuple[bytes, int],
    told: Told,
    cuts: int,
    chance: random.Random,
    figures: Figures,
    folder: Path,
    *,
    half: int | None = None,
) -> None:
    """Make the disk as each of the cuts leaves it, and look at what a house finds there.

    So many of them, by default half, come right after somebody was told something.
    """
    whole, inode = trace
    half = cuts // 2 if half is None else half
    at = sorted(
        [chance.randrange(len(whole)) for _ in range(cuts - half)]
        + [chance.choice(told.lengths) for _ in range(half)]
    )
    disk = Disk(inode)
    for step in steps(whole):
        while at and at[0] < step.end:
            await look(disk, at.pop(0), told, chance, figures, folder)
        disk.take(step)
        figures.syncs += step.kind == 3
        figures.loose_writes += step.kind == 1
    for moment in at:
        await look(disk, moment, told, chance, figures, folder)


async def look(
    disk: Disk,
    moment: int,
    told: Told,
    chance: random.Random,
    figures: Figures,
    folder: Path,
) -> None:
    disk.cut(folder, chance)
    saved = [note for length, note in told.notes if length <= moment]
    found = await look_into(folder / "dealer.db", saved={told.table: saved})
    figures.faults += [f"cut at {moment}: {fault}" for fault in found.faults]
    leaves = found.tables.get(told.table, [])
    known = told.upto(moment)
    figures.cuts_after_first_word += bool(known)
    figures.events_not_told_found += max(0, len(leaves) - known)
    if len(leaves) < known:
        figures.lost += 1
        figures.faults.append(f"cut at {moment}: {known} events told, {len(leaves)} there")
    if len(leaves) not in told.ends | {0}:
        figures.halves += 1
        figures.faults.append(f"cut at {moment}: an append ends half-way, at {len(leaves)}")
    if any(told.leaves.get(version, leaf) != leaf for version, leaf in enumerate(leaves, 1)):
        figures.faults.append(f"cut at {moment}: an event is not what was told")


if __name__ == "__main__":
    sys.exit(run(__doc__, cut_power, count="cuts", default=200))
