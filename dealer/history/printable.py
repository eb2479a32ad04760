"""What a log says, made safe to print anywhere: names that players chose, and times."""

from __future__ import annotations

from datetime import UTC, datetime

LAST_MS = 253_402_300_799_000
"""The last second that has a date here; a log may name a later one."""


def harmless(text: str) -> str:
    """A text that a guest chose, without what could lead a terminal astray."""
    return "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)


def when(at: int) -> datetime:
    """The moment, UTC, that is so many milliseconds after 1970; at the latest in the year 9999."""
    return datetime.fromtimestamp(min(at, LAST_MS) / 1000, UTC)
