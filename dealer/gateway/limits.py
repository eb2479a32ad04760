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
    held: int = 64  # requests that wait behind one that looks into the log
    drain: float = 30.0


class Bucket:
    """An allowance that refills at `rate` a second up to `burst`; the caller brings the clock."""

    __slots__ = ("_at", "_burst", "_level", "_rate")

    def __init__(self, *, rate: float, burst: float, now: float) -> None:
        self._rate = rate
        self._burst = burst
        self._level = burst
        self._at = now

    def charge(self, more: float) -> None:
        """Take so many more for what was just granted; what is not there is owed."""
        self._level -= more

    def take(self, now: float) -> float:
        """0.0 if one was there and is taken; else the seconds until one will be."""
        level = min(self._burst, self._level + (now - self._at) * self._rate)
        self._at = now
        if level >= 1.0:
            self._level = level - 1.0
            return 0.0
        self._level = level
        return (1.0 - level) / self._rate if self._rate > 0 else 1.0
