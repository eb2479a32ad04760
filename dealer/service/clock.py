"""The wall clock, and whether it agrees with that of the database server.

Events and the journal carry the wall clock's time. Waits are measured by the event loop's
monotonic clock; only what is left of a wait that began in another process is taken from the wall
clock, so nodes that share a log need clocks that agree.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from dealer.eventlog import Reading

Clock = Callable[[], int]
"""Milliseconds since 1970, UTC; it may be stepped at any time, back or forth."""

APART_MS = 2000
"""How far this machine's clock may be from the database server's."""

_ASK = "SELECT extract(epoch FROM clock_timestamp()) * 1000"


def utc_ms() -> int:
    """The system's wall clock."""
    return time.time_ns() // 1_000_000


async def apart(log: Reading, now: Clock) -> str | None:
    """A sentence, without its full stop, if `now` and the server's clock are too far apart.

    A file on this machine has no other clock. However long the question took, the server read its
    clock between our two looks at ours. Raises DatabaseError.
    """
    if log.server is None:
        return None
    before = now()
    ((there,),) = await log.fetch(_ASK)
    after, at = now(), int(there)
    for least, word in ((before - at, "ahead of"), (at - after, "behind")):
        if least > APART_MS:
            seconds = abs((before + after) // 2 - at) // 1000
            return (
                f"This machine's clock is {seconds} s {word} the database server's; set both by NTP"
            )
    return None
