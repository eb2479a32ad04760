"""Absence: how long the players and the host of a table have had no connection, at any node.

A shuffle waits up to the round's `commit_ms` for the digests of the seats. It does not wait for a
player who had no connection for a while when it began: no client could answer. A player who has
one, or lost it just before, has the whole time.

A table whose host is absent for long gets another one, so that play can go on: of the players who
have a connection and are not bots, the one who has been seated longest. Tables that a service
opened are left alone: it acts without a connection.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping

from dealer.errors import DealerError
from dealer.game.absence import HOST_TOKEN, Absence, host_of, longest_seated
from dealer.game.commands import Actor, CloseEntropy, TransferHost
from dealer.game.state import SeatHolder
from dealer.service import LiveTable, Service

ABSENT_SECONDS = 10.0
"""Seconds without a connection before a shuffle after which it does not wait for a player: a client
that has lost its connection reconnects within this time."""

EXCHANGE_SECONDS = 2.5
"""Seconds of a shuffle within which every node knows who was connected to the others when it began;
if no other node has a connection, nothing is waited for."""

LONG_SECONDS = 120.0
"""Seconds without a connection after which other players may free a player's seat, or follow a
host."""

EVERY_SECONDS = 5.0
"""Seconds between two checks for tables whose host is absent."""

log = logging.getLogger(__name__)


class Absences:
    """Since when the players of each table are absent; `clock` gives seconds."""

    def __init__(self, service: Service, *, clock: Callable[[], float]) -> None:
        self._service = service
        self._clock = clock
        self.long = LONG_SECONDS
        self._since: dict[LiveTable, dict[SeatHolder, float]] = {}
        self._present: dict[LiveTable, frozenset[SeatHolder]] = {}

    def observe(self, live_table: LiveTable, present: Mapping[SeatHolder, bool]) -> None:
        """Take over who is connected now, after each change."""
        before, now = self._since.get(live_table, {}), self._clock()
        self._since[live_table] = {
            holder: before.get(holder, now) for holder, here in present.items() if not here
        }
        self._present[live_table] = frozenset(holder for holder, here in present.items() if here)

    def forget(self, live_table: LiveTable) -> None:
        """Drop a table without connections to this node."""
        self._since.pop(live_table, None)
        self._present.pop(live_table, None)

    def tables(self) -> list[LiveTable]:
        """The tables with connections to this node."""
        return list(self._since)

    def is_present(self, live_table: LiveTable, seat: int) -> bool:
        """Whether the player of a seat has a connection at any node, as far as this node knows."""
        return live_table.table.holder(seat) in self._present.get(live_table, ())

    def seconds(self, live_table: LiveTable, holder: SeatHolder) -> float:
        """How long a player has been absent, as far as this node knows; 0 if present.

        Also 0 before the connections to the other nodes were read.
        """
        since = self._since.get(live_table, {}).get(holder)
        known = since is not None and self._service.presence.known(live_table)
        return self._clock() - since if known and since is not None else 0.0

    async def at_command(self, live_table: LiveTable) -> Absence | None:
        """The absence of a table's players for a command; None at the table of a service."""
        if await self._service.service_tables.owner(live_table.id) is not None:
            return None
        memberships = [subscriber.membership for subscriber in live_table.subscribers]
        hosts = [membership for membership in memberships if membership.host]
        here = {membership.seat.refresh() for membership in memberships}
        if hosts:
            here.add(HOST_TOKEN)
        opener = any(membership.seat.holder is None for membership in hosts)
        presence = self._service.presence
        since = self._since.get(live_table, {}) if presence.known(live_table) else {}
        now = self._clock()
        seconds = {holder: now - at for holder, at in since.items() if holder not in here}
        # Whether a connection to another node has a seat, too, is not known here.
        elsewhere = HOST_TOKEN in presence.elsewhere(live_table).seats
        return Absence(seconds, self.long, opener or elsewhere)

    def close_entropy(self, live_table: LiveTable) -> None:
        """End the wait for digests, if only those of players are missing who were absent before."""
        table = live_table.table
        round_ = table.round
        shuffle = None if round_ is None else round_.shuffle
        if round_ is None or shuffle is None or shuffle.closed_version:
            return
        elapsed = max(0, self._service.now() - shuffle.started_at) / 1000
        missing = table.seats.keys() - shuffle.digests.keys() - round_.withheld
        holders = {SeatHolder(seat, table.seats[seat].taken_at) for seat in missing}
        least = ABSENT_SECONDS + elapsed
        if not holders or any(self.seconds(live_table, holder) < least for holder in holders):
            return
        seats = (subscriber.membership.seat for subscriber in live_table.subscribers)
        if any(seat.refresh() in holders for seat in seats):
            return  # connected in this moment
        if elapsed < EXCHANGE_SECONDS and not self._service.presence.alone(live_table.id):
            loop = asyncio.get_running_loop()
            loop.call_later(EXCHANGE_SECONDS - elapsed, self.close_entropy, live_table)
            return
        command = CloseEntropy(round_.number, shuffle.k, frozenset(holders))
        self._service.submit(live_table, command, lambda _: None)


class HostAbsence:
    """Transfers the host of tables with connections to this node, after `seconds` of absence.

    Several nodes may do it at the same time: the table is past the version of the second one.
    """

    def __init__(self, service: Service, absences: Absences, *, seconds: float) -> None:
        self._service = service
        self._absences = absences
        self._seconds = seconds

    async def run(self) -> None:
        """Check all tables again and again until cancelled; with 0 seconds never."""
        while self._seconds:
            await asyncio.sleep(EVERY_SECONDS)
            for live_table in self._absences.tables():
                try:
                    await self.check(live_table)
                except DealerError as error:
                    fields = {"table": live_table.table_id, "says": str(error)}
                    log.debug("host not transferred", extra={"fields": fields})

    async def check(self, live_table: LiveTable) -> None:
        """Transfer the host of one table if that is due; raises DealerError if it is refused."""
        table = live_table.table
        if table.closed or self._absences.seconds(live_table, host_of(table)) < self._seconds:
            return
        here = {seat for seat in table.seats if self._absences.is_present(live_table, seat)}
        seat = longest_seated(table, here)
        if seat is None or await self._service.service_tables.owner(live_table.id) is not None:
            return
        transfer = TransferHost(Actor(service=True), seat)
        await self._service.execute(live_table, transfer, expect=table.version)
        log.info("host transferred", extra={"fields": {"table": live_table.table_id, "seat": seat}})
