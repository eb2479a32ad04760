"""Limits of the server: sizes, rates and timeouts, each a setting (`DEALER_LIMIT_*`)."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes in bytes, times in seconds, rates in commands per second."""

    message: int = 16 * 1024
    rate: float = 10.0
    burst: float = 20.0
    automatic_rate: float = 50.0  # entropy and cosignatures, which clients send automatically
    automatic_burst: float = 200.0
    patience: float = 200.0  # rate-limited messages in a burst before the connection is closed
    address_rate: float = 100.0  # messages, handshakes and HTTP requests of one client address
    address_burst: float = 400.0
    address_bytes: float = 327_680.0  # per second, written to disk for one client address
    address_bytes_burst: float = 16_777_216.0
    address_cpu: float = 0.05  # event loop seconds per second, for one client address
    address_cpu_burst: float = 2.0
    tables_per_hour: float = 120.0  # opened by one client address
    house_tables_per_hour: float = 3600.0  # opened by all clients that have no service key
    key_rate: float = 200.0  # messages and requests of one service key, on all its connections
    key_burst: float = 400.0
    key_bytes: float = 10_485_760.0  # per second, written to disk for one service key
    key_bytes_burst: float = 134_217_728.0
    key_cpu: float = 0.25  # event loop seconds per second, for one service key
    key_cpu_burst: float = 5.0
    key_connections: int = 500  # of one service key, WebSockets and others
    tables: int = 16  # per connection
    connections: int = 5_000
    connections_per_address: int = 50
    opening: float = 5.0  # timeout of the handshake, and then of the first request
    idle: float = 60.0  # until the next request over HTTP, or the reader of a bundle, goes on
    sending: float = 10.0  # timeout for a full write buffer to be sent
    closing: float = 5.0  # timeout of the closing handshake
    # Between pings; a client that misses two is disconnected. Three times this is how late others
    # see a lost connection, and players wait 12 s at most, as in other servers of games (Colyseus
    # pings every 3 s); the 25 s of Socket.IO are for applications without turns.
    # A phone pays for it only while its screen is on, which takes more than the radio: the browser
    # closes the socket of a page that is left, and suspends one behind a locked screen, which then
    # answers no ping.
    keepalive: float = 4.0
    buffer: int = 64 * 1024  # bytes waiting to be sent before a connection counts as slow
    chunk: int = 64  # events per read of the backlog
    resume: int = 10_000  # missed events above which a resume sends a snapshot instead
    history: int = 50_000  # events of a table above which no history is made over HTTP
    held: int = 64  # requests queued behind one that reads the log
    drain: float = 30.0
