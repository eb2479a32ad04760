"""The requests of tables that another transaction has locked, kept until they are tried again.

Their order within a table is kept: later requests of the table wait behind them. The pauses between
two attempts grow, so that a table that stays locked costs the batches of other tables little.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import TypeAlias

from dealer.eventlog.rows import Append, Result

Waiting: TypeAlias = tuple[Append, "asyncio.Future[Result] | None"]
"""A request, and who waits for its result."""

SHORTEST = 0.002
LONGEST = 0.1
"""Seconds between two attempts; the pause doubles from the first to the last."""


@dataclass(slots=True)
class _Table:
    pause: float = SHORTEST / 2
    due: float = 0.0
    free: bool = False
    tried: bool = False
    queue: deque[Waiting] = field(default_factory=deque)


class LockedRequests:
    """Used by the writer's thread alone, but for `len`, which is how many requests are kept.

    It is true as long as a table may still be locked.
    """

    def __init__(self) -> None:
        self._tables: dict[bytes, _Table] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        return bool(self._tables)

    def queued(self, waiting: Waiting) -> bool:
        """Keep a request whose table is locked behind the others; False if its table is not."""
        table = self._tables.get(waiting[0].table)
        if table is None or not table.queue:
            return False
        table.queue.append(waiting)
        self._count += 1
        return True

    def due(self, limit: int) -> list[Waiting]:
        """At most `limit` requests to try now, in their order; then call `keep`.

        Of a table that was locked at the last attempt it is one: the others need not be sent to
        the database again and again.
        """
        now = monotonic()
        found: list[Waiting] = []
        for table in self._tables.values():
            if table.due > now or len(found) >= limit:
                continue
            count = min(len(table.queue), limit - len(found)) if table.free else 1
            found += [table.queue.popleft() for _ in range(count)]
            table.tried = True
        self._count -= len(found)
        return found

    def keep(self, locked: Sequence[Waiting]) -> None:
        """Keep the requests of the last batch that were locked, before those that wait already."""
        now = monotonic()
        for waiting in reversed(locked):
            table = self._tables.setdefault(waiting[0].table, _Table(tried=True))
            table.queue.appendleft(waiting)
        still = {request.table for request, _ in locked}
        for name, table in self._tables.items():
            if table.tried:
                table.tried, table.free = False, name not in still
                table.pause = SHORTEST / 2 if table.free else min(2 * table.pause, LONGEST)
                table.due = now if table.free else now + table.pause
        self._count += len(locked)
        self._tables = {name: table for name, table in self._tables.items() if table.queue}

    def pause(self) -> float | None:
        """Seconds until the next attempt; None if nothing is kept."""
        if not self._tables:
            return None
        return max(0.0, min(table.due for table in self._tables.values()) - monotonic())

    def drain(self) -> list[Waiting]:
        """All that is kept; afterwards nothing is."""
        found = [waiting for table in self._tables.values() for waiting in table.queue]
        self._tables.clear()
        self._count = 0
        return found
