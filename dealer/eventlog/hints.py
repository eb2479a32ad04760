"""A tap on the shoulder between nodes: something was written to these tables, go and look.

On PostgreSQL only, and only a hint: it may be lost, doubled or late, for who polls the heads of the
tables in use misses nothing. It is sent after the commit, on a connection of its own (NOTIFY takes
a lock of the whole server at its commit), the first at once and then at most 20 a second; another
connection listens.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from logging import getLogger
from typing import TYPE_CHECKING, Any

from dealer.eventlog.server import Server

if TYPE_CHECKING:
    import asyncpg

CHANNEL = "dealer_appended"
PAUSE_SECONDS = 0.05
RETRY_SECONDS = 1.0
_IDS = 200  # of 32 hex digits each: a payload has less than 8,000 bytes
_TELL = "SELECT pg_notify($1, p) FROM unnest($2::text[]) AS p"

_log = getLogger("dealer.eventlog")


class Hints:
    """Tells other nodes of appends, and calls `heard` with the tables of theirs, on the loop."""

    def __init__(self, server: Server, heard: Callable[[set[bytes]], None]) -> None:
        self._server = server
        self._heard = heard
        self._pending: set[bytes] = set()
        self._wanted = asyncio.Event()
        self._own = 0
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._again(work)) for work in (self._tell, self._listen)]

    def tell(self, tables: Iterable[bytes]) -> None:
        """These tables were appended to; the others are told soon."""
        self._pending.update(tables)
        if self._pending:
            self._wanted.set()

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _again(self, work: Callable[[asyncpg.Connection[Any]], Any]) -> None:
        while True:
            try:
                connection = await self._server.connect()
            except Exception as error:
                _log.debug("no hints", extra={"told": {"error": type(error).__name__}})
            else:
                try:
                    await work(connection)
                except Exception as error:
                    _log.debug("hints broke off", extra={"told": {"error": type(error).__name__}})
                finally:
                    connection.terminate()
            # What was to be told meanwhile is found by those who poll.
            self._pending.clear()
            await asyncio.sleep(RETRY_SECONDS)

    async def _tell(self, connection: asyncpg.Connection[Any]) -> None:
        self._own = connection.get_server_pid()
        while True:
            await self._wanted.wait()
            self._wanted.clear()
            ids = [table.hex() for table in self._pending]
            self._pending.clear()
            texts = ["".join(ids[at : at + _IDS]) for at in range(0, len(ids), _IDS)]
            await connection.execute(_TELL, CHANNEL, texts)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _listen(self, connection: asyncpg.Connection[Any]) -> None:
        lost = asyncio.Event()
        connection.add_termination_listener(lambda _: lost.set())
        await connection.add_listener(CHANNEL, self._on_hint)
        await lost.wait()

    def _on_hint(self, connection: object, pid: int, channel: str, text: str) -> None:
        if pid == self._own:
            return
        # Whoever may connect may notify: what is no list of tables is nobody's hint.
        with suppress(ValueError):
            ids = bytes.fromhex(text)
            self._heard({ids[at : at + 16] for at in range(0, len(ids), 16)})
