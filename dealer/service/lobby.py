"""The tables that are open to look at, for however many ask at the same time."""

from __future__ import annotations

import asyncio
from typing import Any

from dealer.eventlog import Reading
from dealer.projector.lobby import LOBBY

LISTED = 100
"""How many tables are listed at the most."""


class Lobby:
    """Asks the read models, once at a time: who comes meanwhile has that answer, too."""

    def __init__(self, log: Reading) -> None:
        self._log = log
        self._asking: asyncio.Task[list[dict[str, Any]]] | None = None

    async def tables(self) -> list[dict[str, Any]]:
        """Open tables, the newest first, as the read models have them."""
        if self._asking is None:
            self._asking = asyncio.get_running_loop().create_task(self._ask())
            self._asking.add_done_callback(self._asked)
        return await asyncio.shield(self._asking)

    async def _ask(self) -> list[dict[str, Any]]:
        return [dict(row._mapping) for row in await self._log.fetch(LOBBY, (LISTED,))]

    def _asked(self, asking: asyncio.Task[list[dict[str, Any]]]) -> None:
        self._asking = None
        if not asking.cancelled():
            asking.exception()  # told to who still waits; nobody may
