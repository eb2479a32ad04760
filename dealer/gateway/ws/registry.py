"""The open connections of clients: counted by address, pinged in turn, and closed."""

from __future__ import annotations

import logging

from websockets.protocol import OPEN

from dealer.gateway.close_codes import RESTART, CloseCode
from dealer.gateway.http.client_connection import ClientConnection
from dealer.gateway.rate_limit.budgets import ClientBudget
from dealer.gateway.rpc.context import GatewayContext
from dealer.gateway.ws.client_ip import client_network
from dealer.gateway.ws.connection import PlayerConnection
from dealer.service.service_keys import ServiceKey

_PING = b"\x89\x00"
_SILENT_PINGS = 2

BEATS = 16
"""Groups in which clients are pinged one after the other, to spread the load."""


class ConnectionRegistry:
    """The open connections of one gateway."""

    def __init__(self, context: GatewayContext) -> None:
        self.connections: set[PlayerConnection] = set()
        self._context = context
        self._arrivals = 0

    def on_connect(self, connection: PlayerConnection) -> None:
        """Register an accepted connection."""
        peer = connection.remote_address
        connection.peer = peer[0] if isinstance(peer, tuple) else ""
        self._arrivals += 1
        connection.beat = self._arrivals % BEATS
        self.connections.add(connection)
        connection.budget = self.budget_at(connection, connection.peer)
        connection.budget.connections += 1

    def on_disconnect(self, connection: PlayerConnection) -> None:
        self.connections.discard(connection)
        connection.budget.connections -= 1

    def budget_at(self, connection: ClientConnection, address: str) -> ClientBudget:
        """Set the address by which a connection is counted; the budget of the address."""
        connection.address = client_network(address)
        return self._context.budgets.client(connection.address, self._context.clock())

    def clients(self) -> list[PlayerConnection]:
        """The connections that have a session."""
        return [
            connection
            for connection in self.connections
            if connection.dispatcher and connection.protocol.state is OPEN
        ]

    def on_close(self, code: CloseCode) -> None:
        """Count and log that the server closes a connection."""
        self._context.metrics.closed[code] += 1
        if code is CloseCode.TOO_SLOW:
            self._context.log_throttle.log(logging.INFO, "slow consumer dropped", code=int(code))
        elif code is not CloseCode.SERVICE_RESTART:
            self._context.log_throttle.log(logging.INFO, "connection closed", code=int(code))

    def end_service(self, key: ServiceKey) -> None:
        """End the connections of a key that is no longer valid."""
        for connection in list(self.connections):
            if connection.service_key == key:
                connection.end_service()

    def ping(self, beat: int) -> None:
        """Ping one of `BEATS` groups of clients, and close those that missed two pings."""
        for connection in self.clients():
            if connection.beat != beat % BEATS:
                continue
            if connection.silent >= _SILENT_PINGS:
                connection.close_with(
                    CloseCode.TOO_SLOW, "no answer to pings: reconnect and resume"
                )
                continue
            connection.silent += 1
            if not connection.paused:
                connection.write(_PING)

    def close_all(self) -> None:
        """Close what is still open at the end of a drain."""
        for connection in self.clients():
            connection.close_with(CloseCode.SERVICE_RESTART, RESTART)
