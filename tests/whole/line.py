"""A line between players and a house that can be cut, held and mended."""

from __future__ import annotations

import asyncio

from tests.relay import CHUNK, Relay


class Line(Relay):
    """Leads to the port `to`.

    Cut: every connection breaks, and new ones are refused. Held: nothing passes any more, and
    nobody is told, as when a cable is pulled. Mended: all is as at the beginning.
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
        there, back = await self.reach(self.to)
        await asyncio.gather(self._pass(reader, back), self._pass(there, writer))

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK):
            await self._open.wait()
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
