"""Beginning of a drain: clients learn when to reconnect, and unused connections are closed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dealer.gateway.http.client_connection import ClientConnection
from dealer.gateway.wire import protocol as wire
from dealer.gateway.wire import results as r
from dealer.gateway.ws.connection import PlayerConnection

SPREAD_MS = 5_000
"""Interval over which the reconnections after a drain are spread."""


def announce_drain(clients: Sequence[PlayerConnection]) -> None:
    """Send each client the time after which it may reconnect."""
    for index, connection in enumerate(clients):
        delay = SPREAD_MS // 5 + SPREAD_MS * index // len(clients)
        notice = wire.notification("session.drain", r.Drain(reconnect_in_ms=delay))
        connection.write(wire.text_frame(notice))


def close_idle(connections: Iterable[ClientConnection]) -> None:
    """Close the connections that are kept between two requests."""
    for connection in list(connections):
        connection.close_if_idle()
