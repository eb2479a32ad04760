"""Absence: which players of a table have no connection, as the server knows it at a command.

It is no part of a table's state: the events of the command say what followed from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from dealer.errors import amount
from dealer.game.state import SeatHolder, Table

HOST_TOKEN = SeatHolder(0, 0)
"""Stands for the connections with the host token, in place of a seat."""


class Absence(NamedTuple):
    """Seconds without a connection of those who have none, by seat holder and `HOST_TOKEN`.

    After `long` seconds a player's seat may be freed by other players, and a host replaced by one.
    `opener_is_here` says that the one who opened the table has a connection, and no seat.
    """

    seconds: Mapping[SeatHolder, float]
    long: float
    opener_is_here: bool = False

    def is_long(self, holder: SeatHolder) -> bool:
        """Whether this player, or the one with the host token, has been absent for long."""
        return self.seconds.get(holder, 0.0) >= self.long


def host_of(table: Table) -> SeatHolder:
    """The seat holder of the host; HOST_TOKEN while the opener of the table is host."""
    return table.holder(table.host_seat) or HOST_TOKEN


def longest_seated(table: Table, among: set[int]) -> int | None:
    """The seat among these whose player took it first; bots do not count."""
    seated = [
        (player.taken_at, seat)
        for seat, player in table.seats.items()
        if seat in among and not player.bot
    ]
    return min(seated)[1] if seated else None


def minutes(seconds: float) -> str:
    """A time in words: "2 minutes"; below a minute in seconds."""
    number, unit = (int(seconds // 60), "minute") if seconds >= 60 else (int(seconds), "second")
    return amount(number, unit)
