"""A line between a house and its database server that can be cut at any byte."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path


class Proxy:
    """Passes bytes on to a server's socket.

    `cut_at` is asked of all that the house sends; where it says True the line is cut, with `lost`
    "request" before that is passed on, with "reply" after the server has answered it, and with
    `closed` nobody gets through again until it is taken back.
    """

    def __init__(self, socket: Path) -> None:
        self.cut_at: Callable[[bytes], bool] = lambda data: False
        self.lost = "request"
        self.closed = False
        self.cuts = 0
        self.port = 0
        self._socket = socket
        self._lines: set[asyncio.Task[None]] = set()

    async def _guest(self, house: asyncio.StreamReader, to_house: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._lines.add(task)
        task.add_done_callback(self._lines.discard)
        if self.closed:
            to_house.transport.abort()
            return
        server, to_server = await asyncio.open_unix_connection(str(self._socket))
        back = asyncio.create_task(self._pass_back(server, to_house))
        try:
            while data := await house.read(65536):
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
            back.cancel()
            await asyncio.gather(back, return_exceptions=True)
            to_house.transport.abort()
            to_server.transport.abort()

    async def _pass_back(
        self, server: asyncio.StreamReader, to_house: asyncio.StreamWriter
    ) -> None:
        with suppress(ConnectionError):
            while data := await server.read(65536):
                to_house.write(data)
                await to_house.drain()
        to_house.close()

    async def cut_all(self) -> None:
        for task in list(self._lines):
            task.cancel()
        await asyncio.gather(*self._lines, return_exceptions=True)


@asynccontextmanager
async def proxy(socket: Path) -> AsyncIterator[Proxy]:
    """A proxy on a free port of this machine, to the server that listens at `socket`."""
    line = Proxy(socket)
    listening = await asyncio.start_server(line._guest, "127.0.0.1", 0)
    line.port = listening.sockets[0].getsockname()[1]
    try:
        yield line
    finally:
        listening.close()
        await line.cut_all()
