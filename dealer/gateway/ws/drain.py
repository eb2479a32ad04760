"""A drain: clients are disconnected one after the other, at the times that were announced."""

from __future__ import annotations

import asyncio
from asyncio import sleep
from collections.abc import Sequence

from dealer.gateway.wire import protocol as wire
from dealer.gateway.wire import results as r
from dealer.gateway.ws.connection import PlayerConnection

PACE = 0.002
"""Seconds between two disconnections, so that the other nodes get at most 500 resumes a second."""


def announce_drain(clients: Sequence[PlayerConnection], pace: float) -> None:
    """Send each client the time after which it is disconnected and may reconnect."""
    for index, connection in enumerate(clients):
        delay = int(1000 * pace * index)
        notice = wire.notification("session.drain", r.Drain(reconnect_in_ms=delay))
        connection.write(wire.text_frame(notice))


async def disconnect(clients: Sequence[PlayerConnection], *, within: float) -> None:
    """Close each connection at its own time, the last within so many seconds.

    Until then a client's requests are run as ever: a player is away for one reconnect, however many
    others there are.
    """
    loop = asyncio.get_running_loop()
    pace = min(PACE, max(within, 0.0) / max(len(clients), 1))
    announce_drain(clients, pace)
    started_at = loop.time()
    for index, connection in enumerate(clients):
        await sleep(max(started_at + pace * index - loop.time(), 0))
        if connection.dispatcher is not None:
            connection.dispatcher.finish()
