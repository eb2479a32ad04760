"""Broadcasts: tables as they were some time ago, and the links by which they are watched.

A table with the rule `broadcast` may be watched by a link that shows what each player has seen,
that many seconds after its event. For the gateway a `Broadcast` is a live table of its own, whose
`committed` is the newest version that is old enough by the server's clock, and never goes back. So
its subscribers are sent what follows from the events up to there and nothing else: not how far the
table is, who is connected, or who cosigned.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Collection
from dataclasses import dataclass, field
from hmac import compare_digest
from itertools import takewhile

from dealer.backoff import Polls
from dealer.errors import BadRequest, BadToken, DatabaseDamaged, DealerError, UnknownTable
from dealer.eventlog import EventRecord, Log, services
from dealer.eventlog.services import HOST, StoredLink
from dealer.game.events import CHECKPOINT_TYPES
from dealer.game.state import Table
from dealer.game.view import BROADCAST, Audience, Viewer
from dealer.service.clock import Clock
from dealer.service.commands.table_lifecycle import TableLifecycle
from dealer.service.identity.service_keys import ServiceKeys
from dealer.service.identity.tokens import TokenKeys
from dealer.service.reading.checkpoints import Checkpoints
from dealer.service.tables.event_reader import EventReader
from dealer.service.tables.execution import may_pass, report
from dealer.service.tables.live_table import CommitNotice, LiveTable, Notices

SLICE = 256  # events that are shown in one step of the loop, at most
TICK_SECONDS = 0.25  # between two looks at what is old enough, and at which links are valid
STALE_MS = 1000  # after which the answer which links are valid is not used

NO_BROADCAST = (
    "There is no broadcast with this link: it is incomplete, of another table, or was taken back; "
    "ask the host of the table for a new one."
)


@dataclass(slots=True, eq=False, kw_only=True)
class Broadcast(LiveTable):
    """What is shown of `source`; of its state it has only what readers of events need.

    The next event is of `next_at`, 0 if it was not read. `reading` is held while it is read, and
    `rewound` says whether the log may no longer have what was shown.
    """

    source: LiveTable
    audience: Viewer | Audience = BROADCAST
    next_at: int = 0
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    rewound: bool = False


@dataclass(slots=True, eq=False)
class Broadcasts:
    """The broadcasts of the tables in `log`; `clock` decides what is old enough."""

    log: Log
    lifecycle: TableLifecycle
    reader: EventReader
    checkpoints: Checkpoints
    notices: Notices
    keys: ServiceKeys
    tokens: TokenKeys
    clock: Clock
    watched: dict[StoredLink, Broadcast] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.notices.listen(self._on_notice)

    # Links

    async def link(self, live_table: LiveTable, owner: int) -> str:
        """The link of a service key, by its number, or of HOST; BadRequest without the rule."""
        if live_table.table.rules.broadcast is None:
            raise BadRequest(
                "This table was opened without the rule `broadcast`, so its hands are never shown; "
                "open another table with that rule."
            )
        new = StoredLink(live_table.id, owner, 1 + secrets.randbelow(2**62))
        return self._text(live_table, await self.log.run_in_transaction(services.add_link, new))

    async def take_back(self, live_table: LiveTable, owner: int) -> bool:
        """Make the owner's link invalid, at every node within a second; whether there was one."""
        return await self.log.run_in_transaction(services.remove_link, live_table.id, owner)

    async def find(self, table: str, text: str) -> Broadcast:
        """What a link shows; BadToken if it is none of this table, or no longer."""
        try:
            source = await self.lifecycle.load(table)
        except UnknownTable:
            raise BadToken(NO_BROADCAST) from None
        with source.held():  # or it leaves memory before a broadcast holds it
            for link in await self._valid([source.id]):
                if compare_digest(self._text(source, link).encode(), text.encode()):
                    if link not in self.watched:
                        self.watched[link] = Broadcast(source.id, source.table_id, source=source)
                        source.broadcasts.append(self.watched[link])
                    return self.watched[link]
        raise BadToken(NO_BROADCAST)

    async def _valid(self, tables: Collection[bytes]) -> set[StoredLink]:
        """The links to these tables that are valid, as is the key that they were made with."""
        links, of_key = await services.links(self.log, tuple(tables)), self.keys.of_number
        return {link for link in links if link.owner == HOST or of_key(link.owner)}

    def _text(self, live_table: LiveTable, link: StoredLink) -> str:
        return self.tokens.of(live_table.table.key).broadcast(live_table.id, link.number)

    # What is shown

    async def run(self) -> None:
        """Keep all that is watched up to date while its link is valid, until cancelled."""
        await Polls(self._tick).run(TICK_SECONDS)

    async def _tick(self) -> None:
        began = self.clock()  # read regularly, or a step forward counts as time that has passed
        for link in [link for link, each in self.watched.items() if not each.subscribers]:
            self._drop(link)
        watched = tuple(self.watched.items())
        valid = await self._valid({link.table for link, _ in watched}) if watched else ()
        if self.clock() - began > STALE_MS:
            return  # this process was frozen: a link may have been taken back meanwhile
        for link, broadcast in watched:
            try:
                if link not in valid:
                    raise BadToken(NO_BROADCAST)
                if not broadcast.reading.locked():  # else the others need not wait for this one
                    await self.advance(broadcast, once=True)
            except Exception as error:
                if not isinstance(error, DealerError):
                    report("showing a broadcast failed", error)
                if not may_pass(error):
                    self._drop(link)
                    broadcast.begin_reload()
                    broadcast.give_up(error)
                    self.notices.send(broadcast, CommitNotice([], [], reset=True))

    def _drop(self, link: StoredLink) -> None:
        broadcast = self.watched.pop(link)
        broadcast.source.broadcasts.remove(broadcast)

    def _on_notice(self, live_table: LiveTable, notice: CommitNotice) -> None:
        for broadcast in self.watched.values() if notice.reset else ():
            broadcast.rewound |= broadcast.source is live_table

    async def advance(self, broadcast: Broadcast, *, once: bool = False) -> None:
        """Show all that is old enough by now, or `once` a slice of it; raises what reading does."""
        async with broadcast.reading:
            while due := await self._due(broadcast):
                for entry in due:
                    broadcast.add_leaf(entry.leaf)
                broadcast.table.version = due[-1].version
                broadcast.loaded()
                signed = any(entry.type in CHECKPOINT_TYPES for entry in due)
                notes = [await self.checkpoints.head(broadcast)] if signed else []
                self.notices.send(broadcast, CommitNotice(due, notes))
                if once:
                    break  # the other broadcasts and links are not to wait for a long history
                await asyncio.sleep(0)

    async def _due(self, broadcast: Broadcast) -> list[EventRecord]:
        """The next events that are old enough."""
        source, shown = broadcast.source, broadcast.committed
        source.require_here()
        of = source.table
        broadcast.table = Table(
            shown, origin=of.origin, key=of.key, round_versions=of.round_versions
        )
        seconds = of.rules.broadcast
        oldest = self.clock() - 1000 * (seconds or 0)
        if seconds is None or (broadcast.next_at > oldest and not broadcast.rewound):
            return []
        broadcast.next_at, broadcast.rewound = 0, False  # what fails or changes meanwhile is redone
        again = min(shown, 1)  # the event that was shown last: another one may be there now
        entries = await self.reader.entries(source, shown - again, SLICE + again)
        if again and (not entries or entries.pop(0).leaf != broadcast.leaf):
            lost = DatabaseDamaged("The log no longer has what a broadcast has shown.")
            lost.logged = True  # as the log that was rewound, when that is noticed
            raise lost
        due = list(takewhile(lambda entry: entry.at <= oldest, entries))
        broadcast.next_at = entries[len(due)].at if len(due) < len(entries) else 0
        return due
