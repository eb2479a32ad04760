"""Broadcaster: pushes every event to every subscription, once and in order.

A live subscription, whose cursor is at the table's version, is written to in the callback of the
commit (`publish`). One with a backlog (it resumes, or its client reads slowly) has a task that
reads the log from its cursor, and is live again when it is up to date. After the log was restored
from an older backup a cursor may be past the table's version: that subscription is sent a snapshot.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, get_args

from dealer.backoff import around
from dealer.errors import (
    DatabaseLocked,
    DatabaseUnavailable,
    Overloaded,
    TableArchived,
    Unavailable,
)
from dealer.game.events import CHECKPOINT_TYPES, SeatGivenUp
from dealer.game.state import SeatHolder
from dealer.game.view import SPECTATOR, Viewer
from dealer.gateway.close_codes import CloseCode
from dealer.gateway.limits import Limits
from dealer.gateway.observe.log_throttle import LogThrottle
from dealer.gateway.observe.metrics import Metrics
from dealer.gateway.push.absence import Absences
from dealer.gateway.push.membership import Membership, Subscription, Transport
from dealer.gateway.push.presence import SEAT_TYPES, Presence
from dealer.gateway.rate_limit.cpu_time import Turns, metered
from dealer.gateway.wire import protocol as wire
from dealer.gateway.wire import results as r
from dealer.service import CommitNotice, EventRecord, LiveTable, Service

RETRY_SECONDS = 0.5
"""About how long a task waits before it reads an unavailable database again."""

PAST_ANY_VERSION = 2**63
"""The cursor of a subscription that was sent events which the log no longer holds."""

_SEAT_GIVEN_UP = frozenset(kind.__name__ for kind in get_args(SeatGivenUp))

log = logging.getLogger(__name__)


# Frames


def event_frame(entries: Sequence[EventRecord], viewer: Viewer) -> bytes:
    """The frame with the events of one append, in their order, as `viewer` may see them.

    An event is its leaf unchanged, plus the private face that it shows to the viewer's seat.
    """
    seat, since = (None, 0) if viewer is None else viewer
    texts: list[str] = []
    for entry in entries:
        # `view.may_see`, without the call: every event passes here, for each of its views.
        if seat is not None and entry.seat == seat and since < entry.version:
            texts.append(f'{entry.leaf[:-1]},"private":{entry.private}}}')
        else:
            texts.append(entry.leaf)
    if len(texts) == 1:
        payload = f'{{"jsonrpc":"2.0","method":"event","params":{texts[0]}}}'.encode()
    else:
        listed = ",".join(texts)
        payload = f'{{"jsonrpc":"2.0","method":"events","params":{{"list":[{listed}]}}}}'.encode()
    size = len(payload)
    return (wire.HEADS[size] if size < len(wire.HEADS) else wire.frame_head(size)) + payload


def checkpoint_frame(table: str, size: int, note: str) -> bytes:
    notice = r.Checkpoint(table=table, size=size, note=note)
    return wire.text_frame(wire.notification("checkpoint", notice))


def seats_left(entries: Iterable[EventRecord]) -> dict[int, int]:
    """The seats that were given up in these events, each with the first version of that."""
    left: dict[int, int] = {}
    for entry in entries:
        if entry.type in _SEAT_GIVEN_UP:
            left.setdefault(json.loads(entry.leaf)["public"]["seat"], entry.version)
    return left


# Subscriptions


class Broadcaster:
    """Pushes the events of all tables to their subscriptions, each as its viewer may see them."""

    def __init__(
        self,
        service: Service,
        *,
        limits: Limits,
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        self._service = service
        self._limits = limits
        self._metrics = metrics
        self._tasks: set[asyncio.Task[Any]] = set()
        self._log_throttle = LogThrottle(log, clock=clock)
        self.turns = Turns(clock)
        self.absences = Absences(service, clock=clock)
        self.presence = Presence(service.presence, self.absences, now=service.now)
        service.on_notice(self.publish)

    # Subscriptions

    def subscribe(self, transport: Transport, membership: Membership) -> Subscription:
        """A subscription that receives nothing before `start`, but keeps its table in memory."""
        subscription = Subscription(transport, membership)
        self._service.subscribe(subscription.live_table, subscription)
        self.presence.changed(subscription.live_table)
        return subscription

    def take_seat(self, subscription: Subscription, holder: SeatHolder) -> None:
        """Show this player's private faces from now on; close the seat's other connection."""
        for other in list(subscription.live_table.subscribers):
            if other.viewer == holder and other.transport is not subscription.transport:
                other.transport.close_with(
                    CloseCode.SUPERSEDED, "a newer connection took this seat"
                )
        subscription.viewer = holder
        self.presence.changed(subscription.live_table)

    def stop(self, subscription: Subscription) -> None:
        """Push nothing until the next `start`."""
        subscription.live = False
        if subscription.task is not None:
            subscription.task.cancel()
            subscription.task = None

    def end(self, subscription: Subscription) -> None:
        """Push nothing more, and release the table."""
        self.stop(subscription)
        subscription.ended = True
        self._service.unsubscribe(subscription.live_table, subscription)
        self.presence.changed(subscription.live_table)

    def start(self, subscription: Subscription, *, after: int, say_resumed: bool = False) -> None:
        """Push every event after version `after`, then the live ones.

        With `say_resumed`, the notification `resumed` separates the two.
        """
        self.stop(subscription)
        if subscription.ended:
            return
        subscription.started = True
        self.presence.changed(subscription.live_table)
        subscription.cursor = after
        self._start_catch_up(subscription, begins=True, say_resumed=say_resumed)

    @contextmanager
    def paused(self, subscription: Subscription) -> Iterator[None]:
        """Push nothing in the block, which finds the version for `start`; on error continue."""
        self.stop(subscription)
        try:
            yield
        except Exception:
            if subscription.started:
                self.start(subscription, after=subscription.cursor)
            raise

    async def send_until(self, subscription: Subscription, *, upto: int) -> None:
        """Send a stopped subscription, if it was started before, its backlog up to a version."""
        while subscription.started and not subscription.ended and subscription.cursor < upto:
            await self._send_chunk(subscription, upto=upto)

    # After a commit

    def publish(self, live_table: LiveTable, notice: CommitNotice) -> None:
        """Write an append's events, and then its checkpoints, to all live subscriptions.

        Each distinct view is encoded once; who may not see a face gets the same bytes.
        """
        if notice.reset:
            self._on_log_restored(live_table)
            return
        subscribers, entries = live_table.subscribers, notice.entries
        if not subscribers:
            return
        notes = b""
        for size, note in notice.notes:
            notes += checkpoint_frame(live_table.table_id, size, note)
        if not entries:
            for subscription in tuple(subscribers):
                if subscription.live and not subscription.transport.paused:
                    subscription.transport.write(notes)
            return
        owners, seats_change = set(), False
        for entry in entries:
            if entry.seat is not None:
                owners.add(entry.seat)
            elif entry.type in SEAT_TYPES:
                seats_change = True
        before, last = entries[0].version - 1, entries[-1].version
        left = seats_left(entries) if seats_change else None
        common = event_frame(entries, SPECTATOR) + notes
        for subscription in tuple(subscribers):
            if not subscription.live:
                continue
            if subscription.transport.paused or subscription.cursor != before:
                self._metrics.slowed += 1
                self._start_catch_up(subscription)
                continue
            viewer, left_at = subscription.viewer, 0
            if left and viewer is not None:
                found = left.get(viewer.seat, 0)
                left_at = found if found > viewer.taken_at else 0
                if 0 < left_at < last:
                    # Appends of another process: later events may be private to the next player.
                    self._start_catch_up(subscription)
                    continue
            frame = common
            if owners and viewer is not None and viewer.seat in owners:
                frame = event_frame(entries, viewer) + notes
            if subscription.transport is notice.origin:
                notice.held = frame  # the caller's, which is answered next: one write for both
            else:
                subscription.transport.write(frame)
            subscription.cursor = last
            if left_at:
                self._lose_seat(subscription)
        if seats_change:
            self.presence.seats_changed(live_table)
        round_ = live_table.table.round
        if round_ is not None and round_.shuffle is not None:
            # Not within the notice: the caller of the commit is answered first.
            asyncio.get_running_loop().call_soon(self.absences.close_entropy, live_table)

    def _lose_seat(self, subscription: Subscription) -> None:
        """Continue as a spectator after the player left the seat; end where none may watch."""
        subscription.viewer = SPECTATOR
        subscription.membership.refresh()
        if not subscription.membership.may_watch():
            self.end(subscription)

    def _on_log_restored(self, live_table: LiveTable) -> None:
        """The log may no longer hold what was pushed: send snapshots, or disconnect."""
        if live_table.why_unreadable is None:
            fields = {"table": live_table.table_id, "version": live_table.committed}
            log.error("log rewound", extra={"fields": fields})
        for subscription in tuple(live_table.subscribers):
            if not live_table.committed:
                subscription.transport.close_with(
                    CloseCode.TRY_AGAIN_LATER, "the log no longer holds this table"
                )
            elif subscription.started:
                subscription.cursor = PAST_ANY_VERSION
                if subscription.live or subscription.task is not None:
                    self.stop(subscription)
                    self._start_catch_up(subscription)

    # Backlog: the events between a cursor and the table's version

    def _start_catch_up(
        self, subscription: Subscription, *, begins: bool = False, say_resumed: bool = False
    ) -> None:
        subscription.live = False
        work = partial(self._catch_up_task, subscription, begins, say_resumed)
        subscription.task = self.start_task(metered(work, subscription.transport.budget.cpu))

    async def _catch_up_task(
        self, subscription: Subscription, begins: bool, say_resumed: bool
    ) -> None:
        if not await self._catch_up(subscription, begins=begins) or subscription.ended:
            return
        if say_resumed:
            table = subscription.live_table.table_id
            notice = r.ResumedNotice(table=table, version=subscription.cursor)
            subscription.transport.write(wire.text_frame(wire.notification("resumed", notice)))
        # No await since the cursor was compared: nothing can have been committed meanwhile.
        subscription.live = True
        subscription.task = None

    async def _catch_up(self, subscription: Subscription, *, begins: bool) -> bool:
        """Send the backlog; False where the connection was closed because it cannot be read.

        Where it `begins`, the seat may have been left while the answer was being made.
        """
        while True:
            try:
                if begins:
                    await self._settle_seat(subscription)
                if not subscription.ended:
                    await self._send_backlog(subscription)
                return True
            except (DatabaseUnavailable, DatabaseLocked, Overloaded, Unavailable):
                # Clients stay connected; the random part spreads their reads after the outage.
                await asyncio.sleep(around(RETRY_SECONDS))
            except TableArchived:
                subscription.transport.close_with(
                    CloseCode.TRY_AGAIN_LATER, "this table was closed and archived"
                )
                return False
            except Exception as error:
                table = subscription.live_table.table_id
                self._log_throttle.say_error(
                    error, "a table could not be read from the log", table=table
                )
                subscription.transport.close_with(
                    CloseCode.TRY_AGAIN_LATER, "the log cannot be read at the moment"
                )
                return False

    async def _send_backlog(self, subscription: Subscription) -> None:
        """Bring a subscription up to date; what was sent before an error is not sent again."""
        live_table = subscription.live_table
        live_table.require_here()
        if subscription.cursor > live_table.committed:
            await self._send_reset(subscription)
        await self._send_awaited_checkpoint(subscription)
        while subscription.cursor < live_table.committed and not subscription.ended:
            await self._send_chunk(subscription)

    async def _settle_seat(self, subscription: Subscription) -> None:
        """Let a player who has left the seat lose it, once that is on disk: it may be void."""
        live_table = subscription.live_table
        while subscription.has_lost_seat():
            if await live_table.wait_committed(live_table.table.version):
                self._lose_seat(subscription)

    async def _send_chunk(self, subscription: Subscription, *, upto: int | None = None) -> None:
        """Send the next events, at most up to version `upto`."""
        if not await subscription.transport.drained():
            self.end(subscription)
            return
        # Outside the turn: a client that does not read must not block others of its address.
        async with self.turns.turn(subscription.transport.budget):
            await self._send_next(subscription, upto)

    async def _send_next(self, subscription: Subscription, upto: int | None) -> None:
        live_table, after = subscription.live_table, subscription.cursor
        if subscription.ended or after >= live_table.committed:
            return
        limit = self._limits.chunk if upto is None else min(self._limits.chunk, upto - after)
        entries = await self._service.entries(live_table, after, limit)
        left = None
        if (viewer := subscription.viewer) is not None:
            later = (entry for entry in entries if entry.version > viewer.taken_at)
            left = seats_left(later).get(viewer.seat)
        if left is not None:
            # Later events may be private to the next player at the seat.
            entries = [entry for entry in entries if entry.version <= left]
        notes: dict[int, str] = {}
        if any(entry.type in CHECKPOINT_TYPES for entry in entries):
            notes = dict(await self._service.log.checkpoints(live_table.id, after=after))
        frames, run = b"", []
        for entry in entries:  # each checkpoint after the events that it covers
            run.append(entry)
            note = notes.get(entry.version)
            if note is not None or entry is entries[-1]:
                frames += event_frame(run, subscription.viewer)
                run = []
            if note is not None:
                frames += checkpoint_frame(live_table.table_id, entry.version, note)
        subscription.transport.write(frames)
        subscription.cursor = entries[-1].version
        if left is not None:
            self._lose_seat(subscription)

    async def _send_reset(self, subscription: Subscription) -> None:
        """Send a snapshot without a consistency proof: the log does not hold the old version."""
        await self._settle_seat(subscription)
        if subscription.ended:
            return
        async with self.turns.turn(subscription.transport.budget):
            snapshot = await self._service.snapshot(subscription.live_table, subscription.viewer)
        if not await subscription.transport.drained():
            self.end(subscription)
            return
        table = subscription.live_table.table_id
        reset = r.Snapshot(reset=True, table=table, **snapshot._asdict())
        subscription.transport.write(wire.text_frame(wire.notification("snapshot", reset)))
        subscription.cursor = snapshot.version
        self._metrics.resets += 1

    async def _send_awaited_checkpoint(self, subscription: Subscription) -> None:
        """Repeat checkpoint C1 while a shuffle waits for reveals: clients reveal only with it."""
        live_table = subscription.live_table
        round_ = live_table.table.round
        size = 0 if round_ is None or round_.shuffle is None else round_.shuffle.closed_version
        if 0 < size <= subscription.cursor:
            found = await self._service.log.checkpoints(live_table.id, after=size - 1, limit=1)
            if found and found[0][0] == size:
                frame = checkpoint_frame(live_table.table_id, size, found[0][1])
                subscription.transport.write(frame)

    # Tasks

    def start_task(self, coroutine: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Run a task and keep a reference, without which it could be garbage-collected."""
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        self.presence.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
