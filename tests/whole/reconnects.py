"""Guests come and go while events flow; each is told every version once, in order.

    python tests/whole/reconnects.py 1000 [--nodes 2]

Two play without a pause. Eight others, some with a seat and some without, break their line again
and again: in the middle of an answer, of a list of events, or right away. They come back after the
last version that they saw, after one that never was, after so long that there is only a snapshot.
"""

from __future__ import annotations

import asyncio
import random
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from dealer.proof import canonical
from dealer.proof.bundle import read
from tests.gateway.guest import Guest
from tests.limits import NO_RATES_OPTIONS
from tests.whole.house import PATIENT, HouseProcess
from tests.whole.nodes import Nodes, house_of
from tests.whole.script import run
from tests.whole.truth import leaves

RESUME = 120
"""How far a resume may be behind before there is a snapshot in place of events."""

VIEWERS = 8


@dataclass
class Figures:
    """`cut_short` are the reconnects that were broken off before they were answered."""

    reconnects: int = 0
    cut_short: int = 0
    resets: int = 0
    snapshots: int = 0
    events: int = 0
    told: int = 0
    most_at_once: int = 0
    faults: list[str] = field(default_factory=list)


class Table:
    """One table that events flow at, and the house that it stands in."""

    def __init__(self, house: HouseProcess | Nodes, figures: Figures) -> None:
        self.house = house
        self.figures = figures
        self.id = ""
        self.version = 0
        self.over = False
        self._moved = asyncio.Event()
        self._players: list[Guest] = []

    async def open(self) -> list[str | None]:
        """The tokens of the viewers; None for those without a seat."""
        host = await Guest.arrive(self.house.port)
        self.id = (await host.ask("table.open", seats=VIEWERS))["table"]
        self._players = [host]
        tokens: list[str | None] = []
        for number in range(2 + VIEWERS // 2):
            guest = await Guest.arrive(self.house.port)
            joined = await guest.ask("table.join", table=self.id, name=f"guest {number}")
            if number < 2:
                self._players.append(guest)
            else:
                tokens += [joined["token"], None]
                await guest.leave()
        await host.ask("round.open", entropy="house")
        return tokens

    async def flow(self) -> None:
        """Cards come and go, and are shuffled; the version moves on until it is over."""
        host, *players = self._players
        while not self.over:
            self._tell(await host.ask("deck.shuffle"))
            # Another node learns of it a moment later.
            await asyncio.gather(*(player.seen(self.version) for player in players))
            for _ in range(8):
                drawn = await asyncio.gather(*(player.ask("deck.draw") for player in players))
                moved = await asyncio.gather(
                    *(
                        player.ask("hand.return", cards=answer["slots"])
                        for player, answer in zip(players, drawn, strict=True)
                    )
                )
                self._tell(moved[-1])
            for player in self._players:
                player.told.clear()
                player.frames.clear()
        for player in self._players:
            await player.leave()

    def _tell(self, answer: dict[str, Any]) -> None:
        self.version = max(self.version, answer["version"])
        self._moved.set()

    async def past(self, version: int) -> None:
        while self.version <= version and not self.over:
            self._moved.clear()
            await self._moved.wait()


class Viewer:
    """Comes and goes at one table; `last` is the version it has seen, `told` every event's leaf."""

    def __init__(self, table: Table, token: str | None, chance: random.Random) -> None:
        self.last = 0
        self.told: dict[int, bytes] = {}
        self._table = table
        self._token = token
        self._chance = chance

    async def come_and_go(self, left: list[int]) -> None:
        figures = self._table.figures
        while left:
            left.pop()
            figures.reconnects += 1
            if self._chance.random() < 0.05:
                await self._table.past(self.last + RESUME)
            guest = await Guest.arrive(self._table.house.port)
            begun = self._begin(guest)
            if self._chance.random() < 0.2:
                figures.cut_short += 1
                await asyncio.sleep(self._chance.choice((0, 0.002)))
            else:
                async with asyncio.timeout(PATIENT):
                    await begun[1]
                    wanted = self._chance.choice((0, 1, 5, 60, 200))
                    await guest.until(lambda g=guest, w=wanted: len(g.versions) >= w)
            guest.socket.transport.abort()
            await guest.gone()
            self._take(guest, *begun)

    def _begin(self, guest: Guest) -> tuple[int | None, asyncio.Future[Any]]:
        """Where events should begin to be told after, if the answer does not say."""
        after: int | None = self.last
        chance = self._chance.random()
        if chance < 0.05:
            after = self._table.version + 10**6
        elif chance < 0.1 and self._token is None:
            after = None
        elif chance < 0.15 and self.told:
            after = self._chance.choice(list(self.told))
        params: dict[str, Any] = {"table": self._table.id}
        if after is not None:
            params["after"] = after
        if self._token is None:
            return after, guest.send("table.watch", **params)
        return after, guest.send("table.resume", token=self._token, **params)

    def _take(self, guest: Guest, after: int | None, answer: asyncio.Future[Any]) -> None:
        """Look at all that came on one connection."""
        figures, faults = self._table.figures, self._table.figures.faults
        if not answer.done() or answer.cancelled():
            if guest.told:
                faults.append(f"told {guest.told[0]} before the answer")
            return
        result = answer.result()
        if result.get("reset") or after is None:
            figures.resets += bool(result.get("reset"))
            if after is not None and abs(result["version"] - after) <= RESUME:
                faults.append(f"after {after} came a snapshot of {result['version']}")
            figures.snapshots += after is None
            after = result["version"]
            news = guest.told[: len(guest.notices("snapshot"))]
            if any(
                one["method"] != "snapshot" or one["params"]["version"] != after for one in news
            ):
                faults.append(f"a snapshot did not come first, or is not of {after}")
        versions = guest.versions
        if versions != list(range(after + 1, after + 1 + len(versions))):
            faults.append(f"after {after} came {versions[:5]} … {versions[-5:]}")
        for event in guest.events:
            leaf = canonical.encode({name: event[name] for name in event if name != "private"})
            if self.told.setdefault(event["version"], leaf) != leaf:
                faults.append(f"version {event['version']} was told in two ways")
        figures.told += len(versions)
        figures.most_at_once = max(figures.most_at_once, len(versions))
        self.last = after + len(versions)


async def come_and_go(folder: Path, *, reconnects: int, seed: int, nodes: int = 1) -> Figures:
    """Let the viewers come so often, all together."""
    figures, chance = Figures(), random.Random(seed)
    limits = (*NO_RATES_OPTIONS, "closing=0.5", f"resume={RESUME}")
    async with house_of(folder, nodes=nodes, seed=seed, limit=limits) as house:
        table = Table(house, figures)
        tokens = await table.open()
        viewers = [Viewer(table, token, chance) for token in tokens]
        flowing = asyncio.create_task(table.flow())
        left = list(range(reconnects))
        coming = asyncio.gather(*(viewer.come_and_go(left) for viewer in viewers))
        await asyncio.wait((flowing, coming), return_when=asyncio.FIRST_COMPLETED)
        table.over = True
        await flowing
        await coming
        lines = read(await house.bundle(table.id))
    log = leaves(lines)
    figures.events = len(log)
    for viewer in viewers:
        if any(lines[version] != leaf for version, leaf in viewer.told.items()):
            figures.faults.append("an event was told that the log has otherwise")
    return figures


if __name__ == "__main__":
    sys.exit(run(__doc__, come_and_go, count="reconnects", default=1000, several=True))
