"""Broadcasts: the links to them, and how far each has come.

A table with the rule `broadcast` may be watched by a link that shows what each player has seen,
that many seconds after its event. The version of a `Broadcast` is the newest one that is old enough
by the server's clock, and never goes back. Its viewers are sent what follows from the events up to
there and nothing else: not how far the table is, who is connected, or who cosigned.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

from dealer.errors import BadRequest, BadToken, DatabaseDamaged, UnknownTable
from dealer.eventlog import EventRecord, Log
from dealer.eventlog import services as stored
from dealer.eventlog.services import HOST, StoredLink
from dealer.proof.tree import Tree
from dealer.service.clock import Clock
from dealer.service.commands.executor import CommandExecutor
from dealer.service.commands.table_lifecycle import TableLifecycle
from dealer.service.identity.service_keys import ServiceKeys
from dealer.service.identity.tokens import TokenKeys
from dealer.service.tables.event_reader import EventReader
from dealer.service.tables.live_table import LiveTable

SLICE = 256  # events that are read ahead, at most
POLL_SECONDS = 0.25  # until a table is looked at again of which everything is shown
LONGEST_WAIT = 60.0  # seconds until the clock is read again, which may have been set

NO_BROADCAST = (
    "There is no broadcast with this link: it is incomplete, of another table, or was taken back; "
    "ask the host of the table for a new one."
)


@dataclass(slots=True, eq=False)
class Broadcast:
    """One table's broadcast; `tree` has the leaves that are shown.

    `ahead` are the next events, which may not be shown yet; `ready` is set once all that is old
    enough was found.
    """

    live_table: LiveTable
    delay_ms: int
    tree: Tree = field(default_factory=Tree)
    ahead: deque[EventRecord] = field(default_factory=deque)
    ready: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def version(self) -> int:
        """The newest version that is shown; 0 before the broadcast has begun."""
        return self.tree.size


class Broadcasts:
    """The broadcasts of the tables in `log`; `clock` decides what is old enough."""

    def __init__(
        self,
        log: Log,
        lifecycle: TableLifecycle,
        reader: EventReader,
        executor: CommandExecutor,
        keys: ServiceKeys,
        tokens: TokenKeys,
        clock: Clock,
    ) -> None:
        self._log, self._lifecycle, self._reader = log, lifecycle, reader
        self._executor, self._keys, self._tokens = executor, keys, tokens
        self.clock = clock

    # Links

    async def link(self, live_table: LiveTable, owner: int) -> str:
        """The link of a service key, by its number, or of HOST; BadRequest without the rule."""
        if live_table.table.rules.broadcast is None:
            raise BadRequest(
                "This table was opened without the rule `broadcast`, so its hands are never shown; "
                "open another table with that rule."
            )
        link = StoredLink(live_table.id, owner, 1 + secrets.randbelow(2**62))
        number = await self._log.run_in_transaction(stored.add_broadcast_link, link)
        return self._tokens.of(live_table.table.key).broadcast(live_table.id, number)

    async def take_back(self, live_table: LiveTable, owner: int) -> bool:
        """Make the owner's link invalid, at every node within a second; whether there was one."""
        remove = stored.remove_broadcast_link
        return await self._log.run_in_transaction(remove, live_table.id, owner)

    async def find(self, table: str, link: str) -> tuple[LiveTable, StoredLink]:
        """The table that a link is of; BadToken if it is none of this table, or no longer."""
        try:
            live_table = await self._lifecycle.load(table)
        except UnknownTable:
            raise BadToken(NO_BROADCAST) from None
        number = self._tokens.of(live_table.table.key).broadcast_number(live_table.id, link)
        found = [one for one in await self.valid([live_table.id]) if one.number == number]
        if not found:
            raise BadToken(NO_BROADCAST)
        return live_table, found[0]

    async def valid(self, tables: Collection[bytes]) -> set[StoredLink]:
        """The links to these tables that are valid, as is the key that they were made with."""
        links = await stored.broadcast_links(self._log, tuple(tables))
        return {link for link in links if link.owner == HOST or self._keys.of_number(link.owner)}

    # Events

    async def due(self, broadcast: Broadcast) -> list[EventRecord]:
        """The next events that are old enough, which are shown from now on; none: all are shown.

        Raises what reading does.
        """
        live_table, ahead, due = broadcast.live_table, broadcast.ahead, list[EventRecord]()
        live_table.require_here()
        if live_table.committed < broadcast.version + len(ahead):
            raise DatabaseDamaged("The log was rewound to before what a broadcast has shown.")
        if not ahead:
            ahead += await self._reader.entries(live_table, broadcast.version, SLICE)
        oldest = self.clock() - broadcast.delay_ms
        while ahead and ahead[0].at <= oldest:
            due.append(ahead.popleft())
            broadcast.tree.add(due[-1].leaf.encode())
        return due

    def seconds_to_wait(self, broadcast: Broadcast) -> float:
        """How long it takes until the next event is old enough, or until there may be one."""
        if not broadcast.ahead:
            return POLL_SECONDS
        due = broadcast.ahead[0].at + broadcast.delay_ms - self.clock()
        return min(max(due, 1) / 1000, LONGEST_WAIT)

    def head(self, broadcast: Broadcast) -> str:
        """A signed head over what is shown, without cosignatures: they may be newer."""
        root = broadcast.tree.root()
        return self._executor.sign(broadcast.live_table, broadcast.version, root)
