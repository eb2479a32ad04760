"""Clients disconnect and reconnect while events flow; each receives every version once, in order.

    python tests/chaos/reconnects.py 1000 [--nodes 2]

Two players play as long as one of the others waits for events. Eight others, some with a seat and
some without, break their connection repeatedly: in the middle of an answer, of a list of events, or
immediately. They resume after the last version that they received, after one that does not exist,
or after so many missed events that they get a snapshot.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from dealer.proof import canonical
from dealer.proof.bundle import read
from tests.gateway.rpc_client import RpcClient
from tests.harness.card_truth import leaves
from tests.harness.limits import NO_RATES_OPTIONS
from tests.harness.nodes import Nodes, open_server
from tests.harness.script import run
from tests.harness.server_process import PATIENT, ServerProcess

RESUME = 120
"""Missed events above which a resume is answered with a snapshot."""

VIEWERS = 8


@dataclass
class Figures:
    """`cut_short` are the reconnects that were broken off before they were answered."""

    reconnects: int = 0
    cut_short: int = 0
    resets: int = 0
    snapshots: int = 0
    events: int = 0
    received: int = 0
    most_at_once: int = 0
    faults: list[str] = field(default_factory=list)


class Table:
    """One table at which events flow, and its server."""

    def __init__(self, server: ServerProcess | Nodes, figures: Figures) -> None:
        self.server = server
        self.figures = figures
        self.id = ""
        self.version = 0
        self.over = False
        self.waiting = 0
        self._moved = asyncio.Event()
        self._awaited = asyncio.Event()
        self._players: list[RpcClient] = []

    async def open(self) -> list[str | None]:
        """The tokens of the viewers; None for those without a seat."""
        host = await RpcClient.connect(self.server.port)
        self.id = (await host.call("table.open", seats=VIEWERS))["table"]
        self._players = [host]
        tokens: list[str | None] = []
        for number in range(2 + VIEWERS // 2):
            client = await RpcClient.connect(self.server.port)
            joined = await client.call("table.join", table=self.id, name=f"client {number}")
            if number < 2:
                self._players.append(client)
            else:
                tokens += [joined["token"], None]
                await client.close()
        await host.call("round.open", entropy="house")
        return tokens

    async def flow(self) -> None:
        """Draw, return and shuffle cards until `over`, as long as viewers wait for events.

        A reset takes time that grows with the table, and a table that grows meanwhile has no end.
        """
        host, *players = self._players
        while not self.over:
            while not (self.waiting or self.over):
                self._awaited.clear()
                await self._awaited.wait()
            self._advance(await host.call("deck.shuffle"))
            # Another node reads it with a delay.
            await asyncio.gather(*(player.until_version(self.version) for player in players))
            for _ in range(8):
                drawn = await asyncio.gather(*(player.call("deck.draw") for player in players))
                moved = await asyncio.gather(
                    *(
                        player.call("hand.return", cards=answer["slots"])
                        for player, answer in zip(players, drawn, strict=True)
                    )
                )
                self._advance(moved[-1])
            for player in self._players:
                player.notifications.clear()
                player.frames.clear()
        for player in self._players:
            await player.close()

    def _advance(self, answer: dict[str, Any]) -> None:
        self.version = max(self.version, answer["version"])
        self._moved.set()

    def end(self) -> None:
        """End the flow."""
        self.over = True
        self._awaited.set()

    @asynccontextmanager
    async def flowing(self) -> AsyncIterator[None]:
        """Let events flow."""
        self.waiting += 1
        self._awaited.set()
        try:
            yield
        finally:
            self.waiting -= 1

    async def past(self, version: int) -> None:
        async with self.flowing():
            while self.version <= version and not self.over:
                self._moved.clear()
                await self._moved.wait()


class Viewer:
    """Reconnects at one table; `last` is the newest version received, `received` has the leaves."""

    def __init__(self, table: Table, token: str | None, chance: random.Random) -> None:
        self.last = 0
        self.received: dict[int, bytes] = {}
        self._table = table
        self._token = token
        self._chance = chance

    async def reconnect(self, left: list[int]) -> None:
        figures = self._table.figures
        while left:
            left.pop()
            figures.reconnects += 1
            if self._chance.random() < 0.05:
                await self._table.past(self.last + RESUME)
            client = await RpcClient.connect(self._table.server.port)
            begun = self._begin(client)
            if self._chance.random() < 0.2:
                figures.cut_short += 1
                await asyncio.sleep(self._chance.choice((0, 0.002)))
            else:
                async with asyncio.timeout(PATIENT):
                    await begun[1]
                    wanted = self._chance.choice((0, 1, 5, 60, 200))
                    async with self._table.flowing():
                        await client.until(lambda g=client, w=wanted: len(g.versions) >= w)
            client.socket.transport.abort()
            await client.wait_closed()
            self._take(client, *begun)

    def _begin(self, client: RpcClient) -> tuple[int | None, asyncio.Future[Any]]:
        """The version after which events are expected if the answer does not name one."""
        after: int | None = self.last
        chance = self._chance.random()
        if chance < 0.05:
            after = self._table.version + 10**6
        elif chance < 0.1 and self._token is None:
            after = None
        elif chance < 0.15 and self.received:
            after = self._chance.choice(list(self.received))
        params: dict[str, Any] = {"table": self._table.id}
        if after is not None:
            params["after"] = after
        if self._token is None:
            return after, client.send("table.watch", **params)
        return after, client.send("table.resume", token=self._token, **params)

    def _take(self, client: RpcClient, after: int | None, answer: asyncio.Future[Any]) -> None:
        """Check everything that came on one connection."""
        figures, faults = self._table.figures, self._table.figures.faults
        if not answer.done() or answer.cancelled():
            if client.notifications:
                faults.append(f"received {client.notifications[0]} before the answer")
            return
        result = answer.result()
        if result.get("reset") or after is None:
            figures.resets += bool(result.get("reset"))
            if after is not None and abs(result["version"] - after) <= RESUME:
                faults.append(f"after {after} came a snapshot of {result['version']}")
            figures.snapshots += after is None
            after = result["version"]
            first = client.notifications[: len(client.notices("snapshot"))]
            if any(
                one["method"] != "snapshot" or one["params"]["version"] != after for one in first
            ):
                faults.append(f"a snapshot did not come first, or is not of {after}")
        versions = client.versions
        if versions != list(range(after + 1, after + 1 + len(versions))):
            faults.append(f"after {after} came {versions[:5]} … {versions[-5:]}")
        for event in client.events:
            leaf = canonical.encode(
                {name: event[name] for name in event if name not in ("private", "opened")}
            )
            if self.received.setdefault(event["version"], leaf) != leaf:
                faults.append(f"version {event['version']} was received in two forms")
        figures.received += len(versions)
        figures.most_at_once = max(figures.most_at_once, len(versions))
        self.last = after + len(versions)


async def reconnect(folder: Path, *, reconnects: int, seed: int, nodes: int = 1) -> Figures:
    """Let the viewers reconnect this often, concurrently."""
    figures, chance = Figures(), random.Random(seed)
    limits = (*NO_RATES_OPTIONS, "closing=0.5", f"resume={RESUME}")
    async with open_server(folder, nodes=nodes, seed=seed, limit=limits) as server:
        table = Table(server, figures)
        tokens = await table.open()
        viewers = [Viewer(table, token, chance) for token in tokens]
        flowing = asyncio.create_task(table.flow())
        left = list(range(reconnects))
        coming = asyncio.gather(*(viewer.reconnect(left) for viewer in viewers))
        await asyncio.wait((flowing, coming), return_when=asyncio.FIRST_COMPLETED)
        table.end()
        await flowing
        await coming
        lines = read(await server.bundle(table.id))
    log = leaves(lines)
    figures.events = len(log)
    for viewer in viewers:
        if any(lines[version] != leaf for version, leaf in viewer.received.items()):
            figures.faults.append("a received event differs from the log")
    return figures


if __name__ == "__main__":
    sys.exit(run(__doc__, reconnect, count="reconnects", default=1000, several=True))
