"""Who is at the table just now: which seats have somebody behind them, and how many look on.

What happened at a table stands in its log, but who has dropped off the line does not: that is known
to this process alone, for the connections that it holds, and forgotten when the last one is gone.
Only who asks is told. All of it is found out some time after something changed, for everything that
changed meanwhile, so that a table's draws and a thousand arrivals cost nothing more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from dealer.gateway import results as r
from dealer.gateway import wire
from dealer.gateway.subscription import Subscription
from dealer.service import Entry, Resident

DELAY = 0.1
"""Seconds in which changes are gathered before who asked is told of them, once."""

_SEATS = '"type":"Seat'  # taken or left; and some leaves that only look like that


class Presence:
    """The attendance of every table that this process has guests at; `now` is epoch ms."""

    def __init__(self, *, now: Callable[[], int]) -> None:
        self._now = now
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
        acting = {one.acts for one in resident.sessions if one.acts is not None}
        before, noted = self._noted.get(resident, {}), {}
        for seat, player in sorted(resident.table.seats.items()):
            if player.since > resident.committed:
                continue  # it is not on disk yet that they sit there
            key = (seat, player.since)
            here = key in acting
            was_here, since = before.get(key, (False, None))
            noted[key] = (here, since if here == was_here else self._now())
        if resident.sessions:
            self._noted[resident] = noted
        seats = [r.Seat(seat=seat, here=here, since=at) for (seat, _), (here, at) in noted.items()]
        watching = sum(one.only_watches() for one in resident.sessions)
        return r.Presence(table=resident.table_id, seats=seats, watching=watching)
