"""Who is told what, and when: one cursor for each subscription, and one way to make frames.

A subscription that is at the head is written to in the callback that follows the commit. One that
is behind (it resumes, or its guest reads slowly) has a task that reads the log from its cursor, and
goes back to the head when it is there. One whose cursor is past the head was told what the log
holds no more, for it was put back to an older state: that one gets the table anew.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

from dealer.errors import DatabaseAway, DatabaseLocked, Overloaded, TableArchived
from dealer.game.view import SPECTATOR, Viewer
from dealer.gateway import results as r
from dealer.gateway import wire
from dealer.gateway.limits import Limits
from dealer.gateway.metrics import Metrics
from dealer.gateway.presence import Presence
from dealer.gateway.seldom import Seldom
from dealer.gateway.subscription import Outlet, Subscription
from dealer.gateway.turns import Turns, metered
from dealer.service import Entry, Published, Resident, Service
from dealer.service.record import CHECKPOINTED

TRY_AGAIN_LATER = 1013
SUPERSEDED = 4409

NOWHERE = 2**63
"""The cursor of one who was told what the log does not hold any more: past any head."""

RETRY_SECONDS = 0.5
"""About how long one that is behind waits before the log is asked again that was away."""

_LEFT = '"type":"SeatLeft"'
_CHECKPOINTED = tuple(f'"type":"{event.__name__}"' for event in CHECKPOINTED)

log = logging.getLogger(__name__)


class Pump:
    """Brings every event to every subscription: once, in order, as its viewer may see it."""

    def __init__(
        self,
        service: Service,
        *,
        limits: Limits,
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        self._service = service
        self._clock = clock
        self._limits = limits
        self._metrics = metrics
        self._tasks: set[asyncio.Task[Any]] = set()
        self._seldom = Seldom(log, clock=clock)
        self.turns = Turns(clock)
        self.presence = Presence(service.presence, now=service.now)
        service.publish = self.publish

    # Subscriptions

    def subscribe(self, outlet: Outlet, resident: Resident) -> Subscription:
        """A subscription that is told nothing before `start`, but keeps its table in memory."""
        subscription = Subscription(outlet, resident)
        self._service.subscribe(resident, subscription)
        self.presence.changed(resident)
        return subscription

    def take_seat(self, subscription: Subscription, *, seat: int, since: int) -> None:
        """Look from a seat from now on; who held the same seat before is sent away."""
        for other in list(subscription.resident.sessions):
            same = other.seat == seat and other.since == since
            if same and other.outlet is not subscription.outlet:
                other.outlet.end(SUPERSEDED, "a newer connection took this seat")
        subscription.seat, subscription.since = seat, since
        self.presence.changed(subscription.resident)

    def stop(self, subscription: Subscription) -> None:
        """Tell nothing until `start` again."""
        subscription.live = False
        if subscription.task is not None:
            subscription.task.cancel()
            subscription.task = None

    def end(self, subscription: Subscription) -> None:
        self.stop(subscription)
        subscription.ended = True
        self._service.unsubscribe(subscription.resident, subscription)
        self.presence.changed(subscription.resident)

    def start(self, subscription: Subscription, *, after: int, say_resumed: bool = False) -> None:
        """Tell every event after version `after`, then the live ones."""
        self.stop(subscription)
        if subscription.ended:
            return
        if subscription.seat is not None and not subscription.still_sits():
            self._lose_seat(subscription)  # while the answer was being made
        subscription.started = True
        self.presence.changed(subscription.resident)
        subscription.cursor = after
        self._fall_behind(subscription, say_resumed=say_resumed)

    @contextmanager
    def stopped(self, subscription: Subscription) -> Iterator[None]:
        """Tell nothing while a new beginning is looked for; without one, go on as before."""
        self.stop(subscription)
        try:
            yield
        except Exception:
            if subscription.started:
                self.start(subscription, after=subscription.cursor)
            raise

    async def bring(self, subscription: Subscription, *, upto: int) -> None:
        """Send a stopped subscription that was started before what it lacks up to a version."""
        while subscription.started and not subscription.ended and subscription.cursor < upto:
            await self._send_chunk(subscription, upto=upto)

    # After a commit

    def publish(self, resident: Resident, news: Published) -> None:
        """Write an append's events, and then its checkpoints, to all who are at the head."""
        if news.reset:
            self._go_back(resident)
            return
        entries = news.entries
        if entries:
            self._metrics.appended.observe(len(entries))
        if not resident.sessions:
            return
        begun = self._clock()
        self._publish(resident, news)
        self.presence.published(resident, entries)
        self._metrics.told.observe(self._clock() - begun)

    def _publish(self, resident: Resident, news: Published) -> None:
        entries = news.entries
        notes = b"".join(self._note_frame(resident, size, note) for size, note in news.notes)
        if not entries:
            for subscription in tuple(resident.sessions):
                if subscription.live and not subscription.outlet.paused:
                    subscription.outlet.write(notes)
            return
        before, last = entries[0].version - 1, entries[-1].version
        left = seats_left(entries)
        owners = {entry.seat for entry in entries} - {None}
        common = wire.text_frame(wire.events(entries, seat=None, since=0))
        common_and_notes = common + notes
        for subscription in tuple(resident.sessions):
            if not subscription.live:
                continue
            if subscription.outlet.paused or subscription.cursor != before:
                self._metrics.slowed += 1
                self._fall_behind(subscription)
                continue
            gone = left.get(subscription.seat or 0, 0)
            if subscription.since < gone < last:
                # Several appends, another process's: the rest may be who sat there next's.
                self._fall_behind(subscription)
                continue
            if subscription.seat in owners:
                self._write_own(subscription, entries, notes)
            else:
                subscription.outlet.write(common_and_notes)
            subscription.cursor = last
            if gone > subscription.since:
                self._lose_seat(subscription)

    def _write_own(
        self, subscription: Subscription, entries: Sequence[Entry], notes: bytes
    ) -> None:
        payload = wire.events(entries, seat=subscription.seat, since=subscription.since)
        subscription.outlet.write(wire.text_frame(payload) + notes)

    def _lose_seat(self, subscription: Subscription) -> None:
        """Its player got up: from here on it sees what a spectator sees, if one may watch."""
        subscription.seat, subscription.since = None, 0
        if not (subscription.host or subscription.resident.table.rules.watched):
            self.end(subscription)

    def _go_back(self, resident: Resident) -> None:
        """What was told is in the log no more: whoever was told begins anew, or is sent away."""
        if not resident.archived:
            told = {"table": resident.table_id, "version": resident.committed}
            log.error("the log was put back", extra={"told": told})
        for subscription in tuple(resident.sessions):
            if not resident.committed:
                subscription.outlet.end(TRY_AGAIN_LATER, "the log has this table no more")
            elif subscription.started:
                subscription.cursor = NOWHERE
                if subscription.live or subscription.task is not None:
                    self.stop(subscription)
                    self._fall_behind(subscription)

    # One that is behind

    def _fall_behind(self, subscription: Subscription, *, say_resumed: bool = False) -> None:
        subscription.live = False
        work = partial(self._catch_up, subscription, say_resumed)
        subscription.task = self.keep(metered(work, subscription.outlet.budget.cpu))

    async def _catch_up(self, subscription: Subscription, say_resumed: bool) -> None:
        while True:
            try:
                await self._send_missing(subscription)
                break
            except (DatabaseAway, DatabaseLocked, Overloaded):
                # They keep their connection; and not all read at once when the database is back.
                loop = asyncio.get_running_loop()
                await asyncio.sleep(RETRY_SECONDS * (0.5 + loop.time() * 1e6 % 1))
            except TableArchived:
                subscription.outlet.end(TRY_AGAIN_LATER, "this table was closed and archived")
                return
            except Exception as error:
                table = subscription.resident.table_id
                self._seldom.say_error(error, "a table could not be read from the log", table=table)
                subscription.outlet.end(TRY_AGAIN_LATER, "the log cannot be read just now")
                return
        if subscription.ended:
            return
        if say_resumed:
            self._say_resumed(subscription)
        # No await since the cursor was compared: nothing can have been committed meanwhile.
        subscription.live = True
        subscription.task = None

    async def _send_missing(self, subscription: Subscription) -> None:
        """Bring it to the head; what was sent before an error is not sent again."""
        subscription.resident.require_here()
        if subscription.cursor > subscription.resident.committed:
            await self._send_reset(subscription)
        await self._send_awaited_note(subscription)
        while subscription.cursor < subscription.resident.committed and not subscription.ended:
            await self._send_chunk(subscription)

    async def _send_chunk(self, subscription: Subscription, *, upto: int | None = None) -> None:
        if not await subscription.outlet.writable():
            self.end(subscription)
            return
        # A client that does not read keeps nobody of its address waiting for a turn.
        async with self.turns.turn(subscription.outlet.budget):
            await self._send_next(subscription, upto)

    async def _send_next(self, subscription: Subscription, upto: int | None) -> None:
        resident, after = subscription.resident, subscription.cursor
        if subscription.ended or after >= resident.committed:
            return
        limit = self._limits.chunk if upto is None else min(self._limits.chunk, upto - after)
        entries = await self._service.entries(resident, after, limit)
        since = subscription.since
        left = seats_left(one for one in entries if one.version > since).get(subscription.seat or 0)
        if left is not None:
            # What comes later may concern whoever sat there next.
            entries = [entry for entry in entries if entry.version <= left]
        last = entries[-1].version
        notes: dict[int, str] = {}
        if any(_is_checkpointed(entry.leaf) for entry in entries):
            notes = dict(await self._service.log.checkpoints(resident.id, after=after))
        subscription.outlet.write(self._frames(subscription, entries, notes))
        subscription.cursor = last
        if left is not None:
            self._lose_seat(subscription)

    async def _send_reset(self, subscription: Subscription) -> None:
        """The table anew, without a proof: there is none from what the log does not hold."""
        if subscription.seat is not None and not subscription.still_sits():
            self._lose_seat(subscription)
        if subscription.ended:
            return
        seat = subscription.seat
        viewer = SPECTATOR if seat is None else Viewer(seat, subscription.since)
        async with self.turns.turn(subscription.outlet.budget):
            seen = await self._service.snapshot(subscription.resident, viewer)
        if not await subscription.outlet.writable():
            self.end(subscription)
            return
        said = r.Reset(reset=True, table=subscription.resident.table_id, **seen._asdict())
        subscription.outlet.write(wire.text_frame(wire.notification("snapshot", said)))
        subscription.cursor = seen.version
        self._metrics.resets += 1

    def _say_resumed(self, subscription: Subscription) -> None:
        said = r.CaughtUp(table=subscription.resident.table_id, version=subscription.cursor)
        subscription.outlet.write(wire.text_frame(wire.notification("resumed", said)))

    def _frames(
        self, subscription: Subscription, entries: Sequence[Entry], notes: dict[int, str]
    ) -> bytes:
        """Frames with each checkpoint behind the events that it covers."""
        frames, run = [], []
        for entry in entries:
            run.append(entry)
            note = notes.get(entry.version)
            if note is not None or entry is entries[-1]:
                payload = wire.events(run, seat=subscription.seat, since=subscription.since)
                frames.append(wire.text_frame(payload))
                run = []
            if note is not None:
                frames.append(self._note_frame(subscription.resident, entry.version, note))
        return b"".join(frames)

    async def _send_awaited_note(self, subscription: Subscription) -> None:
        """C1 once more while a shuffle waits for reveals: no client reveals before it holds it."""
        round_ = subscription.resident.table.round
        size = 0 if round_ is None or round_.shuffle is None else round_.shuffle.closed_version
        if 0 < size <= subscription.cursor:
            resident = subscription.resident
            found = await self._service.log.checkpoints(resident.id, after=size - 1, limit=1)
            if found and found[0][0] == size:
                subscription.outlet.write(self._note_frame(resident, size, found[0][1]))

    def _note_frame(self, resident: Resident, size: int, note: str) -> bytes:
        said = r.Checkpoint(table=resident.table_id, size=size, note=note)
        return wire.text_frame(wire.notification("checkpoint", said))

    # Tasks

    def keep(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run it; a task that nobody refers to may be collected before it is done."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        self.presence.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


def seats_left(entries: Iterable[Entry]) -> dict[int, int]:
    """The seats whose players got up in these entries, each with the version of it."""
    left: dict[int, int] = {}
    for entry in entries:
        if _LEFT in entry.leaf:
            leaf = json.loads(entry.leaf)
            if leaf["type"] == "SeatLeft":  # and not a rule that is called so
                left.setdefault(leaf["public"]["seat"], entry.version)
    return left


def _is_checkpointed(leaf: str) -> bool:
    return any(kind in leaf for kind in _CHECKPOINTED)
