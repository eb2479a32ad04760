"""Somebody who watches what other processes write to the tables that are played here."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from dealer.errors import DealerError
from dealer.eventlog import Log
from dealer.service.desk import Desk
from dealer.service.memory import Memory
from dealer.service.resident import Resident

LOOK_SECONDS = 1.0
"""How often the heads of the tables in use are compared with the log's."""


class Lookout:
    """Compares the tables in `memory` with the `log`, and lets `desk` take in what is new."""

    def __init__(self, log: Log, memory: Memory, desk: Desk) -> None:
        self._log = log
        self._memory = memory
        self._desk = desk
        self._hint = asyncio.Event()
        self._hinted: set[bytes] = set()

    def hinted(self, tables: set[bytes]) -> None:
        """Another process may have written to these tables: look at those in use, and soon."""
        self._hinted |= tables
        self._hint.set()

    async def look_around(self) -> None:
        """Take in what other processes write to tables that somebody here listens to; for ever.

        Every table in use is looked at once a second, a hinted one at once.
        """
        loop = asyncio.get_running_loop()
        due = loop.time() + LOOK_SECONDS
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._hint.wait()
            self._hint.clear()
            hinted, self._hinted = self._hinted, set()
            followed = [resident for resident in self._memory if resident.sessions]
            if loop.time() < due:
                followed = [resident for resident in followed if resident.id in hinted]
            else:
                due = loop.time() + LOOK_SECONDS
            try:
                await self.look_at(followed)
            except DealerError:
                continue
            except Exception as error:
                loop.call_exception_handler(
                    {"message": "looking at other processes' work failed", "exception": error}
                )

    async def look_at(self, followed: list[Resident]) -> None:
        """Take in what the log has of these tables, and they have not, or no more."""
        if not followed:
            return
        believed = [(resident, resident.committed) for resident in followed]
        heads = await self._log.heads(resident.id for resident in followed)
        for resident, committed in believed:
            if not committed <= heads.get(resident.id, 0) <= resident.committed:
                # Of a table that cannot be read its own guests are told; the others go on.
                with suppress(DealerError):
                    await self._desk.catch_up(resident)
