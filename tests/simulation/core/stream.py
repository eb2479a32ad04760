"""Streams: what the gateway does for a subscription, without frames.

A stream has a cursor. It is live where that is at the table's version, and otherwise reads the
events between the two, in chunks, from memory or the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dealer.errors import DatabaseLocked, DatabaseUnavailable, DealerError, Overloaded
from dealer.eventlog import EventRecord
from dealer.eventlog.nodes import Attendance
from dealer.game.view import SPECTATOR
from dealer.service.tables.live_table import CommitNotice, LiveTable

if TYPE_CHECKING:
    from tests.simulation.core.actor import Actor
    from tests.simulation.core.node import CoreNode

PAST_ANY_VERSION = 2**63


class Stream:
    """An actor's connection to a node, for the events of one table."""

    def __init__(self, actor: Actor, node: CoreNode, live_table: LiveTable, number: int) -> None:
        self.actor = actor
        self.node = node
        self.live_table = live_table
        self.cursor = 0
        self.live = False
        self.ended = False
        self._number = number
        self._task: asyncio.Task[None] | None = None

    def __hash__(self) -> int:
        return self._number

    def start(self, after: int) -> None:
        """Deliver every event after version `after`."""
        assert self.node.service is not None
        self.node.service.subscribe(self.live_table, self)
        self._report()
        self.cursor = after
        self._catch_up()

    def end(self) -> None:
        """Deliver nothing more, and release the table."""
        if self.ended:
            return
        self.ended, self.live = True, False
        if self._task is not None:
            self._task.cancel()
        if self.node.service is not None:
            self.node.service.unsubscribe(self.live_table, self)
            self._report()
        self.actor.stream_ended(self)

    def publish(self, notice: CommitNotice) -> None:
        """What a commit made public."""
        if notice.reset:
            self.cursor = PAST_ANY_VERSION
            self._catch_up()
        elif notice.entries and self.live:
            if notice.entries[0].version != self.cursor + 1 and not self.actor.world.restores:
                self.actor.world.fault(
                    f"{self.node.name} publishes version {notice.entries[0].version} to a stream "
                    f"that has {self.cursor}"
                )
            self._deliver(notice.entries)

    def _deliver(self, entries: Sequence[EventRecord]) -> None:
        for entry in entries:
            if entry.version != self.cursor + 1 and not self.actor.world.restored_while_running:
                self.actor.world.fault(
                    f"{self.actor.name}'s stream has version {entry.version} after {self.cursor}"
                )
            self.cursor = entry.version
            self.actor.world.witness.delivered(self.live_table.table_id, entry)
        self.actor.received(self.live_table.table_id, entries)

    def _report(self) -> None:
        """Say which seats are connected here, as the gateway does."""
        assert self.node.service is not None
        here: set[Any] = {
            each.actor.holder or (0, 0)
            for each in self.live_table.subscribers
            if each.actor.table == self.live_table.table_id
        }
        subscribers = self.live_table.subscribers
        shown = Attendance(frozenset((seat, at) for seat, at in here)) if subscribers else None
        self.node.service.presence.report(self.live_table, shown)

    def _catch_up(self) -> None:
        self.live = False
        if self._task is not None:
            self._task.cancel()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        while not self.ended:
            try:
                await self._read()
            except (DatabaseUnavailable, DatabaseLocked, Overloaded):
                await asyncio.sleep(0.3)
            except DealerError as error:
                self.actor.world.seen(f"stream {type(error).__name__}")
                self.end()
            else:
                self.live = True  # since the cursor was compared nothing can have been committed
                self._task = None
                return

    async def _read(self) -> None:
        live_table, service = self.live_table, self.node.service
        assert service is not None
        live_table.require_here()
        if self.cursor > live_table.committed:
            if not live_table.committed:
                self.end()
                return
            snapshot = await service.checkpoints.snapshot(live_table, SPECTATOR)
            self.cursor = snapshot.version
        while self.cursor < live_table.committed and not self.ended:
            chunk = self.actor.world.plan.settings["chunk"]
            entries = await service.reader.entries(live_table, self.cursor, chunk)
            self._deliver(entries)
