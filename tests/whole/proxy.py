"""A bad line between a client and its house: it holds up, tears and cuts what goes through it."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
from contextlib import suppress
from types import TracebackType

CHUNK = 4096
SHORTEST, LONGEST = 100, 40_000
"""Bytes that pass one way before a connection is cut; short ones are as likely as long ones."""

RESET = struct.pack("ii", 1, 0)


class BadLine:
    """Listens on `port` and leads to the port `house`; good while `mended`, else it counts `cuts`.

    Each connection has a number of bytes that may pass in each direction. At the first that is not
    let through both ends are closed, or reset, or one way stays open for a moment: then a request
    arrives and its answer does not, or the other way round. Some come late, some connections are
    begun twice, and of some nothing gets through at all.
    """

    def __init__(self, house: int, *, chance: random.Random) -> None:
        self.port = 0
        self.cuts = 0
        self.connections = 0
        self.torn = 0  # cut in the middle of what one end had sent at once
        self.mended = True
        self._house = house
        self._chance = chance
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> BadLine:
        self._server = await asyncio.start_server(self._arrived, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}/ws"

    async def _arrived(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.connections += 1
        with suppress(OSError):
            await self._join(reader, writer)
        writer.close()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        first = await reader.read(CHUNK)
        if not self.mended and self._chance.random() < 0.1:
            # Begun twice: what the first one asks for comes to nobody.
            _, lost = await asyncio.open_connection("127.0.0.1", self._house)
            lost.write(first)
            lost.close()
        there, back = await asyncio.open_connection("127.0.0.1", self._house)
        ways = [
            asyncio.create_task(self._carry(reader, back, first)),
            asyncio.create_task(self._carry(there, writer, b"")),
        ]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            if not self.mended:
                await asyncio.wait(ways, timeout=self._chance.choice((0.0, 0.0, 0.02, 0.1)))
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
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
