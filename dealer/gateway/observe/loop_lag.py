"""Event loop lag: a timer at a fixed interval, and by how much the loop runs it late."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dealer.histogram import Histogram

INTERVAL = 0.5
"""Seconds between two measurements."""


class LoopLagMonitor:
    """Observes the lag of each timer, in seconds, in `histogram`; `clock` is the loop's."""

    def __init__(self, histogram: Histogram, *, clock: Callable[[], float]) -> None:
        self._histogram = histogram
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        due = self._clock() + INTERVAL
        self._timer = asyncio.get_running_loop().call_at(due, self._tick, due)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self, due: float) -> None:
        self._histogram.observe(max(0.0, self._clock() - due))
        self.start()
