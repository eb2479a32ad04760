"""A bad line between a client and its house: it holds up, tears and cuts what goes through it."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from contextlib import suppress

from tests.relay import Relay

CHUNK = 4096
SHORTEST, LONGEST = 100, 40_000
"""Bytes that pass one way before a connection is cut; short ones are as likely as long ones."""

RESET = struct.pack("ii", 1, 0)


class BadLine(Relay):
    """Leads to the port `house`; good while `mended`, else it counts `cuts`.

    Each connection has a number of bytes that may pass in each direction. At the first that is not
    let through both ends are closed, or reset, or one way stays open for a moment: then a request
    arrives and its answer does not, or the other way round. Some come late, some connections are
    begun twice, and of some nothing gets through at all.
    """

    def __init__(self, house: int, *, chance: random.Random) -> None:
        super().__init__()
        self.cuts = 0
        self.connections = 0
        self.torn = 0  # cut in the middle of what one end had sent at once
        self.mended = True
        self._house = house
        self._chance = chance

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        first = await reader.read(CHUNK)
        if not self.mended and self._chance.random() < 0.1:
            # Begun twice: what the first one asks for comes to nobody.
            _, lost = await self.reach(self._house)
            lost.write(first)
            lost.close()
        there, back = await self.reach(self._house)
        ways = [
            asyncio.create_task(self._carry(reader, back, first)),
            asyncio.create_task(self._carry(there, writer, b"")),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            if not self.mended:
                await asyncio.wait(ways, timeout=self._chance.choice((0.0, 0.0, 0.02, 0.1)))
        finally:
            await self.break_off(ways)
            for end in (writer, back):
                self._close(end)

    async def _carry(
        self, source: asyncio.StreamReader, to: asyncio.StreamWriter, data: bytes
    ) -> None:
        """Until the source ends, or until the way's bytes are used up."""
        left = int(SHORTEST * (LONGEST / SHORTEST) ** self._chance.random())
        if self._chance.random() < 0.05:
            left = 0
        late = self._chance.choice((0.0, 0.0, 0.0, 0.01))
        with suppress(OSError):
            while data or (data := await source.read(CHUNK)):
                if not self.mended:
                    await asyncio.sleep(late * self._chance.random())
                    if len(data) > left:
                        self.cuts += 1
                        self.torn += left > 0
                        to.write(data[:left])
                        await to.drain()
                        return
                    left -= len(data)
                to.write(data)
                await to.drain()
                data = b""

    def _close(self, end: asyncio.StreamWriter) -> None:
        sock = end.get_extra_info("socket")
        if sock is not None and self._chance.random() < 0.5:
            with suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        end.close()
