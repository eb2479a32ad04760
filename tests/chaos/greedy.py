"""One address makes the server write as much as it can, within its budget; others can play.

    python tests/chaos/greedy.py 600

For this many seconds, 30 connections of one address, reopened whenever they are closed, open
tables, shuffle and deal decks of 988 cards, download bundles and send pings, as fast as the server
allows. Another address plays meanwhile. `written` is what /proc counts for the process (wchar: its
files, on any file system, and not its sockets), `grown` the growth of the database's files, in MB;
the bound is the address's budget for that time plus one command. Draws are the other player's, in
ms.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.frames import Frame, Opcode

from dealer.gateway import Limits
from tests.chaos.floods import memory
from tests.gateway.http_client import get
from tests.gateway.rpc_client import Refusal, RpcClient
from tests.harness.script import run
from tests.harness.server_process import ServerProcess

CONNECTIONS = 30
ATTACKER, PLAYER = "198.51.100.66", "203.0.113.7"
MB = 1e6
LIMITS = Limits()

COMMAND = 1.4 * MB
"""Bytes of the most expensive command, by which a budget may be exceeded."""


@dataclass
class Figures:
    """Written and grown in MB, draws in milliseconds, memory in MiB."""

    seconds: float = 0.0
    granted: int = 0
    refused: int = 0
    closed: int = 0
    written: float = 0.0
    grown: float = 0.0
    bound: float = 0.0
    draws: int = 0
    draw_p50: float = 0.0
    draw_p99: float = 0.0
    memory_before: float = 0.0
    memory_after: float = 0.0
    faults: list[str] = field(default_factory=list)


def connect(port: int, address: str) -> asyncio.Task[RpcClient]:
    headers = {"X-Forwarded-For": address}
    return asyncio.ensure_future(RpcClient.connect(port, additional_headers=headers))


class Attacker:
    """Connections one after the other, each with its own table."""

    def __init__(self, port: int, figures: Figures, chance: random.Random) -> None:
        self._port = port
        self._figures = figures
        self._chance = chance

    async def attack(self, until: float) -> None:
        while time.monotonic() < until:
            try:
                client = await connect(self._port, ATTACKER)
            except InvalidStatus as refused:
                self._figures.refused += 1
                await asyncio.sleep(float(refused.response.headers["Retry-After"]))
                continue
            with suppress(WebSocketException, ConnectionError, asyncio.CancelledError):
                await self._abuse(client, until)
            self._figures.closed += client.closed.done()
            client.socket.transport.abort()

    async def _abuse(self, client: RpcClient, until: float) -> None:
        table = (await self._ask(client, "table.open") or {}).get("table")
        await self._ask(client, "table.join", name="Mallory")
        while time.monotonic() < until and not client.closed.done():
            for method, params in (
                ("round.open", {"entropy": "house", "deck": {"decks": 19}}),
                ("deck.shuffle", {}),
                ("deck.deal", {"each": 500}),
                ("deck.cut", {"at": 1}),
                ("round.close", {}),
                ("table.state", {}),
            ):
                await self._ask(client, method, **params)
            if self._chance.random() < 0.2:
                pings = Frame(Opcode.PING, b"!").serialize(mask=True)
                client.socket.transport.write(pings * self._chance.randrange(30))
            if table is not None and self._chance.random() < 0.1:
                path = f"/tables/{table}/bundle.jsonl"
                await get(self._port, path, X_Forwarded_For=ATTACKER)

    async def _ask(self, client: RpcClient, method: str, **params: object) -> dict[str, str] | None:
        if client.closed.done():
            raise ConnectionResetError("the server closed this connection")
        try:
            answer = await client.call(method, **params)
        except Refusal as refusal:
            # Refused requests soon lock the address out, so a patient attack writes the most.
            self._figures.refused += 1
            wait = refusal.error["data"].get("retry_after_ms", 100) / 1000
            await asyncio.sleep(min(wait, 2.0) * (1 + self._chance.random()))
            return None
        self._figures.granted += 1
        return dict(answer)


class Player:
    """Draws and returns a card, a few times a second."""

    async def sit_down(self, port: int) -> None:
        self._client = await connect(port, PLAYER)
        await self._client.call("table.open")
        await self._client.call("table.join", name="Ada")
        await self._client.call("round.open", entropy="house")
        await self._client.call("deck.shuffle")
        self.took: list[float] = []

    async def play(self, until: float) -> None:
        while time.monotonic() < until:
            begun = time.monotonic()
            drawn = await self._client.call("deck.draw")
            self.took.append((time.monotonic() - begun) * 1000)
            await self._client.call("hand.return", cards=drawn["slots"])
            await asyncio.sleep(0.4)  # a person's pace, far below any limit


def written_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("wchar"))


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("dealer.db*"))


async def exhaust_budget(
    folder: Path, *, seconds: int, seed: int, burst: float = LIMITS.address_bytes_burst
) -> Figures:
    """Attack for this many seconds, with a budget that starts at `burst` bytes."""
    figures, chance = Figures(), random.Random(seed)
    limits = (f"address_bytes_burst={burst}", "closing=0.5")
    async with ServerProcess(folder, limit=limits, **{"trusted-proxy": "127.0.0.1"}) as server:
        player = Player()
        await player.sit_down(server.port)
        await server.projected()
        before, small = written_bytes(server.pid), size(folder)
        figures.memory_before = memory(server.pid)
        begun = time.monotonic()
        attackers = [Attacker(server.port, figures, chance) for _ in range(CONNECTIONS)]
        until = begun + seconds
        await asyncio.gather(player.play(until), *(one.attack(until) for one in attackers))
        figures.seconds = round(time.monotonic() - begun, 1)
        await server.projected()
        figures.written = round((written_bytes(server.pid) - before) / MB, 1)
        figures.grown = round((size(folder) - small) / MB, 1)
        figures.memory_after = memory(server.pid)
    ordered = sorted(player.took)
    figures.draws = len(ordered)
    figures.draw_p50 = round(ordered[len(ordered) // 2], 1)
    figures.draw_p99 = round(ordered[int(len(ordered) * 0.99)], 1)
    # Two commands at the player's pace cost at most two commits each, 2.5 times a second.
    players = len(ordered) * 2 * 60_000
    allowed = burst + LIMITS.address_bytes * figures.seconds + COMMAND + players
    figures.bound = round(allowed / MB, 1)
    for name in ("written", "grown"):
        if getattr(figures, name) > figures.bound:
            figures.faults.append(f"more was {name} than the budget of one address")
    if "Traceback" in server.output.read_text():
        figures.faults.append(f"{server.output} has a traceback")
    return figures


if __name__ == "__main__":
    sys.exit(run(__doc__, exhaust_budget, count="seconds", default=60))
