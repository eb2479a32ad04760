"""Presence: which seats of a table have a live connection, and how many spectators it has.

It is not in the log. Each process knows its own connections, and has from the service those of
other processes on the same database. Only clients that asked are notified, with a delay in which
changes are collected: draws cost nothing, and a thousand new connections cost one notification.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import get_args

from dealer.game.absence import HOST_TOKEN
from dealer.game.events import SeatGivenUp, SeatTaken
from dealer.game.state import SeatHolder
from dealer.game.view import BROADCAST
from dealer.gateway.presence.absence import Absences
from dealer.gateway.presence.membership import Subscription
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
        self._seen: dict[LiveTable, dict[SeatHolder, r.Seat]] = {}  # when it was last observed
        self._timers: dict[LiveTable, asyncio.TimerHandle] = {}
        self._closed = False

    def observe(self, live_table: LiveTable) -> r.Presence:
        """Who is connected to a table, at any node; `absences` and the other nodes are updated.

        A seat whose player came or went since the last call has that as of now.
        """
        here, elsewhere = self._report(live_table), self._shared.elsewhere(live_table)
        present = here.seats | elsewhere.seats
        seats = self._seats(live_table, present)
        if live_table.subscribers:
            self._seen[live_table] = seats
            by_holder = {holder: seat.here for holder, seat in seats.items()}
            by_holder[HOST_TOKEN] = HOST_TOKEN in present
            self._absences.observe(live_table, by_holder)
        else:
            self._seen.pop(live_table, None)
            self._absences.forget(live_table)
        watching = here.watching + elsewhere.watching
        return r.Presence(table=live_table.table_id, seats=list(seats.values()), watching=watching)

    def _report(self, live_table: LiveTable) -> Attendance:
        """The connections to this node, which are reported to the other nodes."""
        subscribers = live_table.subscribers
        holders = [subscriber.membership.seat.refresh() for subscriber in subscribers]
        acting = {(holder.seat, holder.taken_at) for holder in holders if holder is not None}
        if any(subscriber.membership.host for subscriber in subscribers):
            acting.add(HOST_TOKEN)
        watching = sum(subscriber.only_watches() for subscriber in subscribers)
        here = Attendance(frozenset(acting), watching)
        self._shared.report(live_table, here if subscribers else None)
        if not all(subscriber.membership.seat.is_committed() for subscriber in subscribers):
            # A seat was left, or moved to, in an append that may be lost.
            version = live_table.table.version
            live_table.when_committed(version, lambda _: self.changed(live_table))
        return here

    def _seats(
        self, live_table: LiveTable, present: Collection[tuple[int, int]]
    ) -> dict[SeatHolder, r.Seat]:
        """The seats that are taken on disk, each with whether its player is present, and since."""
        before, seats = self._seen.get(live_table, {}), {}
        for number, player in sorted(live_table.table.seats.items()):
            if player.taken_at > live_table.committed:
                continue  # the SeatTaken event is not committed yet
            holder = SeatHolder(number, player.taken_at)
            seat = before.get(holder) or r.Seat(seat=number, here=False, since=None)
            here = holder in present
            if here != seat.here:
                seat = r.Seat(seat=number, here=here, since=self._now())
            seats[holder] = seat
        return seats

    def follow(self, subscription: Subscription, attendance: r.Presence) -> None:
        """Notify of changes from now on, after `attendance` was sent."""
        if not subscription.is_ended():
            subscription.presence = wire.encode(attendance)

    def changed(self, live_table: LiveTable) -> None:
        """Schedule a notification: a connection or a seat of the table changed."""
        if live_table.audience == BROADCAST:
            return  # who watches is not at the table
        if live_table not in self._timers and not self._closed:
            loop = asyncio.get_running_loop()
            self._timers[live_table] = loop.call_later(DELAY, self._notify, live_table)

    def seats_changed(self, live_table: LiveTable) -> None:
        """Notify the clients that follow this table, if there are any, of its new seats."""
        if any(subscription.presence is not None for subscription in live_table.subscribers):
            self.changed(live_table)

    def close(self) -> None:
        """Notify of nothing more: in a drain all leave, and their next node says who is there."""
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()

    def _notify(self, live_table: LiveTable) -> None:
        del self._timers[live_table]
        attendance = self.observe(live_table)
        following = [
            subscription
            for subscription in live_table.subscribers
            if subscription.presence is not None and subscription.membership.may_watch()
        ]
        if not following:
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
