"""Presence: which seats of a table have a live connection, and how many spectators it has.

The log does not hold this. Each process knows its own connections, and has from the service those
that other processes on the same database hold. Only a client that asked is notified, some time
after a change, of everything that changed meanwhile: so draws cost nothing, and a thousand arrivals
cost one look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from dealer.gateway import results as r
from dealer.gateway import wire
from dealer.gateway.subscription import Subscription
from dealer.service import Attendance, Entry, Resident, SharedPresence

DELAY = 0.1
"""Seconds in which changes are gathered before who asked is told of them, once."""

_SEATS = '"type":"Seat'  # taken or left; and some leaves that only look like that


class Presence:
    """The attendance of every table that this process has connections at; `now` is epoch ms.

    `shared` takes the connections of this process, and has those of the others.
    """

    def __init__(self, shared: SharedPresence, *, now: Callable[[], int]) -> None:
        self._now = now
        self._shared = shared
        shared.changed = self.changed
        self._asked: set[Resident] = set()
        self._noted: dict[Resident, dict[tuple[int, int], tuple[bool, int | None]]] = {}
        self._timers: dict[Resident, asyncio.TimerHandle] = {}

    def ask(self, subscription: Subscription) -> tuple[r.Presence, Callable[[], None]]:
        """How it is now, and what to call once that is told: the changes are, from then on."""
        resident = subscription.resident
        attendance = self._look(resident)

        def then() -> None:
            if not subscription.ended:
                self._asked.add(resident)
                subscription.presence = wire.encode(attendance)

        return attendance, then

    def changed(self, resident: Resident) -> None:
        """Note that somebody came or went, or took or gave up a seat."""
        if resident not in self._timers:
            loop = asyncio.get_running_loop()
            self._timers[resident] = loop.call_later(DELAY, self._tell, resident)

    def published(self, resident: Resident, entries: Iterable[Entry]) -> None:
        """Look for seats that were taken or left, where anybody wants to know."""
        if resident in self._asked and any(_SEATS in entry.leaf for entry in entries):
            self.changed(resident)

    def close(self) -> None:
        """Tell nobody anything any more."""
        for timer in self._timers.values():
            timer.cancel()

    def _tell(self, resident: Resident) -> None:
        del self._timers[resident]
        attendance = self._look(resident)
        if resident not in self._asked:
            return
        asked = [one for one in resident.sessions if one.presence is not None and one.may_look()]
        if not asked:
            self._asked.discard(resident)
            return
        payload = wire.encode(attendance)
        frame = wire.text_frame(wire.notification("presence", attendance))
        for subscription in asked:
            if subscription.presence == payload:
                continue
            if subscription.outlet.paused:
                self.changed(resident)  # they are told later, or are soon gone
                continue
            subscription.outlet.write(frame)
            subscription.presence = payload

    def _look(self, resident: Resident) -> r.Presence:
        """How it is now; a seat whose being there is another than it was is noted as of now."""
        if not resident.sessions:
            self._noted.pop(resident, None)
            self._asked.discard(resident)
        acting = frozenset(one.acts for one in resident.sessions if one.acts is not None)
        watching = sum(one.only_watches() for one in resident.sessions)
        self._shared.report(resident, Attendance(acting, watching))
        elsewhere = self._shared.elsewhere(resident)
        before, noted = self._noted.get(resident, {}), {}
        for seat, player in sorted(resident.table.seats.items()):
            if player.since > resident.committed:
                continue  # it is not on disk yet that they sit there
            key = (seat, player.since)
            here = key in acting or key in elsewhere.seats
            was_here, since = before.get(key, (False, None))
            noted[key] = (here, since if here == was_here else self._now())
        if resident.sessions:
            self._noted[resident] = noted
        seats = [r.Seat(seat=seat, here=here, since=at) for (seat, _), (here, at) in noted.items()]
        watching += elsewhere.watching
        return r.Presence(table=resident.table_id, seats=seats, watching=watching)
