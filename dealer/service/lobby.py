"""Lobby: the newest open tables that anybody may watch, cached for a second.

However many tables one network opens, a few of them are listed; and however many clients ask, the
read models are asked once a second. An answer takes 64 KiB at the most.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from typing import Any

from dealer.eventlog import Reading
from dealer.game.names import NAME_MAX
from dealer.game.rules import Rules
from dealer.projector.lobby import LOBBY
from dealer.service.opener import Openers

LISTED = 100
"""How many tables are listed at the most: with names of 64 characters some 45 KiB of JSON."""

PER_NETWORK = 5
"""How many of them one network may have opened, by default."""

FRESH_SECONDS = 1.0
"""How long an answer is given to those who ask later."""

PAGE = 500
PAGES = 10
"""How many open tables are read at a time, and how often, until enough are found to be listed."""

_NEWEST = 2**63 - 1


class Lobby:
    """Asks the read models of `log`; clients that ask at the same time share the answer."""

    def __init__(self, log: Reading, openers: Openers, *, per_network: int = PER_NETWORK) -> None:
        self._log = log
        self._openers = openers
        self._per_network = per_network
        self._asking: asyncio.Task[list[dict[str, Any]]] | None = None
        self._answer: list[dict[str, Any]] = []
        self._stale_at = 0.0

    async def tables(self) -> list[dict[str, Any]]:
        """Open tables, the newest first, as the read models have them."""
        loop = asyncio.get_running_loop()
        if self._asking is None:
            if loop.time() < self._stale_at:
                return self._answer
            self._asking = loop.create_task(self._ask())
            self._asking.add_done_callback(self._asked)
        return await asyncio.shield(self._asking)

    async def _ask(self) -> list[dict[str, Any]]:
        await self._openers.write()
        listed: list[dict[str, Any]] = []
        networks: Counter[bytes] = Counter()
        at, table = _NEWEST, ""
        for _ in range(PAGES):
            rows = await self._log.fetch(LOBBY, (at, at, table, PAGE))
            for row in rows:
                one = dict(row._mapping)
                digest, rules = one.pop("digest"), one.pop("rules")
                if rules is not None and not Rules.read(json.loads(rules)).watched:
                    continue
                if digest is not None:
                    networks[digest] += 1
                    if networks[digest] > self._per_network:
                        continue
                listed.append(one | {"name": one["name"] and one["name"][:NAME_MAX]})
                if len(listed) == LISTED:
                    return listed
            if len(rows) < PAGE:
                break
            at, table = rows[-1].opened_at, rows[-1].table
        return listed

    def _asked(self, asking: asyncio.Task[list[dict[str, Any]]]) -> None:
        self._asking = None
        if not asking.cancelled() and asking.exception() is None:
            self._answer = asking.result()
            self._stale_at = asyncio.get_running_loop().time() + FRESH_SECONDS
