"""Lobby: the newest open public tables, or closed ones, cached for a second.

At most a few tables of one network are listed, and the read models are queried once a second at
most. An answer takes 64 KiB at most.

For each table a keyed digest of the network that opened it is stored, so that the bound holds on
every node and after a restart. The digest is an HMAC, under a key that is not in the database, of
an IPv4 address or of the /64 of an IPv6 address, which is what one customer gets. No address is
stored.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from ipaddress import IPv6Address, ip_address
from typing import Any

from dealer.backoff import Polls
from dealer.errors import DealerError
from dealer.eventlog import Log, ReadOnlyLog
from dealer.eventlog.keys import HouseKeys
from dealer.eventlog.services import add_openers
from dealer.game.names import NAME_MAX
from dealer.game.rules import PRACTICE, Rules
from dealer.projector.queries import LOBBY

DIGEST_BYTES = 16

EVERY_SECONDS = 1.0
"""Seconds between two writes."""

WAITING = 10_000
"""The most openers that wait while the database is unavailable; further ones are dropped."""


def network_of(address: str) -> bytes:
    """The network of an address, as bytes; equal for an IPv4 address and its IPv4-mapped form."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address.encode()
    if isinstance(parsed, IPv6Address):
        return parsed.packed[:8] if parsed.ipv4_mapped is None else parsed.ipv4_mapped.packed
    return parsed.packed


class Openers:
    """Collects the openers of new tables; `write` stores them.

    They are not events: after a crash that loses some, the lobby lists a few tables too many.
    """

    def __init__(self, log: Log, key: HouseKeys) -> None:
        self._log = log
        self._key = key
        self._waiting: dict[bytes, bytes] = {}

    def note(self, table: bytes, address: str) -> None:
        """Add the opener of `table`; ignored if `address` is empty."""
        if address and len(self._waiting) < WAITING:
            digest = self._key.command_digest(b"opener " + network_of(address))
            self._waiting[table] = digest[:DIGEST_BYTES]

    async def write(self) -> None:
        """Store the openers that were noted since the last call; raises DatabaseError."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, {}
        try:
            await self._log.run_when_idle(lambda connection: add_openers(connection, waiting))
        except DealerError:
            self._waiting = waiting | self._waiting
            raise

    async def run(self) -> None:
        """Call `write` every second until cancelled; after an error the openers are retried."""
        await Polls(self.write).run(EVERY_SECONDS)


LISTED = 100
"""The most tables that are listed: with names of 64 characters some 45 KiB of JSON."""

PER_NETWORK = 5
"""Default for how many of them one network may have opened."""

FRESH_SECONDS = 1.0
"""Seconds for which an answer is cached."""

PAGE = 500
"""Open tables that are read at a time."""

PAGES = 10
"""The most pages that are read until enough tables are found."""

_NEWEST = 2**63 - 1


class Lobby:
    """Queries the read models of `log`; concurrent calls share one query.

    `listed` is the query, LOBBY for open tables or FINISHED for closed ones.
    """

    def __init__(
        self,
        log: ReadOnlyLog,
        openers: Openers,
        *,
        per_network: int = PER_NETWORK,
        listed: str = LOBBY,
    ) -> None:
        self._log = log
        self._listed = listed
        self._openers = openers
        self._per_network = per_network
        self._query: asyncio.Task[list[dict[str, Any]]] | None = None
        self._answer: list[dict[str, Any]] = []
        self._stale_at = 0.0

    async def tables(self) -> list[dict[str, Any]]:
        """The public tables, the newest first."""
        loop = asyncio.get_running_loop()
        if self._query is None:
            if loop.time() < self._stale_at:
                return self._answer
            self._query = loop.create_task(self._read())
            self._query.add_done_callback(self._on_answer)
        return await asyncio.shield(self._query)

    async def _read(self) -> list[dict[str, Any]]:
        await self._openers.write()
        listed: list[dict[str, Any]] = []
        networks: Counter[bytes] = Counter()
        at, table = _NEWEST, ""
        for _ in range(PAGES):
            rows = await self._log.fetch(self._listed, (at, at, table, PAGE))
            for row in rows:
                members = dict(row._mapping)
                digest, rules = members.pop("digest"), members.pop("rules")
                given = {} if rules is None else json.loads(rules)
                if not _is_public(Rules.read(given)):
                    continue
                if digest is not None:
                    networks[digest] += 1
                    if networks[digest] > self._per_network:
                        continue
                members["name"] = members["name"] and members["name"][:NAME_MAX]
                listed.append(members | ({"practice": True} if PRACTICE in given else {}))
                if len(listed) == LISTED:
                    return listed
            if len(rows) < PAGE:
                break
            at, table = rows[-1].opened_at, rows[-1].table
        return listed

    def _on_answer(self, query: asyncio.Task[list[dict[str, Any]]]) -> None:
        self._query = None
        if not query.cancelled() and query.exception() is None:
            self._answer = query.result()
            self._stale_at = asyncio.get_running_loop().time() + FRESH_SECONDS


def _is_public(rules: Rules) -> bool:
    return rules.watched and rules.listed
