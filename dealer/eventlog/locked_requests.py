"""Requests whose table another transaction has locked, kept until they are tried again.

The order within a table is kept: later requests of the table are queued behind the locked ones.
The delay between two attempts grows, so that a table that stays locked costs the batches of other
tables little.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic

from dealer.backoff import Backoff
from dealer.eventlog.rows import Append

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
    queue: deque[Append] = field(default_factory=deque)


class LockedRequests:
    """Retry queues by table; used by the thread that holds the writer's lock, except `count`.

    `tables` are those that may be locked. `count` is the number of queued requests: those that
    `due` returned are not counted, but their tables are known until `put_back`.
    """

    def __init__(self) -> None:
        self.tables: dict[bytes, _LockedTable] = {}
        self.count = 0

    def queue_behind(self, append: Append) -> bool:
        """Queue a request whose table has locked requests; False if its table has none."""
        table = self.tables.get(append.table)
        if table is None or not table.queue:
            return False
        table.queue.append(append)
        self.count += 1
        return True

    def due(self, limit: int) -> list[Append]:
        """Remove and return at most `limit` requests to try now, in order; then call `put_back`.

        Of a table that was locked at the last attempt this is one request: the others need not be
        sent to the database each time.
        """
        now = monotonic()
        found: list[Append] = []
        for table in self.tables.values():
            if table.due > now or len(found) >= limit:
                continue
            count = min(len(table.queue), limit - len(found)) if table.unlocked else 1
            found += [table.queue.popleft() for _ in range(count)]
            table.tried = True
        self.count -= len(found)
        return found

    def put_back(self, locked: Sequence[Append]) -> None:
        """Queue the locked requests of the last batch, before those of their tables."""
        now = monotonic()
        for append in reversed(locked):
            table = self.tables.setdefault(append.table, _LockedTable(tried=True))
            table.queue.appendleft(append)
        still_locked = {request.table for request in locked}
        for table_id, table in self.tables.items():
            if table.tried:
                table.tried, table.unlocked = False, table_id not in still_locked
                if table.unlocked:
                    table.backoff.reset()
                    table.due = now
                else:
                    table.due = now + table.backoff.next()
        self.count += len(locked)
        self.tables = {key: table for key, table in self.tables.items() if table.queue}

    def seconds_until_due(self) -> float | None:
        """Seconds until the next attempt; None if no table is locked."""
        if not self.tables:
            return None
        return max(0.0, min(table.due for table in self.tables.values()) - monotonic())

    def drain(self) -> list[Append]:
        found = [append for table in self.tables.values() for append in table.queue]
        self.tables.clear()
        self.count = 0
        return found
