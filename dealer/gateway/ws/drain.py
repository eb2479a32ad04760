"""Beginning of a drain: clients learn when to reconnect."""

from __future__ import annotations

from collections.abc import Sequence

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
