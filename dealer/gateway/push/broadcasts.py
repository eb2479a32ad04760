"""Broadcast viewers: sends those who watch a table by a broadcast link what becomes old enough.

The frame of new events is made once for all viewers of a table. One that does not read is
disconnected, and resumes. A viewer is no subscriber of its table: what is sent to those, and
presence, neither reaches it nor says of it.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from dealer.backoff import Polls
from dealer.errors import DatabaseDamaged, DealerError, TableArchived
from dealer.eventlog import EventRecord
from dealer.eventlog.services import StoredLink
from dealer.game.events import CHECKPOINT_TYPES
from dealer.game.view import BROADCAST
from dealer.gateway.close_codes import CloseCode
from dealer.gateway.observe.log_throttle import LogThrottle
from dealer.gateway.push.backlog import RETRY_SECONDS, checkpoint_frame
from dealer.gateway.rate_limit.cpu_time import LongAnswers
from dealer.gateway.transport import Transport
from dealer.gateway.wire.protocol import event_frame
from dealer.service import LiveTable, Service
from dealer.service.commands.background_tasks import BackgroundTasks
from dealer.service.reading.broadcasts import Broadcast

POLL_SECONDS = 0.5  # between two polls of the links: one that was taken back ends within a second


@dataclass(slots=True, eq=False)
class BroadcastViewer:
    """One connection that watches a broadcast; `live` once it was sent all up to its version."""

    transport: Transport
    broadcast: Broadcast
    link: StoredLink
    live: bool = False


class BroadcastViewers:
    """The viewers at this node, by the broadcast that they watch."""

    def __init__(
        self,
        service: Service,
        long_answers: LongAnswers,
        tasks: BackgroundTasks,
        log_throttle: LogThrottle,
        chunk: int,
    ) -> None:
        self._service, self._broadcasts = service, service.broadcasts
        self._long_answers, self._tasks, self._chunk = long_answers, tasks, chunk
        self._log_throttle = log_throttle
        self._viewers: dict[Broadcast, set[BroadcastViewer]] = {}
        self._works: dict[Broadcast, asyncio.Task[None]] = {}

    async def run(self) -> None:
        """End the connections whose link is no longer valid, until cancelled."""
        await Polls(self._poll).run(POLL_SECONDS)

    async def _poll(self) -> None:
        self._broadcasts.clock()  # read regularly, or a step forward counts as time that has passed
        if not self._viewers:
            return
        valid = await self._broadcasts.valid([each.live_table.id for each in self._viewers])
        for viewer in [each for viewers in self._viewers.values() for each in viewers]:
            if viewer.link not in valid:
                reason = "this broadcast link was taken back"
                viewer.transport.close_with(CloseCode.KEY_REVOKED, reason)

    def add(self, transport: Transport, live_table: LiveTable, link: StoredLink) -> BroadcastViewer:
        """A viewer that is sent nothing before `start`; the broadcast goes on while it has any."""
        broadcast = next((each for each in self._viewers if each.live_table is live_table), None)
        if broadcast is None:
            broadcast = Broadcast(live_table, 1000 * (live_table.table.rules.broadcast or 0))
            live_table.holds += 1
            self._viewers[broadcast] = set()
            self._works[broadcast] = self._tasks.start(self._keep_up(broadcast))
        viewer = BroadcastViewer(transport, broadcast, link)
        self._viewers[broadcast].add(viewer)
        return viewer

    def remove(self, viewer: BroadcastViewer) -> None:
        """Send it nothing more; the broadcast ends with its last viewer."""
        broadcast, viewers = viewer.broadcast, self._viewers.get(viewer.broadcast)
        if viewers is None:
            return
        viewers.discard(viewer)
        if not viewers:
            del self._viewers[broadcast]
            self._works.pop(broadcast).cancel()
            broadcast.live_table.holds -= 1

    async def start(self, viewer: BroadcastViewer, *, after: int) -> None:
        """Send the events after version `after`, now and as they become old enough."""
        broadcast, transport = viewer.broadcast, viewer.transport
        while after < broadcast.version and await transport.drained():
            limit = min(self._chunk, broadcast.version - after)
            try:
                async with self._long_answers.permit(transport.budget):
                    entries = await self._service.reader.entries(broadcast.live_table, after, limit)
            except DealerError as error:  # it was answered already
                transport.close_with(CloseCode.TRY_AGAIN_LATER, str(error))
                return
            transport.write(event_frame(entries, BROADCAST))
            after = entries[-1].version
        # No await since the versions were compared: nothing can have been published meanwhile.
        viewer.live = True

    async def _keep_up(self, broadcast: Broadcast) -> None:
        while True:
            try:
                while due := await self._broadcasts.due(broadcast):
                    self._publish(broadcast, due)
                    await asyncio.sleep(0)
                wait = self._broadcasts.seconds_to_wait(broadcast)
                broadcast.ready.set()
            except Exception as error:
                wait, table = RETRY_SECONDS, broadcast.live_table.table_id
                self._log_throttle.say_error(error, "broadcast not read", table=table)
                if isinstance(error, TableArchived | DatabaseDamaged):
                    break
            await asyncio.sleep(wait)
        for viewer in tuple(self._viewers[broadcast]):
            reason = "the log cannot be read at the moment"
            viewer.transport.close_with(CloseCode.TRY_AGAIN_LATER, reason)
            self.remove(viewer)

    def _publish(self, broadcast: Broadcast, entries: list[EventRecord]) -> None:
        live = [viewer for viewer in self._viewers.get(broadcast, ()) if viewer.live]
        if not live:
            return
        frames, last = event_frame(entries, BROADCAST), entries[-1].version
        if any(entry.type in CHECKPOINT_TYPES for entry in entries):
            note = self._broadcasts.head(broadcast)
            frames += checkpoint_frame(broadcast.live_table.table_id, last, note)
        for viewer in live:
            if viewer.transport.paused:
                reason = "the events of the broadcast were not read: reconnect, and resume"
                viewer.transport.close_with(CloseCode.TOO_SLOW, reason)
            else:
                viewer.transport.write(frames)
