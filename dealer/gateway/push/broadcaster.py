"""Broadcaster: writes every committed event to every live subscription, once and in order.

A live subscription, whose cursor is at the table's version, is written to in the callback of the
commit (`publish`). One with a backlog, because it resumes or its client reads slowly, gets its
events from a task (`backlog.py`), and is live again when it is up to date.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping

from dealer.game.state import SeatHolder
from dealer.game.view import Viewer
from dealer.gateway.close_codes import CloseCode
from dealer.gateway.observe.metrics import Metrics
from dealer.gateway.presence.absence import Absences
from dealer.gateway.presence.membership import Membership, Subscription, SubscriptionState
from dealer.gateway.presence.presence import SEAT_TYPES, Presence
from dealer.gateway.push.backlog import Backlog, checkpoint_frame, seats_left
from dealer.gateway.transport import Transport
from dealer.gateway.wire import protocol as wire
from dealer.service import CommitNotice, LiveTable, Service

PAST_ANY_VERSION = 2**63
"""The cursor of a subscription that was sent events which the log no longer holds."""

LIVE = SubscriptionState.LIVE

log = logging.getLogger(__name__)


class Broadcaster:
    """Pushes the events of all tables to their subscriptions, each as its viewer may see them."""

    def __init__(
        self,
        service: Service,
        backlog: Backlog,
        presence: Presence,
        absences: Absences,
        *,
        metrics: Metrics,
    ) -> None:
        self._service = service
        self._backlog = backlog
        self._presence = presence
        self._absences = absences
        self._metrics = metrics
        service.notices.listen(self.publish)

    # Subscriptions

    def subscribe(self, transport: Transport, membership: Membership) -> Subscription:
        """A subscription that receives nothing before `Backlog.start`, but keeps its table."""
        subscription = Subscription(transport, membership)
        self._service.subscribe(subscription.live_table, subscription)
        self._presence.changed(subscription.live_table)
        return subscription

    def take_seat(self, subscription: Subscription, holder: SeatHolder) -> None:
        """Show this player's private faces from now on; close the seat's other connection."""
        for other in list(subscription.live_table.subscribers):
            if other.viewer == holder and other.transport is not subscription.transport:
                other.transport.close_with(
                    CloseCode.SUPERSEDED, "a newer connection took this seat"
                )
        subscription.viewer = holder
        self._presence.changed(subscription.live_table)

    # After a commit

    def publish(self, live_table: LiveTable, notice: CommitNotice) -> None:
        """Write an append's events, and then its checkpoints, to all live subscriptions.

        Each distinct view is encoded once; who may not see a face gets the same bytes.
        """
        # One function: each step in a function of its own would be another call for every draw.
        if notice.reset:
            self._on_log_restored(live_table)
            return
        subscribers, entries = live_table.subscribers, notice.entries
        if not subscribers:
            return
        # 1. What all get: the signed checkpoints, which follow the events.
        notes = b""
        for size, note in notice.notes:
            notes += checkpoint_frame(live_table.table_id, size, note)
        if not entries:
            for subscription in tuple(subscribers):
                if subscription.state is LIVE and not subscription.transport.paused:
                    subscription.transport.write(notes)
            return

        # 2. Who gets something else: the seats that see a private face, and those given up.
        owners, seats_change = set(), False
        for entry in entries:
            if entry.seat:
                owners.add(entry.seat)
            elif entry.type in SEAT_TYPES:
                seats_change = True
        before, last = entries[0].version - 1, entries[-1].version
        left = seats_left(entries) if seats_change else None
        common = wire.event_frame(entries, live_table.audience) + notes

        # 3. Write, to those that have had every event before these. A task sends the others what
        # they miss, with these: from here on only `cursor` says what a client was sent.
        for subscription in tuple(subscribers):
            if subscription.state is not LIVE:
                continue
            if subscription.transport.paused or subscription.cursor != before:
                self._metrics.slowed += 1
                self._backlog.catch_up(subscription)
                continue
            viewer = subscription.viewer
            left_at = _left_at(viewer, left) if left else None
            if left_at is not None and left_at < last:
                # Appends of another process: later events may be private to the next player.
                self._backlog.catch_up(subscription)
                continue
            frame = common
            if owners and viewer is not None and viewer.seat in owners:
                frame = wire.event_frame(entries, viewer) + notes
            if subscription.transport is notice.origin:
                notice.held = frame  # the caller's, which is answered next: one write for both
            else:
                subscription.transport.write(frame)
            subscription.cursor = last
            if left_at is not None:
                self._backlog.lose_seat(subscription)

        # 4. What follows from the new state.
        if seats_change:
            self._presence.seats_changed(live_table)
        round_ = live_table.table.round
        if round_ is not None and round_.shuffle is not None:
            # Not within the notice: the caller of the commit is answered first.
            asyncio.get_running_loop().call_soon(self._absences.close_entropy, live_table)

    def _on_log_restored(self, live_table: LiveTable) -> None:
        """The log may no longer hold what was pushed: send snapshots, or disconnect."""
        if live_table.why_unreadable is None:
            fields = {"table": live_table.table_id, "version": live_table.committed}
            log.error("log rewound", extra={"fields": fields})
        for subscription in tuple(live_table.subscribers):
            if not live_table.committed and live_table.why_unreadable is None:
                subscription.transport.close_with(
                    CloseCode.TRY_AGAIN_LATER, "the log no longer holds this table"
                )
            else:
                subscription.cursor = PAST_ANY_VERSION
                if subscription.state in (LIVE, SubscriptionState.BEHIND):
                    self._backlog.stop(subscription)
                    self._backlog.catch_up(subscription)


def _left_at(viewer: Viewer, left: Mapping[int, int]) -> int | None:
    """The version at which the viewer gave up their seat; None if it was not the viewer.

    `left` has the seats that were given up, each with its version. A seat may have been the
    player's before this one.
    """
    if viewer is None:
        return None
    version = left.get(viewer.seat, 0)
    return version if version > viewer.taken_at else None
