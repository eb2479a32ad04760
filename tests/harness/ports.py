"""Ports for servers that keep theirs when they are restarted."""

from __future__ import annotations

import random
import socket

PORTS = range(10_000, 32_000)
"""Below those that the system gives to outgoing connections, so that none of them takes the port
of a server between its end and its restart."""


def unused_port() -> int:
    """A port of 127.0.0.1 on which nothing listens."""
    while True:
        port = random.choice(PORTS)
        with socket.socket() as found:
            try:
                found.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
