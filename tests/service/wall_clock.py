"""A wall clock that a test steps."""

from __future__ import annotations

from dealer.service.clock import utc_ms

HOUR = 3_600_000
"""Milliseconds."""


class WallClock:
    """The system's clock, stepped by `ms`."""

    def __init__(self) -> None:
        self.ms = 0

    def __call__(self) -> int:
        return utc_ms() + self.ms
