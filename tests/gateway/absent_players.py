"""Tables whose players and host lose their connection, by a clock that only the test advances."""

from __future__ import annotations

from typing import Any

from dealer.game.absence import HOST_TOKEN
from dealer.gateway.presence.absence import HostAbsence
from tests.gateway.conftest import Connect, ManualClock, OpenGateway
from tests.gateway.rpc_client import eventually
from tests.gateway.tables import SeatedTable, seat_players

LONG = 600.0
"""Seconds after which an absent host is replaced."""


class Watched:
    """The hosts of one node, by a clock that only the test advances."""

    def __init__(self, node: Any) -> None:
        self.node = node
        self.service = node.context.service
        self.absences = node.context.absences
        self.clock = ManualClock(1000.0)
        self.absences._clock = self.clock
        self.hosts = HostAbsence(self.service, self.absences, seconds=LONG)

    async def until(self, table: str, *, present: set[int], host: bool) -> None:
        """Wait until the node knows who is there: these seats, and the host token's holder."""
        live_table = self.service.tables.get(table)

        def matches() -> bool:
            state, known = live_table.table, self.absences._present.get(live_table, ())
            seats = {seat for seat in state.seats if self.absences.is_present(live_table, seat)}
            there = (HOST_TOKEN in known) == host and self.service.presence.known(live_table)
            absent = self.absences._since.get(live_table, {})
            counted = {seat for seat in state.seats if state.holder(seat) in absent}
            return seats == present and there and counted == state.seats.keys() - present

        await eventually(matches)

    async def host_after(self, table: str, seconds: float) -> int | None:
        """The seat of the host when this time has passed."""
        self.clock.now += seconds
        live_table = self.service.tables.get(table)
        await self.hosts.check(live_table)
        seat: int | None = live_table.table.host_seat
        return seat


async def watched_table(
    open_node: OpenGateway, connect: Connect, *, players: int
) -> tuple[Watched, SeatedTable]:
    """A table with this many players at a node that is watched."""
    watched = Watched(await open_node())
    return watched, await seat_players(connect, watched.node, players=players)
