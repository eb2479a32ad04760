"""Base class of TCP relays; a subclass decides what happens to the bytes."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

CHUNK = 65536
_TURNS = 10
"""Iterations of the loop within which connections accepted before `shut` have arrived."""


class Relay(ABC):
    """Listens on `port` and passes connections to `carry`; leaving the block breaks them.

    Both ends of a connection are aborted when `carry` returns, is cancelled, or raises OSError.
    """

    def __init__(self) -> None:
        self.port = 0
        self._pairs: set[asyncio.Task[None]] = set()
        self._ends: dict[asyncio.Task[None], list[asyncio.StreamWriter]] = {}
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        await self.listen()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.shut()

    async def listen(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._arrived, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    async def shut(self) -> None:
        """Break every connection and refuse new ones."""
        server, self._server = self._server, None
        if server is not None:
            server.close()
            for _ in range(_TURNS):
                await asyncio.sleep(0)
        await self.break_off(list(self._pairs))

    @staticmethod
    async def break_off(pairs: Sequence[asyncio.Task[None]]) -> None:
        """Cancel these tasks, and wait until they have ended: then others may read their streams.

        A stream has one reader at a time: a second one gets RuntimeError.
        """
        for pair in pairs:
            pair.cancel()
        await asyncio.gather(*pairs, return_exceptions=True)

    @abstractmethod
    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Relay a client's connection to one that `reach` opens."""

    async def reach(self, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to a local port, which ends with the client's."""
        return self._keep(await asyncio.open_connection("127.0.0.1", port))

    async def reach_file(self, path: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to a Unix socket, which ends with the client's."""
        return self._keep(await asyncio.open_unix_connection(path))

    def _keep(
        self, pair: tuple[asyncio.StreamReader, asyncio.StreamWriter]
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        task = asyncio.current_task()
        assert task is not None
        self._ends[task].append(pair[1])
        return pair

    async def _arrived(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        pair = asyncio.ensure_future(self._carried(reader, writer))
        self._pairs.add(pair)
        self._ends[pair] = [writer]
        pair.add_done_callback(self._gone)
        await asyncio.wait((pair,))

    async def _carried(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self.carry(reader, writer)
        except OSError:
            return

    def _gone(self, pair: asyncio.Task[None]) -> None:
        self._pairs.discard(pair)
        for end in self._ends.pop(pair):
            end.transport.abort()


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy bytes until the source ends."""
    while data := await reader.read(CHUNK):
        writer.write(data)
        await writer.drain()
