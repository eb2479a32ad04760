"""Backlog: sends a subscription the events between its cursor and the table's version.

A subscription has a backlog while it resumes, and while its client reads slowly. A task reads the
events from its cursor on, from memory or the log, and ends when the subscription is up to date:
then it is live, and the broadcaster writes to it. After the log was restored from an older backup a
cursor may be past the table's version: that subscription is sent a snapshot.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import get_args

from dealer.backoff import around
from dealer.errors import (
    BadToken,
    DatabaseLocked,
    DatabaseUnavailable,
    Overloaded,
    TableArchived,
    Unavailable,
)
from dealer.game.events import CHECKPOINT_TYPES, SeatGivenUp
from dealer.game.view import BROADCAST, SPECTATOR, Audience, Viewer
from dealer.gateway.close_codes import CloseCode
from dealer.gateway.limits import Limits
from dealer.gateway.observe.log_throttle import LogThrottle
from dealer.gateway.observe.metrics import Metrics
from dealer.gateway.presence.membership import Subscription, SubscriptionState
from dealer.gateway.presence.presence import Presence
from dealer.gateway.rate_limit.cpu_time import LongAnswers, metered
from dealer.gateway.wire import protocol as wire
from dealer.gateway.wire import results as r
from dealer.service import EventRecord, LiveTable, Service
from dealer.service.commands.background_tasks import BackgroundTasks

_SEAT_GIVEN_UP = frozenset(kind.__name__ for kind in get_args(SeatGivenUp))

RETRY_SECONDS = 0.5
"""About how long a task waits before it reads an unavailable database again."""

PAUSED = SubscriptionState.PAUSED

log = logging.getLogger(__name__)


class Backlog:
    """The tasks of all subscriptions that have one; `clock` gives seconds."""

    def __init__(
        self,
        service: Service,
        presence: Presence,
        long_answers: LongAnswers,
        tasks: BackgroundTasks,
        *,
        limits: Limits,
        metrics: Metrics,
        clock: Callable[[], float],
    ) -> None:
        self._service = service
        self._presence = presence
        self._long_answers = long_answers
        self._tasks = tasks
        self._limits = limits
        self._metrics = metrics
        self._log_throttle = LogThrottle(log, clock=clock)

    # Begin and end

    def start(self, subscription: Subscription, *, after: int, say_resumed: bool = False) -> None:
        """Push every event after version `after`, then the live ones.

        With `say_resumed`, the notification `resumed` separates the two.
        """
        self.stop(subscription)
        if subscription.is_ended():
            return
        subscription.cursor = after
        if self._has_all(subscription):
            self._go_live(subscription, say_resumed)
        else:
            self.catch_up(subscription, begins=True, say_resumed=say_resumed)
        self._presence.changed(subscription.live_table)

    def stop(self, subscription: Subscription) -> None:
        """Push nothing until the next `start`."""
        if subscription.is_started():
            subscription.state = PAUSED
        if subscription.task is not None:
            subscription.task.cancel()
            subscription.task = None

    @contextmanager
    def paused(self, subscription: Subscription) -> Iterator[None]:
        """Push nothing in the block, which finds the version for `start`; on error continue."""
        self.stop(subscription)
        try:
            yield
        except Exception:
            if subscription.state is PAUSED:
                self.start(subscription, after=subscription.cursor)
            raise

    def end(self, subscription: Subscription) -> None:
        """Push nothing more, and release the table."""
        self.stop(subscription)
        subscription.state = SubscriptionState.ENDED
        self._service.unsubscribe(subscription.live_table, subscription)
        self._presence.changed(subscription.live_table)

    def lose_seat(self, subscription: Subscription) -> None:
        """Continue as a spectator after the player left the seat; end where none may watch."""
        subscription.viewer = SPECTATOR
        subscription.membership.seat.refresh()
        if not subscription.membership.may_watch():
            self.end(subscription)

    # Up to the table's version

    def _has_all(self, subscription: Subscription) -> bool:
        """Whether there is nothing to send, nor to wait for: so it is after most resumes."""
        live_table = subscription.live_table
        return (
            subscription.cursor == live_table.committed == live_table.table.version
            and live_table.why_unreadable is None
            and not subscription.has_lost_seat()
            and not _awaited_checkpoint(live_table)
        )

    def _go_live(self, subscription: Subscription, say_resumed: bool) -> None:
        if say_resumed:
            table = subscription.live_table.table_id
            notice = r.ResumedNotice(table=table, version=subscription.cursor)
            subscription.transport.write(wire.text_frame(wire.notification("resumed", notice)))
        # No await since the cursor was compared: nothing can have been committed meanwhile.
        subscription.state = SubscriptionState.LIVE
        subscription.task = None

    def catch_up(
        self, subscription: Subscription, *, begins: bool = False, say_resumed: bool = False
    ) -> None:
        """Send the backlog in a task.

        Where it `begins`, the seat may have been left while the answer was being made.
        """
        subscription.state = SubscriptionState.BEHIND
        work = partial(self._run, subscription, begins, say_resumed)
        subscription.task = self._tasks.start(metered(work, subscription.transport.budget))

    async def send_until(self, subscription: Subscription, *, upto: int) -> None:
        """Send a paused subscription its backlog up to a version; nothing to a new one."""
        while subscription.state is PAUSED and subscription.cursor < upto:
            await self._send_chunk(subscription, upto=upto)

    async def _run(self, subscription: Subscription, begins: bool, say_resumed: bool) -> None:
        if await self._send_when_readable(subscription, begins) and not subscription.is_ended():
            self._go_live(subscription, say_resumed)

    async def _send_when_readable(self, subscription: Subscription, begins: bool) -> bool:
        """Send the backlog; False if the connection was closed because it cannot be read."""
        while True:
            try:
                if begins:
                    await self._follow_seat(subscription)
                if not subscription.is_ended():
                    await self._send_all(subscription)
                return True
            except (DatabaseUnavailable, DatabaseLocked, Overloaded, Unavailable):
                # Clients stay connected; the random part spreads their reads after the outage.
                await asyncio.sleep(around(RETRY_SECONDS))
            except TableArchived:
                reason = "this table was closed and archived"
                break
            except BadToken:
                reason = "this broadcast link was taken back"
                subscription.transport.close_with(CloseCode.KEY_REVOKED, reason)
                return False
            except Exception as error:
                table, reason = subscription.live_table, "the log cannot be read at the moment"
                self._log_throttle.say_error(
                    error, "a table could not be read from the log", table=table.table_id
                )
                break
        subscription.transport.close_with(CloseCode.TRY_AGAIN_LATER, reason)
        return False

    async def _send_all(self, subscription: Subscription) -> None:
        """Bring a subscription up to date; what was sent before an error is not sent again."""
        live_table = subscription.live_table
        live_table.require_here()
        if subscription.cursor > live_table.committed:
            await self._send_reset(subscription)
        await self._send_awaited_checkpoint(subscription)
        while subscription.cursor < live_table.committed and not subscription.is_ended():
            await self._send_chunk(subscription)

    async def _follow_seat(self, subscription: Subscription) -> None:
        """Let a player who has left the seat lose it, once that is on disk: it may be void."""
        live_table = subscription.live_table
        while subscription.has_lost_seat():
            if await live_table.wait_committed(live_table.table.version):
                self.lose_seat(subscription)

    # One step

    async def _send_chunk(self, subscription: Subscription, *, upto: int | None = None) -> None:
        """Send the next events, at most up to version `upto`."""
        if not await subscription.transport.drained():
            self.end(subscription)
            return
        # Without the permit: a client that does not read must not block others of its address.
        async with self._long_answers.permit(subscription.transport.budget):
            await self._send_next(subscription, upto)

    async def _send_next(self, subscription: Subscription, upto: int | None) -> None:
        live_table, after = subscription.live_table, subscription.cursor
        if subscription.is_ended() or after >= live_table.committed:
            return
        limit = self._limits.chunk if upto is None else min(self._limits.chunk, upto - after)
        entries = await self._service.reader.entries(live_table, after, limit)
        left = None
        if (viewer := subscription.viewer) is not None:
            later = (entry for entry in entries if entry.version > viewer.taken_at)
            left = seats_left(later).get(viewer.seat)
        if left is not None:
            # Later events may be private to the next player at the seat.
            entries = [entry for entry in entries if entry.version <= left]
        notes: dict[int, str] = {}
        if live_table.audience == BROADCAST:  # cosignatures are not for it
            notes = dict([await self._service.checkpoints.head(live_table)])
        elif any(entry.type in CHECKPOINT_TYPES for entry in entries):
            notes = dict(await self._service.log.checkpoints(live_table.id, after=after))
        sees = subscription.viewer or live_table.audience
        subscription.transport.write(_chunk_frames(live_table.table_id, entries, notes, sees))
        subscription.cursor = entries[-1].version
        if left is not None:
            self.lose_seat(subscription)

    async def _send_reset(self, subscription: Subscription) -> None:
        """Send a snapshot without a consistency proof: the log does not hold the old version."""
        await self._follow_seat(subscription)
        if subscription.is_ended():
            return
        async with self._long_answers.permit(subscription.transport.budget):
            snapshot = await self._service.checkpoints.snapshot(
                subscription.live_table, subscription.viewer
            )
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
        size = _awaited_checkpoint(live_table)
        if 0 < size <= subscription.cursor:
            found = await self._service.log.checkpoints(live_table.id, after=size - 1, limit=1)
            if found and found[0][0] == size:
                frame = checkpoint_frame(live_table.table_id, size, found[0][1])
                subscription.transport.write(frame)


def _awaited_checkpoint(live_table: LiveTable) -> int:
    """The size of checkpoint C1 while a shuffle waits for reveals, else 0."""
    round_ = live_table.table.round
    return 0 if round_ is None or round_.shuffle is None else round_.shuffle.closed_version


def checkpoint_frame(table: str, size: int, note: str) -> bytes:
    """The frame of a checkpoint: the signed `note` over the first `size` events of a table."""
    notice = r.Checkpoint(table=table, size=size, note=note)
    return wire.text_frame(wire.notification("checkpoint", notice))


def seats_left(entries: Iterable[EventRecord]) -> dict[int, int]:
    """The seats that were given up in these events, each with the first version of that."""
    left: dict[int, int] = {}
    for entry in entries:
        if entry.type in _SEAT_GIVEN_UP:
            left.setdefault(json.loads(entry.leaf)["public"]["seat"], entry.version)
    return left


def _chunk_frames(
    table: str, entries: Sequence[EventRecord], notes: dict[int, str], viewer: Viewer | Audience
) -> bytes:
    """The frames of many appends, with each checkpoint of `notes` after the events it covers."""
    frames, run = b"", []
    for entry in entries:
        run.append(entry)
        note = notes.get(entry.version)
        if note is not None or entry is entries[-1]:
            frames += wire.event_frame(run, viewer)
            run = []
        if note is not None:
            frames += checkpoint_frame(table, entry.version, note)
    return frames
