"""Transport: what sessions, and what is pushed to them, need of a connection.

A WebSocket connection is one (`clients.py`), and a request to `/rpc` (`posts.py`).
"""

from __future__ import annotations

from typing import Protocol

from dealer.gateway.close_codes import CloseCode
from dealer.gateway.rate_limit.budgets import ClientBudget
from dealer.service.identity.service_keys import ServiceKey


class Transport(Protocol):
    """Where a session writes to.

    `address` is the client's, as far as trusted proxies report it; `budget` is this address's, or
    the service key's of the connection.
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
