"""How late the house looks up from its work: a timer that should ring, and when it does."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dealer.gateway.metrics import Histogram

EVERY = 0.5
"""Seconds between two looks."""


class Lag:
    """Observes in `into`, in seconds, by how much each timer is late; `clock` is the loop's."""

    def __init__(self, into: Histogram, *, clock: Callable[[], float]) -> None:
        self._into = into
        self._clock = clock
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._wait()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self) -> None:
        due = self._clock() + EVERY
        self._timer = asyncio.get_running_loop().call_at(due, self._ring, due)

    def _ring(self, due: float) -> None:
        self._into.observe(max(0.0, self._clock() - due))
        self._wait()
