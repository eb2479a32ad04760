"""A line between a house and its database server that can be cut at any byte."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.relay import CHUNK, Relay, pass_on


class Proxy(Relay):
    """Leads to the server that listens at `socket`.

    `cut_at` is asked of all that the house sends; where it says True the line is cut, with `lost`
    "request" before that is passed on, with "reply" after the server has answered it, and with
    `closed` nobody gets through again until it is taken back.
    """

    def __init__(self, socket: Path) -> None:
        super().__init__()
        self.cut_at: Callable[[bytes], bool] = lambda data: False
        self.lost = "request"
        self.closed = False
        self.cuts = 0
        self._socket = socket

    async def cut_all(self) -> None:
        await self.break_off(list(self._pairs))

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.closed:
            return
        server, to_server = await self.reach_file(str(self._socket))
        back = asyncio.create_task(self._pass_back(server, writer))
        try:
            while data := await reader.read(CHUNK):
                if self.cut_at(data):
                    self.cuts += 1
                    self.cut_at = lambda data: False
                    if self.lost == "reply":
                        back.cancel()
                        to_server.write(data)
                        await to_server.drain()
                        await server.read(1)
                    return
                to_server.write(data)
                await to_server.drain()
        finally:
            await self.break_off((back,))

    @staticmethod
    async def _pass_back(server: asyncio.StreamReader, to_house: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await pass_on(server, to_house)
        to_house.close()
