"""A line between players and a house that can be cut, held and mended."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from types import TracebackType


class Line:
    """A TCP port on this machine that leads to another one.

    Cut: every connection breaks, and new ones are refused. Held: nothing passes any more, and
    nobody is told, as when a cable is pulled. Mended: all is as at the beginning.
    """

    def __init__(self, to: int) -> None:
        self.to = to
        self.port = 0
        self._pairs: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self._open = asyncio.Event()
        self._open.set()

    async def __aenter__(self) -> Line:
        await self.mend()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.cut()

    async def cut(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()
        pairs = list(self._pairs)
        for pair in pairs:
            pair.cancel()
        await asyncio.gather(*pairs, return_exceptions=True)

    def hold(self) -> None:
        self._open.clear()

    async def mend(self) -> None:
        self._open.set()
        if self._server is None:
            self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pair = asyncio.ensure_future(self._carry(reader, writer))
        self._pairs.add(pair)
        pair.add_done_callback(self._pairs.discard)
        with suppress(asyncio.CancelledError):
            await pair

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.to)
            writers.append(back)
            await asyncio.gather(self._pass(reader, back), self._pass(there, writer))
        except OSError:
            return
        finally:
            for one in writers:
                one.transport.abort()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            await self._open.wait()
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()
