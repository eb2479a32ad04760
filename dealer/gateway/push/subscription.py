"""Subscription: one session's cursor into the events of one table, and the transport for them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from dealer.game.state import SeatHolder
from dealer.game.view import SPECTATOR, Viewer
from dealer.gateway.close_codes import CloseCode
from dealer.gateway.rate_limit.budgets import ClientBudget
from dealer.service import LiveTable
from dealer.service.service_keys import ServiceKey


class Transport(Protocol):
    """Where a session writes to: a WebSocket connection.

    `address` is the client's, as far as trusted proxies report it; `budget` that of this address,
    or of the connection's service key.
    """

    address: str
    budget: ClientBudget

    @property
    def paused(self) -> bool:
        """Whether the write buffer is over its limit, so that no more should be written."""

    def charge_to(self, budget: ClientBudget, key: ServiceKey) -> None:
        """Count the connection, from now on, as one of this service key."""

    def write(self, data: bytes) -> None:
        """Send whole WebSocket frames."""

    async def drained(self) -> bool:
        """Wait until it is no longer paused; False once it is closed."""

    def pause(self) -> None:
        """Stop reading."""

    def resume(self) -> None:
        """Start reading again."""

    def close_with(self, code: CloseCode, reason: str) -> None:
        """Send a close frame and end the session."""

    def abort(self) -> None:
        """Close the connection at once: a request that came on it cannot be answered."""


class TableRole(Protocol):
    """The role of a connection at a table, see `membership.Membership`."""

    host: bool
    live_table: LiveTable

    @property
    def holder(self) -> SeatHolder | None:
        """The seat that the connection acts for."""

    @property
    def settled(self) -> bool:
        """Whether it is on disk which seat that is."""

    def may_watch(self) -> bool:
        """Whether the connection may see the table at the moment."""

    def is_spectator(self) -> bool:
        """Whether it is neither host nor player."""


@dataclass(slots=True, eq=False)
class Subscription:
    """One session's cursor into one table.

    `viewer` is the player whose private faces are pushed, SPECTATOR for none; it follows the
    membership's seat only from the answer that confirms it. `cursor` is the last version that was
    sent. `presence` is the last attendance sent to the client, encoded; None if it never asked.
    """

    transport: Transport
    membership: TableRole
    live_table: LiveTable = field(init=False)
    viewer: Viewer = SPECTATOR
    presence: bytes | None = None
    cursor: int = 0
    started: bool = False
    live: bool = False  # up to date: events are written in the callback of the commit
    ended: bool = False
    task: asyncio.Task[None] | None = None

    def __post_init__(self) -> None:
        self.live_table = self.membership.live_table

    def has_lost_seat(self) -> bool:
        """Whether the viewer no longer holds the seat; never true of a spectator."""
        return self.viewer is not None and not self.live_table.table.still_seated(self.viewer)

    def is_up_to(self, version: int) -> bool:
        """Whether every event up to a version was sent, or none is to be sent at all."""
        return self.ended or not self.started or (self.live and self.cursor >= version)

    def only_watches(self) -> bool:
        """Whether events are pushed to it as to a spectator."""
        return self.started and self.membership.is_spectator()
