"""The server is killed while its players come back at once; no event is lost, no player left out.

    python tests/chaos/storms.py 1000 [--nodes 2]

So many players, four at a table, lose their connections and resume at the same time. When some of
them have been answered the server process gets SIGKILL, and is started again, so that all resume
again. Each player who is back draws a card: with the same command id as before if that draw was
not answered. After the last start everybody must be answered, have every event of the table in
order, and find each acknowledged draw in the log, once.
"""

from __future__ import annotations

import asyncio
import random
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from websockets.exceptions import ConnectionClosed, InvalidHandshake

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from dealer.proof.bundle import read
from dealer.proof.verify import verify
from tests.gateway.rpc_client import RpcClient
from tests.harness.card_truth import leaves
from tests.harness.limits import NO_RATES_OPTIONS
from tests.harness.nodes import Nodes, open_server
from tests.harness.script import run
from tests.harness.server_process import PATIENT, ServerProcess

SEATS = 4

KILLS = 8
"""Fewer than the draws of a seat for which a deck has cards."""

OPENING = 50
"""Tables that are opened at the same time."""

LIMITS = (*NO_RATES_OPTIONS, "closing=0.5", "connections-per-address=20000", "opening=60")


@dataclass
class Figures:
    """`cut_short` are the resumes that a kill came before, or before the answer of the draw."""

    players: int = 0
    kills: int = 0
    resumes: int = 0
    cut_short: int = 0
    acknowledged: int = 0
    lost: int = 0
    doubled: int = 0
    left_out: int = 0
    faults: list[str] = field(default_factory=list)


class Storm:
    """How many have come back since the last start; `reached` waits for a number of them."""

    def __init__(self, figures: Figures) -> None:
        self.figures = figures
        self.back = 0
        self._moved = asyncio.Event()

    def count(self) -> None:
        self.back += 1
        self.figures.resumes += 1
        self._moved.set()

    async def reached(self, number: int) -> None:
        async with asyncio.timeout(PATIENT):
            while self.back < number:
                self._moved.clear()
                await self._moved.wait()


class Player:
    """A seat at a table; `last` is the newest version received, `drawn` has acknowledged draws."""

    def __init__(self, client: RpcClient, *, table: str, seat: int, token: str, last: int) -> None:
        self.client = client
        self.table, self.seat, self.last = table, seat, last
        self.drawn: dict[int, list[int]] = {}
        self.host = ""  # the host's token, if this player is the host
        self._token = token
        self._command = 0

    async def come_back(self, port: int, storm: Storm) -> bool:
        """Drop the connection, resume and draw; False if the connection was lost meanwhile."""
        self.client.socket.transport.abort()
        await self.client.wait_closed()
        self._take(storm.figures)
        try:
            self.client = await RpcClient.connect(port)
        except (OSError, ConnectionClosed, InvalidHandshake):
            return False
        resume = {"table": self.table, "token": self._token, "after": self.last}
        answer = self.client.send("table.resume", **resume)
        await asyncio.wait((answer,))
        if answer.cancelled():
            return False
        if answer.result()["version"] < self.last or answer.result().get("reset"):
            storm.figures.faults.append(f"after {self.last} came {answer.result()['version']}")
        storm.count()
        answer = self.client.send("deck.draw", table=self.table, cmd=str(self._command))
        await asyncio.wait((answer,))
        if answer.cancelled():
            return False
        self.drawn[answer.result()["version"]] = answer.result()["slots"]
        self._command += 1
        return True

    async def until(self, version: int, figures: Figures) -> None:
        """Wait for every event up to this version."""
        if self.last < version:
            await self.client.until_version(version)
        self._take(figures)

    def _take(self, figures: Figures) -> None:
        """Check what came on the connection: each event, once, after those that it had."""
        versions = self.client.versions
        if versions != list(range(self.last + 1, self.last + 1 + len(versions))):
            figures.faults.append(f"after {self.last} came {versions[:5]} … {versions[-5:]}")
        self.last += len(versions)
        self.client.notifications.clear()


async def open_table(port: int, gate: asyncio.Semaphore) -> list[Player]:
    """Four players at a table whose cards are shuffled."""
    async with gate:
        clients = [await RpcClient.connect(port) for _ in range(SEATS)]
        opened = await clients[0].call("table.open", seats=SEATS)
        table = opened["table"]
        players = []
        for number, client in enumerate(clients):
            joined = await client.call("table.join", table=table, name=f"player {number}")
            seat, token = joined["seat"], joined["token"]
            last = joined["version"]
            players.append(Player(client, table=table, seat=seat, token=token, last=last))
        players[0].host = opened["host_token"]
        await clients[0].call("round.open", table=table, entropy="house")
        await clients[0].call("deck.shuffle", table=table)
        return players


async def kill_in_storms(folder: Path, *, players: int, seed: int, nodes: int = 1) -> Figures:
    """Kill the server `KILLS` times while so many players come back; `seed` says when."""
    figures, chance = Figures(players=players), random.Random(seed)
    async with open_server(folder, nodes=nodes, seed=seed, limit=LIMITS) as server:
        gate = asyncio.Semaphore(OPENING)
        opening = (open_table(server.port, gate) for _ in range(players // SEATS))
        tables = await asyncio.gather(*opening)
        everybody = [player for table in tables for player in table]
        for _ in range(KILLS):
            await _storm(server, everybody, figures, kill_after=chance.randrange(players))
        await _storm(server, everybody, figures, kill_after=None)
        for table in tables:
            await _compare(server, table, figures)
    return figures


async def _storm(
    server: ServerProcess | Nodes,
    everybody: list[Player],
    figures: Figures,
    *,
    kill_after: int | None,
) -> None:
    """All come back; when `kill_after` of them have, the server is killed and started again."""
    storm = Storm(figures)
    async with asyncio.timeout(PATIENT * 2):
        coming = asyncio.gather(*(player.come_back(server.port, storm) for player in everybody))
        if kill_after is not None:
            await storm.reached(kill_after)
            await server.kill()
            figures.kills += 1
        back = await coming
        if kill_after is not None:
            await server.open()
            figures.cut_short += back.count(False)
        else:
            figures.left_out += back.count(False)


async def _compare(server: ServerProcess | Nodes, players: list[Player], figures: Figures) -> None:
    """Close the table's round, and compare what its players know with the log."""
    table, host = players[0].table, players[0]
    closed = await host.client.call("round.close", table=table, token=host.host)
    async with asyncio.timeout(PATIENT):
        await asyncio.gather(*(player.until(closed["version"], figures) for player in players))
    bundle = read(await server.bundle(table))
    if not verify(bundle).ok:
        figures.faults.append(f"the bundle of table {table} does not verify")
    log = leaves(bundle)
    logged = Counter(event["public"]["seat"] for event in log if event["type"] == "CardDrawn")
    for player in players:
        figures.acknowledged += len(player.drawn)
        figures.doubled += max(0, logged[player.seat] - len(player.drawn))
        for version, slots in player.drawn.items():
            found = log[version - 1 : version]
            places = [(event["type"], event["public"].get("slot")) for event in found]
            figures.lost += places != [("CardDrawn", slot) for slot in slots]


if __name__ == "__main__":
    sys.exit(run(__doc__, kill_in_storms, count="players", default=1000, several=True))
