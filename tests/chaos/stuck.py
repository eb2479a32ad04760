"""Stuck clients, at the same table and at others, delay no other client and no shutdown.

    python tests/chaos/stuck.py 300

The count is the number of draws while some clients have stopped reading, some read or send a byte
at a time, and some disappeared without closing. The figures are the slowest draws, at their table
and at another, without and with stuck clients; and the time that the server took to shut down.
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

from tests.gateway.rpc_client import RpcClient
from tests.harness.limits import NO_RATES_OPTIONS
from tests.harness.script import run
from tests.harness.server_process import ServerProcess

EACH = 5
"""Clients of each kind."""

DRAIN, CLOSING = 6.0, 0.5
"""Limits of the server; it must shut down within the first."""

HANDSHAKE = (
    "GET /ws HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


@dataclass
class Figures:
    """Times in milliseconds; `closed_in` in seconds."""

    draws: int = 0
    stuck: int = 0
    disconnected: int = 0
    slowest_before: float = 0.0
    slowest_at_their_table: float = 0.0
    slowest_at_another: float = 0.0
    closed_in: float = 0.0
    faults: list[str] = field(default_factory=list)


class Table:
    """A table with one seat, whose player draws and returns a card."""

    async def sit_down(self, port: int) -> None:
        self.host = await RpcClient.connect(port)
        self.id = (await self.host.call("table.open"))["table"]
        self.player = await RpcClient.connect(port)
        self.token = (await self.player.call("table.join", table=self.id, name="Ada"))["token"]
        await self.host.call("round.open", entropy="house", deck={"decks": 8})
        await self.host.call("deck.shuffle")

    async def draw(self) -> float:
        """Draw one card; the milliseconds that it took."""
        begun = time.monotonic()
        drawn = await self.player.call("deck.draw")
        took = (time.monotonic() - begun) * 1000
        await self.player.call("hand.return", cards=drawn["slots"])
        return took


class StuckClients:
    """Clients that watch a table, each stuck in its own way."""

    def __init__(self, port: int, table: str) -> None:
        self._port = port
        self._table = table
        self._tasks: list[asyncio.Task[None]] = []
        self.socks: list[socket.socket] = []

    async def connect(self) -> None:
        for route in (self.stops_reading, self.reads_slowly, self.sends_slowly, self.disappears):
            for _ in range(EACH):
                sock = await self._watching(later=route == self.sends_slowly)
                if route in (self.reads_slowly, self.sends_slowly):
                    self._tasks.append(asyncio.create_task(route(sock)))

    async def leave(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for sock in self.socks:
            sock.close()

    async def _watching(self, *, later: bool) -> socket.socket:
        """A connection that watches the table from its first event; with `later` the request is not
        sent.
        """
        loop = asyncio.get_running_loop()
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        await loop.sock_connect(sock, ("127.0.0.1", self._port))
        await loop.sock_sendall(sock, HANDSHAKE.encode())
        while not (await loop.sock_recv(sock, 4096)).endswith(b"\r\n\r\n"):
            pass
        if not later:
            await loop.sock_sendall(sock, self._request())
        self.socks.append(sock)
        return sock

    def _request(self) -> bytes:
        request = (
            '{"jsonrpc":"2.0","id":1,"method":"table.watch",'
            f'"params":{{"table":"{self._table}","after":0}}}}'
        )
        return Frame(Opcode.TEXT, request.encode()).serialize(mask=True)

    async def stops_reading(self, sock: socket.socket) -> None:
        """Do not read."""

    async def disappears(self, sock: socket.socket) -> None:
        """Half-open: the server gets no FIN and no byte."""

    async def reads_slowly(self, sock: socket.socket) -> None:
        """Read one byte at a time, with pauses."""
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            while await loop.sock_recv(sock, 1):  # noqa: ASYNC110  it reads slowly
                await asyncio.sleep(0.1)

    async def sends_slowly(self, sock: socket.socket) -> None:
        """Send the request a byte at a time, and never finish."""
        loop = asyncio.get_running_loop()
        with suppress(OSError):
            for byte in self._request() * 10:
                await loop.sock_sendall(sock, bytes([byte]))
                await asyncio.sleep(0.1)


async def play_among_stuck(folder: Path, *, draws: int, seed: int) -> Figures:
    """Draw this often; `seed` determines which table comes first each time."""
    figures, chance = Figures(draws=draws), random.Random(seed)
    limits = (*NO_RATES_OPTIONS, f"closing={CLOSING}", f"drain={DRAIN}", "sending=1")
    async with ServerProcess(folder, limit=limits) as server:
        theirs, other = Table(), Table()
        for table in (theirs, other):
            await table.sit_down(server.port)
            for _ in range(min(draws, 50)):
                figures.slowest_before = max(figures.slowest_before, await table.draw())
        stuck = StuckClients(server.port, theirs.id)
        await stuck.connect()
        await draw_on(theirs, other, draws, chance, figures)
        figures.stuck = len(stuck.socks)
        figures.disconnected = figures.stuck - open_connections(server, besides=4)
        # Earlier ones may have been disconnected; the shutdown needs connected ones.
        late = StuckClients(server.port, theirs.id)
        await late.connect()
        before = (await theirs.player.call("deck.draw"))["version"]
        begun = time.monotonic()
        server.terminate()
        code = await server.ended()
        figures.closed_in = round(time.monotonic() - begun, 2)
        if code:
            figures.faults.append(f"the server exited with {code}")
        if figures.closed_in > DRAIN:
            figures.faults.append(f"the server took {figures.closed_in} seconds to close")
        await stuck.leave()
        await late.leave()
        await server.open()
        again = await RpcClient.connect(server.port)
        back = await again.call("table.resume", table=theirs.id, token=theirs.token, after=before)
        if back["version"] != before:
            figures.faults.append(f"{before} was answered, but the version is {back['version']}")
        await again.close()
        for table in (theirs, other):
            await table.host.close()
            await table.player.close()
    return figures


async def draw_on(
    theirs: Table, other: Table, draws: int, chance: random.Random, figures: Figures
) -> None:
    """Draw at both tables, and shuffle a shoe at theirs, which fills every buffer."""
    for number in range(draws):
        if number % 3 == 0:
            await theirs.host.call("deck.shuffle")
        for table in chance.sample((theirs, other), 2):
            took = round(await table.draw(), 1)
            if table is theirs:
                figures.slowest_at_their_table = max(figures.slowest_at_their_table, took)
            else:
                figures.slowest_at_another = max(figures.slowest_at_another, took)
    figures.slowest_before = round(figures.slowest_before, 1)


def open_connections(server: ServerProcess, *, besides: int) -> int:
    """Client sockets that the server holds open, except this many."""
    end = f":{server.port:04X}"
    inodes = set()
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        words = line.split()
        if words[1].endswith(end) and words[3] == "01":
            inodes.add(f"socket:[{words[9]}]")
    held = 0
    for fd in Path(f"/proc/{server.pid}/fd").iterdir():
        with suppress(OSError):
            held += os.readlink(fd) in inodes
    return held - besides


if __name__ == "__main__":
    sys.exit(run(__doc__, play_among_stuck, count="draws", default=300))
