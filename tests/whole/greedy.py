"""One address makes the server write as much as it can; its budget bounds that, others play on.

    python tests/whole/greedy.py 600

So many seconds, 30 connections of one address, opened again whenever they are closed, open tables,
shuffle and deal decks of 988 cards, download bundles and send pings, as fast as the server lets
them. Another address plays meanwhile. `written` is what /proc counts for the process (write_bytes),
`grown` what the database's files became larger, in MB; the bound is the budget of the address for
that time, plus one command. Draws are the other player's, in ms.
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
from tests.gateway.asking import get
from tests.gateway.guest import Guest, Refusal
from tests.whole.floods import memory
from tests.whole.house import HouseProcess
from tests.whole.script import run

CONNECTIONS = 30
ATTACKER, PLAYER = "198.51.100.66", "203.0.113.7"
MB = 1e6
LIMITS = Limits()

COMMAND = 1.4 * MB
"""Bytes of the dearest command: what a budget may be exceeded by."""


@dataclass
class Figures:
    """Written and grown in MB, draws in milliseconds, memory in MiB."""

    seconds: float = 0.0
    carried_out: int = 0
    refused: int = 0
    closed: int = 0
    turned_away: int = 0
    written: float = 0.0
    grown: float = 0.0
    bound: float = 0.0
    draws: int = 0
    draw_p50: float = 0.0
    draw_p99: float = 0.0
    memory_before: float = 0.0
    memory_after: float = 0.0
    faults: list[str] = field(default_factory=list)


def arrive(port: int, address: str) -> asyncio.Task[Guest]:
    headers = {"X-Forwarded-For": address}
    return asyncio.ensure_future(Guest.arrive(port, additional_headers=headers))


class Attacker:
    """One connection after the other, each with a table of its own."""

    def __init__(self, port: int, figures: Figures, chance: random.Random) -> None:
        self._port = port
        self._figures = figures
        self._chance = chance

    async def attack(self, until: float) -> None:
        while time.monotonic() < until:
            try:
                guest = await arrive(self._port, ATTACKER)
            except InvalidStatus as refused:
                self._figures.turned_away += 1
                await asyncio.sleep(float(refused.response.headers["Retry-After"]))
                continue
            with suppress(WebSocketException, ConnectionError, asyncio.CancelledError):
                await self._abuse(guest, until)
            self._figures.closed += guest.closed.done()
            guest.socket.transport.abort()

    async def _abuse(self, guest: Guest, until: float) -> None:
        table = (await self._ask(guest, "table.open") or {}).get("table")
        await self._ask(guest, "table.join", name="Mallory")
        while time.monotonic() < until and not guest.closed.done():
            for method, params in (
                ("round.open", {"entropy": "house", "deck": {"decks": 19}}),
                ("deck.shuffle", {}),
                ("deck.deal", {"each": 500}),
                ("deck.cut", {"at": 1}),
                ("round.close", {}),
                ("table.state", {}),
            ):
                await self._ask(guest, method, **params)
            if self._chance.random() < 0.2:
                pings = Frame(Opcode.PING, b"!").serialize(mask=True)
                guest.socket.transport.write(pings * self._chance.randrange(30))
            if table is not None and self._chance.random() < 0.1:
                path = f"/tables/{table}/bundle.jsonl"
                await get(self._port, path, X_Forwarded_For=ATTACKER)

    async def _ask(self, guest: Guest, method: str, **params: object) -> dict[str, str] | None:
        if guest.closed.done():
            raise ConnectionResetError("the server closed this connection")
        try:
            answer = await guest.ask(method, **params)
        except Refusal as refusal:
            # Who asks in vain is soon shut out: the worst attack is a patient one.
            self._figures.refused += 1
            wait = refusal.error["data"].get("retry_after_ms", 100) / 1000
            await asyncio.sleep(min(wait, 2.0) * (1 + self._chance.random()))
            return None
        self._figures.carried_out += 1
        return dict(answer)


class Player:
    """Draws and puts the card back, a few times a second."""

    async def sit_down(self, port: int) -> None:
        self._guest = await arrive(port, PLAYER)
        await self._guest.ask("table.open")
        await self._guest.ask("table.join", name="Ada")
        await self._guest.ask("round.open", entropy="house")
        await self._guest.ask("deck.shuffle")
        self.took: list[float] = []

    async def play(self, until: float) -> None:
        while time.monotonic() < until:
            begun = time.monotonic()
            drawn = await self._guest.ask("deck.draw")
            self.took.append((time.monotonic() - begun) * 1000)
            await self._guest.ask("hand.return", cards=drawn["slots"])
            await asyncio.sleep(0.4)  # a person's pace, far below any limit


def write_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("write_bytes"))


def size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.glob("dealer.db*"))


async def be_greedy(
    folder: Path, *, seconds: int, seed: int, burst: float = LIMITS.address_bytes_burst
) -> Figures:
    """Attack for so many seconds, with a budget that begins at `burst` bytes."""
    figures, chance = Figures(), random.Random(seed)
    limits = (f"address_bytes_burst={burst}", "closing=0.5")
    async with HouseProcess(folder, limit=limits, **{"trusted-proxy": "127.0.0.1"}) as house:
        player = Player()
        await player.sit_down(house.port)
        await house.projected()
        before, small = write_bytes(house.pid), size(folder)
        figures.memory_before = memory(house.pid)
        begun = time.monotonic()
        attackers = [Attacker(house.port, figures, chance) for _ in range(CONNECTIONS)]
        until = begun + seconds
        await asyncio.gather(player.play(until), *(one.attack(until) for one in attackers))
        figures.seconds = round(time.monotonic() - begun, 1)
        await house.projected()
        figures.written = round((write_bytes(house.pid) - before) / MB, 1)
        figures.grown = round((size(folder) - small) / MB, 1)
        figures.memory_after = memory(house.pid)
    ordered = sorted(player.took)
    figures.draws = len(ordered)
    figures.draw_p50 = round(ordered[len(ordered) // 2], 1)
    figures.draw_p99 = round(ordered[int(len(ordered) * 0.99)], 1)
    # Two commands of the player's pace cost at most two commits each, 2.5 times a second.
    players = len(ordered) * 2 * 60_000
    allowed = burst + LIMITS.address_bytes * figures.seconds + COMMAND + players
    figures.bound = round(allowed / MB, 1)
    for name in ("written", "grown"):
        if getattr(figures, name) > figures.bound:
            figures.faults.append(f"more was {name} than the budget of one address")
    if "Traceback" in house.output.read_text():
        figures.faults.append(f"a traceback stands in {house.output}")
    return figures


if __name__ == "__main__":
    sys.exit(run(__doc__, be_greedy, count="seconds", default=60))
