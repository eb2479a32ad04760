"""Another host for tables whose host has been absent for long, so that play can go on.

Of the players who have a connection and are not bots, the one who has been seated longest becomes
host. Tables that a service opened are left alone: it acts without a connection.
"""

from __future__ import annotations

import asyncio
import logging

from dealer.errors import DealerError
from dealer.game.absence import host_of, longest_seated
from dealer.game.commands import Actor, TransferHost
from dealer.gateway.push.absence import Absences
from dealer.service import LiveTable, Service

EVERY_SECONDS = 5.0

log = logging.getLogger(__name__)


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
