"""One guest's place in the events of one table, and the way on which they come to them."""

from __future__ import annotations

import asyncio
from typing import Protocol

from dealer.gateway.rate_limit import ClientBudget
from dealer.service import Resident


class Outlet(Protocol):
    """What a session writes to: a socket, as far as it needs to know one.

    `address` is the client's, as far as trusted proxies say it; `budget` that of this address.
    """

    address: str
    budget: ClientBudget

    @property
    def paused(self) -> bool:
        """Whether so much waits to be sent that no more should be written."""

    def write(self, data: bytes) -> None:
        """Send whole WebSocket frames."""

    async def writable(self) -> bool:
        """Wait until it is not paused any more; False once it is closed."""

    def hold(self) -> None:
        """Take in no more for now."""

    def release(self) -> None:
        """Take in more again."""

    def end(self, code: int, reason: str) -> None:
        """Say why, and close for good."""


class Subscription:
    """One guest's place in the events of one table.

    `seat` (with the version of its SeatTaken, `since`) is who looks, None a spectator; `host` says
    that they may look whatever the rules say. `cursor` is the last version that was sent. `acts` is
    the seat (and its `since`) that they act for, told of events or not; `presence` what they were
    told last of who is here, None if they never asked.
    """

    __slots__ = (
        "acts",
        "cursor",
        "ended",
        "host",
        "live",
        "outlet",
        "presence",
        "resident",
        "seat",
        "since",
        "started",
        "task",
    )

    def __init__(self, outlet: Outlet, resident: Resident) -> None:
        self.outlet = outlet
        self.resident = resident
        self.seat: int | None = None
        self.since = 0
        self.host = False
        self.acts: tuple[int, int] | None = None
        self.presence: bytes | None = None
        self.cursor = 0
        self.started = False
        self.live = False  # at the head
        self.ended = False
        self.task: asyncio.Task[None] | None = None

    def still_sits(self) -> bool:
        """Whether the seat is still that of who looks from it."""
        player = None if self.seat is None else self.resident.table.seats.get(self.seat)
        return player is not None and player.since == self.since

    def acts_for_a_seat(self) -> bool:
        """Whether the seat that they act for is still theirs."""
        if self.acts is None:
            return False
        seat, since = self.acts
        player = self.resident.table.seats.get(seat)
        return player is not None and player.since == since

    def may_look(self) -> bool:
        """Whether they may see this table now."""
        return self.host or self.resident.table.rules.watched or self.acts_for_a_seat()

    def only_watches(self) -> bool:
        """Whether they are told of events and are neither host nor player."""
        return self.started and not self.host and not self.acts_for_a_seat()
