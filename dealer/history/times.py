"""Times of a log as they are printed."""

from __future__ import annotations

from datetime import UTC, datetime

_LAST_MS = 253_402_300_799_000
"""The last second that `datetime` can represent; a log may contain later times."""


def utc(at: int) -> datetime:
    """The UTC time of `at`, in milliseconds since 1970; at most in the year 9999."""
    return datetime.fromtimestamp(min(at, _LAST_MS) / 1000, UTC)
