"""How much one guest may ask of the house: sizes, rates and patience, all of them settings."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Sizes in bytes, times in seconds, rates in commands a second."""

    message: int = 16 * 1024
    rate: float = 10.0
    burst: float = 20.0
    automatic_rate: float = 50.0  # entropy and cosignatures, which clients send by themselves
    automatic_burst: float = 200.0
    patience: float = 200.0  # refusals for haste in a row before the connection is closed
    address_rate: float = 100.0  # messages, handshakes and HTTP requests of one client address
    address_burst: float = 400.0
    address_bytes: float = 262_144.0  # a second, written to disk for one client address
    address_bytes_burst: float = 16_777_216.0
    address_cpu: float = 0.15  # seconds of the event loop a second, for one client address
    address_cpu_burst: float = 2.0
    tables_per_hour: float = 120.0  # opened by one client address
    tables: int = 16  # a connection
    connections: int = 5_000
    connections_per_address: int = 50
    opening: float = 5.0  # until the handshake is over, and again until the first request
    sending: float = 10.0  # until a full buffer has emptied
    closing: float = 5.0  # until the other end has closed, too
    keepalive: float = 20.0  # between pings; silent for two of them is gone
    buffer: int = 64 * 1024  # waiting to be sent before a connection counts as slow
    chunk: int = 64  # events that one that is behind gets at a time
    resume: int = 10_000  # events that a resume may be behind before it gets a snapshot
    history: int = 50_000  # events of a table whose history is made for the web
    held: int = 64  # requests that wait behind one that looks into the log
    drain: float = 30.0
