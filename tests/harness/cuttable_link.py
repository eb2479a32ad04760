"""A TCP relay between players and a server that a test can cut, hold and mend."""

from __future__ import annotations

import asyncio

from tests.harness.relay import CHUNK, Relay


class CuttableLink(Relay):
    """Relays to the port `to`.

    After `cut` every connection is broken and new ones are refused. After `hold` no byte passes and
    neither end is notified, as when a cable is unplugged. `mend` ends both.
    """

    def __init__(self, to: int) -> None:
        super().__init__()
        self.to = to
        self._open = asyncio.Event()
        self._open.set()

    async def cut(self) -> None:
        await self.shut()

    def hold(self) -> None:
        self._open.clear()

    async def mend(self) -> None:
        self._open.set()
        await self.listen()

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await self.reach(self.to)
        await asyncio.gather(self._pass(reader, server_writer), self._pass(server_reader, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK):
            await self._open.wait()
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
