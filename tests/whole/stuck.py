"""Guests who are stuck, at the same table and everywhere, delay nobody and hold up no closing.

    python tests/whole/stuck.py 300

So many cards are drawn while some guests have stopped reading, some take or send a byte now and
then, and some are gone without a word. The figures are the slowest draws, at their table and at
another, with nobody stuck and then among them; and how long the house took to close.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from websockets.frames import Frame, Opcode

from tests.gateway.guest import Guest
from tests.limits import NO_RATES_OPTIONS
from tests.whole.house import HouseProcess
from tests.whole.script import run

EACH = 5
"""Guests of each kind."""

DRAIN, CLOSING = 6.0, 0.5
"""The house's limits; it has to be closed within the first."""

HANDSHAKE = (
    "GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


@dataclass
class Figures:
    """Times in milliseconds, the closing in seconds."""

    draws: int = 0
    stuck: int = 0
    let_go: int = 0
    slowest_before: float = 0.0
    slowest_at_their_table: float = 0.0
    slowest_at_another: float = 0.0
    closed_in: float = 0.0
    faults: list[str] = field(default_factory=list)


class Table:
    """A table with one seat, whose player draws and puts the card back."""

    async def sit_down(self, port: int) -> None:
        self.host = await Guest.arrive(port)
        self.id = (await self.host.ask("table.open"))["table"]
        self.player = await Guest.arrive(port)
        self.token = (await self.player.ask("table.join", table=self.id, name="Ada"))["token"]
        await self.host.ask("round.open", entropy="house", deck={"decks": 8})
        await self.host.ask("deck.shuffle")

    async def draw(self) -> float:
        """One card; the milliseconds that it took."""
        begun = time.monotonic()
        drawn = await self.player.ask("deck.draw")
        took = (time.monotonic() - begun) * 1000
        await self.player.ask("hand.return", cards=drawn["slots"])
        return took


class Stuck:
    """Guests who watch a table, each in a way that is no good to anybody."""

    def __init__(self, port: int, table: str) -> None:
        self._port = port
        self._table = table
        self._tasks: list[asyncio.Task[None]] = []
        self.socks: list[socket.socket] = []

    async def come(self) -> None:
        for way in (self.stops, self.sips, self.drips, self.gone):
            for _ in range(EACH):
                sock = await self._watching(later=way == self.drips)
                if way in (self.sips, self.drips):
                    self._tasks.append(asyncio.create_task(way(sock)))

    async def leave(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for sock in self.socks:
            sock.close()

    async def _watching(self, *, later: bool) -> socket.socket:
        """On the table from its first event on; who drips has yet to say so."""
        loop = asyncio.get_running_loop()
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        await loop.sock_connect(sock, ("127.0.0.1", self._port))
        await loop.sock_sendall(sock, HANDSHAKE.encode())
        while not (await loop.sock_recv(sock, 4096)).endswith(b"\r\n\r\n"):
            pass
        if not later:
            await loop.sock_sendall(sock, self._wish())
        self.socks.append(sock)
        return sock

    def _wish(self) -> bytes:
        wish = (
            '{"jsonrpc":"2.0","id":1,"method":"table.watch",'
            f'"params":{{"table":"{self._table}","after":0}}}}'
        )
        return Frame(Opcode.TEXT, wish.encode()).serialize(mask=True)

    async def stops(self, sock: socket.socket) -> None:
        """Reads nothing more."""

    async def gone(self, sock: socket.socket) -> None:
        """Half-open: no end of it comes to the house, and no byte either."""

    async def sips(self, sock: socket.socket) -> None:
        """Takes a byte now and then."""
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            while await loop.sock_recv(sock, 1):  # noqa: ASYNC110  so slow it is
                await asyncio.sleep(0.1)

    async def drips(self, sock: socket.socket) -> None:
        """Says what it wants a byte at a time, and so never gets to the end."""
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            for byte in self._wish() * 10:
                await loop.sock_sendall(sock, bytes([byte]))
                await asyncio.sleep(0.1)


async def play_among_stuck(folder: Path, *, draws: int, seed: int) -> Figures:
    """Draw so often; `seed` decides which table comes first each time."""
    figures, chance = Figures(draws=draws), random.Random(seed)
    limits = (*NO_RATES_OPTIONS, f"closing={CLOSING}", f"drain={DRAIN}", "sending=1")
    async with HouseProcess(folder, limit=limits) as house:
        theirs, other = Table(), Table()
        for table in (theirs, other):
            await table.sit_down(house.port)
            for _ in range(min(draws, 50)):
                figures.slowest_before = max(figures.slowest_before, await table.draw())
        stuck = Stuck(house.port, theirs.id)
        await stuck.come()
        await draw_on(theirs, other, draws, chance, figures)
        figures.stuck = len(stuck.socks)
        figures.let_go = figures.stuck - open_connections(house, besides=4)
        # Those of before may be gone by now; the closing has to do with fresh ones.
        late = Stuck(house.port, theirs.id)
        await late.come()
        before = (await theirs.player.ask("deck.draw"))["version"]
        begun = time.monotonic()
        house.tell_to_close()
        code = await house.ended()
        figures.closed_in = round(time.monotonic() - begun, 2)
        if code:
            figures.faults.append(f"the house ended with {code}")
        if figures.closed_in > DRAIN:
            figures.faults.append(f"the house took {figures.closed_in} seconds to close")
        await stuck.leave()
        await late.leave()
        await house.open()
        again = await Guest.arrive(house.port)
        back = await again.ask("table.resume", table=theirs.id, token=theirs.token, after=before)
        if back["version"] != before:
            figures.faults.append(f"{before} was answered, and {back['version']} is there")
        await again.leave()
        for table in (theirs, other):
            await table.host.leave()
            await table.player.leave()
    return figures


async def draw_on(
    theirs: Table, other: Table, draws: int, chance: random.Random, figures: Figures
) -> None:
    """At both tables, with shuffles of a shoe at theirs: that fills every buffer."""
    for number in range(draws):
        if number % 3 == 0:
            await theirs.host.ask("deck.shuffle")
        for table in chance.sample((theirs, other), 2):
            took = round(await table.draw(), 1)
            if table is theirs:
                figures.slowest_at_their_table = max(figures.slowest_at_their_table, took)
            else:
                figures.slowest_at_another = max(figures.slowest_at_another, took)
    figures.slowest_before = round(figures.slowest_before, 1)


def open_connections(house: HouseProcess, *, besides: int) -> int:
    """Sockets to the house's guests that the house holds open, but for so many."""
    end = f":{house.port:04X}"
    inodes = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[1].endswith(end) and words[3] == "01":
            inodes.add(f"socket:[{words[9]}]")
    held = 0
    for fd in Path(f"/proc/{house.pid}/fd").iterdir():
        with suppress(OSError):
            held += os.readlink(fd) in inodes
    return held - besides


if __name__ == "__main__":
    sys.exit(run(__doc__, play_among_stuck, count="draws", default=300))
