"""Nodes that share a log share a clock: a deadline is one node's, its players another's."""

from __future__ import annotations

from collections.abc import Callable

from dealer.eventlog import Reading

APART_MS = 2000
"""How far this machine's clock may be from the database server's."""

_ASK = "SELECT extract(epoch FROM clock_timestamp()) * 1000"


async def apart(log: Reading, now: Callable[[], int]) -> str | None:
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
