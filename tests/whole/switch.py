"""One door to several houses: whoever comes is led to the next one that is open."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from types import TracebackType


class Switch:
    """A TCP port that leads to one of `ports()`, each in its turn, past those that are shut.

    `connections` counts those that were led somewhere, `cut` those of them that the house, and
    not the guest, broke or ended. `spread` breaks every other one itself.
    """

    def __init__(self, ports: Callable[[], Sequence[int]]) -> None:
        self.port = 0
        self.connections = 0
        self.cut = 0
        self._ports = ports
        self._turn = 0
        self._pairs: dict[asyncio.Task[None], int] = {}
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Switch:
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
        await self._break(list(self._pairs))

    async def spread(self) -> None:
        """Have every other guest of the fullest house come again, to whoever is next."""
        for port in set(self._pairs.values()):
            there = [pair for pair, to in self._pairs.items() if to == port]
            if len(there) > len(self._pairs) / 2 + 1:
                await self._break(there[::2])

    @staticmethod
    async def _break(pairs: Sequence[asyncio.Task[None]]) -> None:
        for pair in pairs:
            pair.cancel()
        await asyncio.gather(*pairs, return_exceptions=True)

    async def _arrived(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pair = asyncio.ensure_future(self._carry(reader, writer))
        self._pairs[pair] = 0
        pair.add_done_callback(self._pairs.pop)
        await asyncio.gather(pair, return_exceptions=True)

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers = [writer]
        try:
            there, back = await self._lead()
            writers.append(back)
            self.connections += 1
            asked = asyncio.create_task(self._pass(reader, back))
            answered = asyncio.create_task(self._pass(there, writer))
            try:
                await asyncio.wait((asked, answered), return_when=asyncio.FIRST_COMPLETED)
                self.cut += not asked.done()
            finally:
                for way in (asked, answered):
                    way.cancel()
                await asyncio.gather(asked, answered, return_exceptions=True)
        except OSError:
            return
        finally:
            for one in writers:
                one.transport.abort()

    async def _lead(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        ports = list(self._ports())
        for _ in ports:
            self._turn += 1
            port = ports[self._turn % len(ports)]
            try:
                pair = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                continue
            task = asyncio.current_task()
            assert task is not None
            self._pairs[task] = port
            return pair
        raise ConnectionRefusedError("all houses are shut")

    @staticmethod
    async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        except OSError:
            return
