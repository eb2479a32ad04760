"""Backlog reader: sends a subscription the events between its cursor and the table's version."""

from __future__ import annotations

from collections.abc import Callable

from dealer.gateway.limits import Limits
from dealer.gateway.observe.metrics import Metrics
from dealer.gateway.push.event_frames import (
    backlog_frames,
    checkpoint_frame,
    may_have_checkpoints,
    seats_left,
)
from dealer.gateway.push.subscription import Subscription
from dealer.gateway.rate_limit.cpu_time import Turns
from dealer.gateway.wire import protocol as wire
from dealer.gateway.wire import results as r
from dealer.service import Service

PAST_ANY_VERSION = 2**63
"""The cursor of a subscription that was sent events which the log no longer holds."""


class Backlog:
    """Reads events in chunks of `limits.chunk`, in turns that the client's address pays for.

    `lose_seat` and `end` are called with a subscription whose player left the seat, or whose
    transport is closed.
    """

    def __init__(
        self,
        service: Service,
        *,
        limits: Limits,
        metrics: Metrics,
        turns: Turns,
        lose_seat: Callable[[Subscription], None],
        end: Callable[[Subscription], None],
    ) -> None:
        self._service = service
        self._limits = limits
        self._metrics = metrics
        self._turns = turns
        self._lose_seat = lose_seat
        self._end = end

    async def send(self, subscription: Subscription) -> None:
        """Bring a subscription up to date; what was sent before an error is not sent again."""
        live_table = subscription.live_table
        live_table.require_here()
        if subscription.cursor > live_table.committed:
            await self._send_reset(subscription)
        await self._send_awaited_checkpoint(subscription)
        while subscription.cursor < live_table.committed and not subscription.ended:
            await self.send_chunk(subscription)

    async def settle_seat(self, subscription: Subscription) -> None:
        """Let a player who has left the seat lose it, once that is on disk: it may be void."""
        live_table = subscription.live_table
        while subscription.has_lost_seat():
            if await live_table.wait_committed(live_table.table.version):
                self._lose_seat(subscription)

    async def send_chunk(self, subscription: Subscription, *, upto: int | None = None) -> None:
        """Send the next events, at most up to version `upto`."""
        if not await subscription.transport.drained():
            self._end(subscription)
            return
        # Outside the turn: a client that does not read must not block others of its address.
        async with self._turns.turn(subscription.transport.budget):
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
        if may_have_checkpoints(entries):
            notes = dict(await self._service.log.checkpoints(live_table.id, after=after))
        frames = backlog_frames(live_table.table_id, entries, notes, subscription.viewer)
        subscription.transport.write(frames)
        subscription.cursor = entries[-1].version
        if left is not None:
            self._lose_seat(subscription)

    async def _send_reset(self, subscription: Subscription) -> None:
        """Send a snapshot without a consistency proof: the log does not hold the old version."""
        await self.settle_seat(subscription)
        if subscription.ended:
            return
        async with self._turns.turn(subscription.transport.budget):
            snapshot = await self._service.snapshot(subscription.live_table, subscription.viewer)
        if not await subscription.transport.drained():
            self._end(subscription)
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
