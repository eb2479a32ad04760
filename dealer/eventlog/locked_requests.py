"""Requests whose table another transaction has locked, kept until they are tried again.

The order within a table is kept: later requests of the table are queued behind the locked ones.
The delay between two attempts grows, so that a table that stays locked costs the batches of other
tables little.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic
from typing import TypeAlias

from dealer.backoff import Backoff
from dealer.eventlog.rows import Append, Result

Pending: TypeAlias = tuple[Append, "asyncio.Future[Result] | None"]
"""A request and the future that gets its result, if a caller waits for one."""

FIRST_DELAY = 0.002
LONGEST_DELAY = 0.1
"""Seconds between two attempts on one table."""

_NEW_BACKOFF = partial(Backoff, first=FIRST_DELAY, longest=LONGEST_DELAY)


@dataclass(slots=True)
class _LockedTable:
    backoff: Backoff = field(default_factory=_NEW_BACKOFF)
    due: float = 0.0
    unlocked: bool = False
    tried: bool = False
    queue: deque[Pending] = field(default_factory=deque)


class LockedRequests:
    """Retry queues by table; used by the thread that holds the writer's lock, except `len`.

    `len` is the number of queued requests. The truth value is whether a table may be locked: the
    requests that `due` returned are not counted, but their tables are known until `put_back`.
    """

    def __init__(self) -> None:
        self._tables: dict[bytes, _LockedTable] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        return bool(self._tables)

    def queue_behind(self, pending: Pending) -> bool:
        """Queue a request whose table has locked requests; False if its table has none."""
        table = self._tables.get(pending[0].table)
        if table is None or not table.queue:
            return False
        table.queue.append(pending)
        self._count += 1
        return True

    def due(self, limit: int) -> list[Pending]:
        """Remove and return at most `limit` requests to try now, in order; then call `put_back`.

        Of a table that was locked at the last attempt this is one request: the others need not be
        sent to the database each time.
        """
        now = monotonic()
        found: list[Pending] = []
        for table in self._tables.values():
            if table.due > now or len(found) >= limit:
                continue
            count = min(len(table.queue), limit - len(found)) if table.unlocked else 1
            found += [table.queue.popleft() for _ in range(count)]
            table.tried = True
        self._count -= len(found)
        return found

    def put_back(self, locked: Sequence[Pending]) -> None:
        """Queue the locked requests of the last batch, before those of their tables."""
        now = monotonic()
        for pending in reversed(locked):
            table = self._tables.setdefault(pending[0].table, _LockedTable(tried=True))
            table.queue.appendleft(pending)
        still_locked = {request.table for request, _ in locked}
        for table_id, table in self._tables.items():
            if table.tried:
                table.tried, table.unlocked = False, table_id not in still_locked
                if table.unlocked:
                    table.backoff.reset()
                    table.due = now
                else:
                    table.due = now + table.backoff.next()
        self._count += len(locked)
        self._tables = {key: table for key, table in self._tables.items() if table.queue}

    def seconds_until_due(self) -> float | None:
        """Seconds until the next attempt; None if no table is locked."""
        if not self._tables:
            return None
        return max(0.0, min(table.due for table in self._tables.values()) - monotonic())

    def drain(self) -> list[Pending]:
        found = [pending for table in self._tables.values() for pending in table.queue]
        self._tables.clear()
        self._count = 0
        return found
