"""Presence: which seats of a table have a live connection, and how many spectators it has.

It is not in the log. Each process knows its own connections, and has from the service those of
other processes on the same database. Only clients that asked are notified, with a delay in which
changes are collected: draws cost nothing, and a thousand new connections cost one notification.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import get_args

from dealer.game.absence import HOST_TOKEN
from dealer.game.events import SeatGivenUp, SeatTaken
from dealer.game.state import SeatHolder
from dealer.gateway.push.absence import Absences
from dealer.gateway.push.membership import Subscription
from dealer.gateway.wire import protocol as wire
from dealer.gateway.wire import results as r
from dealer.service import Attendance, LiveTable, SharedPresence

DELAY = 0.1
"""Seconds in which changes are collected into one notification."""

SEAT_TYPES = frozenset(kind.__name__ for kind in (SeatTaken, *get_args(SeatGivenUp)))
"""The types of events after which a seat has another player, or none."""


class Presence:
    """The attendance of every table that this process has connections at; `now` is epoch ms.

    `shared` receives the connections of this process, and has those of the others; `absences` is
    kept up to date.
    """

    def __init__(
        self, shared: SharedPresence, absences: Absences, *, now: Callable[[], int]
    ) -> None:
        self._now = now
        self._absences = absences
        self._shared = shared
        shared.on_change(self.changed)
        self._followed: set[LiveTable] = set()
        self._recorded: dict[LiveTable, dict[SeatHolder, tuple[bool, int | None]]] = {}
        self._timers: dict[LiveTable, asyncio.TimerHandle] = {}
        self._closed = False

    def observe(self, live_table: LiveTable) -> r.Presence:
        """Look who is there, report it to the other nodes and `absences`, and return it.

        A seat whose state changed is recorded as of now.
        """
        subscribers = live_table.subscribers
        if not subscribers:
            self._recorded.pop(live_table, None)
            self._absences.forget(live_table)
            self._followed.discard(live_table)
        holders = [subscription.membership.refresh() for subscription in subscribers]
        acting = {(holder.seat, holder.taken_at) for holder in holders if holder is not None}
        if any(subscription.membership.host for subscription in subscribers):
            acting.add(HOST_TOKEN)
        watching = sum(subscription.only_watches() for subscription in subscribers)
        own = Attendance(frozenset(acting), watching)
        self._shared.report(live_table, own if subscribers else None)
        if not all(subscription.membership.settled for subscription in subscribers):
            # A seat was left, or moved to, in an append that may be lost.
            version = live_table.table.version
            live_table.when_committed(version, lambda _: self.changed(live_table))
        elsewhere = self._shared.elsewhere(live_table)
        before, recorded = self._recorded.get(live_table, {}), {}
        for seat, player in sorted(live_table.table.seats.items()):
            if player.taken_at > live_table.committed:
                continue  # the SeatTaken event is not committed yet
            holder = SeatHolder(seat, player.taken_at)
            here = holder in acting or holder in elsewhere.seats
            was_here, since = before.get(holder, (False, None))
            recorded[holder] = (here, since if here == was_here else self._now())
        if subscribers:
            self._recorded[live_table] = recorded
            present = {holder: here for holder, (here, _) in recorded.items()}
            present[HOST_TOKEN] = HOST_TOKEN in acting | elsewhere.seats
            self._absences.observe(live_table, present)
        seats = [
            r.Seat(seat=holder.seat, here=here, since=since)
            for holder, (here, since) in recorded.items()
        ]
        watching += elsewhere.watching
        return r.Presence(table=live_table.table_id, seats=seats, watching=watching)

    def follow(self, subscription: Subscription, attendance: r.Presence) -> None:
        """Notify of changes from now on, after `attendance` was sent."""
        if not subscription.ended:
            self._followed.add(subscription.live_table)
            subscription.presence = wire.encode(attendance)

    def changed(self, live_table: LiveTable) -> None:
        """Schedule a notification: a connection or a seat of the table changed."""
        if live_table not in self._timers and not self._closed:
            loop = asyncio.get_running_loop()
            self._timers[live_table] = loop.call_later(DELAY, self._notify, live_table)

    def seats_changed(self, live_table: LiveTable) -> None:
        """Notify the clients that follow this table, if there are any, of its new seats."""
        if live_table in self._followed:
            self.changed(live_table)

    def close(self) -> None:
        """Notify of nothing more: in a drain all leave, and their next node says who is there."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()

    def _notify(self, live_table: LiveTable) -> None:
        del self._timers[live_table]
        attendance = self.observe(live_table)
        if live_table not in self._followed:
            return
        following = [
            subscription
            for subscription in live_table.subscribers
            if subscription.presence is not None and subscription.membership.may_watch()
        ]
        if not following:
            self._followed.discard(live_table)
            return
        payload = wire.encode(attendance)
        frame = wire.text_frame(wire.notification("presence", attendance))
        for subscription in following:
            if subscription.presence == payload:
                continue
            if subscription.transport.paused:
                self.changed(live_table)  # notified later, or disconnected soon
                continue
            subscription.transport.write(frame)
            subscription.presence = payload
