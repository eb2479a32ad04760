"""A TCP relay between a client and its server that delays, truncates and cuts at random bytes."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from contextlib import suppress

from tests.harness.relay import Relay

CHUNK = 4096
SHORTEST, LONGEST = 100, 40_000
"""Bytes that pass in one direction before a connection is cut, distributed log-uniformly."""

RESET = struct.pack("ii", 1, 0)


class BadLink(Relay):
    """Relays to the port `server`: without faults while `reliable`, otherwise it counts `cuts`.

    Each connection gets a random number of bytes that may pass in each direction. At the first byte
    beyond it both ends are closed, or reset, or one direction stays open for a moment, so that a
    request arrives and its answer does not, or the reverse. Some bytes are delayed, some requests
    are sent twice, and on some connections no byte passes.
    """

    def __init__(self, server: int, *, chance: random.Random) -> None:
        super().__init__()
        self.cuts = 0
        self.connections = 0
        self.torn = 0  # cut inside the bytes that one end had sent in one write
        self.reliable = True
        self._server_port = server
        self._chance = chance

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        first = await reader.read(CHUNK)
        if not self.reliable and self._chance.random() < 0.1:
            # Sent twice: the answer to the first copy is not delivered.
            _, lost = await self.reach(self._server_port)
            lost.write(first)
            lost.close()
        server_reader, server_writer = await self.reach(self._server_port)
        directions = [
            asyncio.create_task(self._carry(reader, server_writer, first)),
            asyncio.create_task(self._carry(server_reader, writer, b"")),
        ]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
            if not self.reliable:
                await asyncio.wait(directions, timeout=self._chance.choice((0.0, 0.0, 0.02, 0.1)))
        finally:
            await self.break_off(directions)
            for end in (writer, server_writer):
                self._close(end)

    async def _carry(
        self, source: asyncio.StreamReader, to: asyncio.StreamWriter, data: bytes
    ) -> None:
        """Copy until the source ends or the number of bytes for this direction is used up."""
        left = int(SHORTEST * (LONGEST / SHORTEST) ** self._chance.random())
        if self._chance.random() < 0.05:
            left = 0
        late = self._chance.choice((0.0, 0.0, 0.0, 0.01))
        with suppress(OSError):
            while data or (data := await source.read(CHUNK)):
                if not self.reliable:
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
