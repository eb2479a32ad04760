"""A relay between a node and its PostgreSQL server that can be cut at any byte."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from tests.harness.relay import CHUNK, Relay, pass_on


class DatabaseLink(Relay):
    """Relays to the server that listens at `socket`.

    `cut_at` is called with everything that the node sends. Where it returns True the connection is
    cut: with `lost` "request" before these bytes are forwarded, with "reply" after the server has
    answered them. While `closed`, new connections are refused.
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
                        await self.break_off((back,))  # it reads from the server, as this does
                        to_server.write(data)
                        await to_server.drain()
                        await server.read(1)
                    return
                to_server.write(data)
                await to_server.drain()
        finally:
            await self.break_off((back,))

    @staticmethod
    async def _pass_back(server: asyncio.StreamReader, to_node: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await pass_on(server, to_node)
        to_node.close()
