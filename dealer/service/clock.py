"""The wall clock, and its skew against the database server's.

Events and the journal carry the wall clock's time. Waits are measured by the event loop's monotonic
clock; only the rest of a wait that began in another process is computed from the wall clock, so
nodes that share a log need synchronised clocks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from time import monotonic_ns

from dealer.eventlog import ReadOnlyLog

Clock = Callable[[], int]
"""Milliseconds since 1970, UTC; it may be stepped at any time, in both directions."""

MAX_CLOCK_SKEW_MS = 2000
"""The largest allowed difference from the database server's clock."""

_ASK = "SELECT extract(epoch FROM clock_timestamp()) * 1000"


def utc_ns() -> int:
    """Nanoseconds since 1970."""
    return time.time_ns()


def utc_ms() -> int:
    """The system's wall clock."""
    return time.time_ns() // 1_000_000


def elapsed_ms() -> int:
    """Milliseconds since some moment; it only runs, and is never set."""
    return monotonic_ns() // 1_000_000


class SteadyClock:
    """The wall clock without the steps forward that it has made since: ms since 1970.

    No faster than `elapsed`, so that a clock that is put right leaves it behind until the next
    start. It has to be read regularly.
    """

    def __init__(self, wall: Clock, elapsed: Clock = elapsed_ms) -> None:
        self._wall, self._elapsed = wall, elapsed
        self._least = wall() - elapsed()

    def __call__(self) -> int:
        elapsed = self._elapsed()
        self._least = min(self._least, self._wall() - elapsed)
        return elapsed + self._least


async def clock_skew(log: ReadOnlyLog, now: Clock) -> str | None:
    """A sentence, without its full stop, if `now` and the server's clock are too far apart.

    None for a file, which has no other clock. However long the query takes, the server reads its
    clock between the two readings of this one. Raises DatabaseError.
    """
    if log.dialect == "sqlite":
        return None
    before = now()
    ((there,),) = await log.fetch(_ASK)
    after, at = now(), int(there)
    for least, word in ((before - at, "ahead of"), (at - after, "behind")):
        if least > MAX_CLOCK_SKEW_MS:
            seconds = abs((before + after) // 2 - at) // 1000
            return (
                f"This machine's clock is {seconds} s {word} the database server's; set both by NTP"
            )
    return None
