"""Pacing of the attackers, and the tally of each attack."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field

LEAST, RAISED = 20.0, 2.0
"""Lowest rate in messages a second, and its increase per second."""


@dataclass
class Tally:
    """The outcome of one attack; `ended` counts its visits by what ended them."""

    visits: int = 0
    connections: int = 0
    admitted: int = 0
    requests: int = 0
    granted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    ended: Counter[str] = field(default_factory=Counter)


class Pace:
    """Keeps this process below a share of one processor: the load must not starve the machine."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._begun = time.monotonic()
        self._used = time.process_time()

    async def __call__(self) -> None:
        await asyncio.sleep(0)
        used, passed = time.process_time() - self._used, time.monotonic() - self._begun
        if used > self._share * passed:
            await asyncio.sleep(used / self._share - passed)


class Throttle:
    """The message rate of all patient attackers together, kept just below what the server accepts.

    Their address is rate-limited as one: a refusal lowers the rate of all of them, and none sends
    during the retry delay. A rate that is accepted is raised again.
    """

    def __init__(self, rate: float) -> None:
        self._most = self._rate = rate
        self._next = self._slowed = self._raised = time.monotonic()

    async def __call__(self) -> None:
        """Wait for the turn of one message."""
        now = time.monotonic()
        self._rate = min(self._most, self._rate + RAISED * (now - self._raised))
        self._raised = now
        self._next = max(self._next, now) + 1 / self._rate
        await asyncio.sleep(self._next - now)

    def on_refused(self, seconds: float) -> None:
        """The address was refused and may retry after this delay."""
        now = time.monotonic()
        self._next = max(self._next, now + seconds)
        if now > self._slowed + 1:  # simultaneous refusals count as one
            self._rate, self._slowed = max(LEAST, self._rate * 0.8), now
