"""Appends whose table another transaction has locked, until they can be decided.

A process that freezes in a transaction delays only the tables that it has locked. The order within
a table is kept: later appends to it queue behind the locked ones. The delay between two attempts
grows, so that a table that stays locked costs the batches of other tables little.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from time import monotonic

import msgspec

from dealer.backoff import Backoff
from dealer.eventlog.rows import Append, Result

FIRST_DELAY = 0.002
LONGEST_DELAY = 0.1
"""Seconds between two attempts on one table."""

SEEN_SECONDS = 5.0
"""A table that was not tried for so long may have been unlocked and locked again in between."""

_AT_ONCE = 512
"""Appends of one table that are tried together, once it is free."""

_NEW_BACKOFF = partial(Backoff, first=FIRST_DELAY, longest=LONGEST_DELAY)


class Locked(msgspec.Struct, frozen=True):
    """Not decided: another transaction locks the table.

    `in_doubt` if an earlier attempt, whose answer was lost, may have written it.
    """

    in_doubt: bool = False


@dataclass(slots=True)
class _Table:
    backoff: Backoff = field(default_factory=_NEW_BACKOFF)
    queue: deque[Append] = field(default_factory=deque)
    since: float | None = None  # when it was found locked, None once it was free
    tried: float = 0.0
    due: float = 0.0


class LockedTables:
    """The tables that were locked when they were last tried, with their appends.

    Of a table that stays locked for `seconds` all appends fail. `count` are those that are queued.
    `in_doubt` are those that an earlier attempt may have written.
    """

    def __init__(self, *, seconds: float) -> None:
        self.count = 0
        self.in_doubt: set[Append] = set()
        self._seconds = seconds
        self._tables: dict[bytes, _Table] = {}
        self._trying: Sequence[Append] = ()  # taken, and without a result

    def take(self, requests: Sequence[Append]) -> Sequence[Append]:
        """What to try now, in the order of each table: what is due, and those of `requests` that
        do not queue behind it. Then call `record`.

        Of a table that was locked at the last attempt one append is tried: the others need not be
        sent to the database each time.
        """
        if not self._tables:
            return requests
        now = monotonic()
        batch: list[Append] = []
        for table in self._tables.values():
            if table.due <= now:
                count = min(len(table.queue), _AT_ONCE if table.since is None else 1)
                batch += [table.queue.popleft() for _ in range(count)]
        for request in requests:
            known = self._tables.get(request.table)
            if known is not None and known.queue:
                known.queue.append(request)
            else:
                batch.append(request)
        self.count, self._trying = self._counted(), batch
        return batch

    def record(
        self, batch: Sequence[Append], results: Sequence[Result | Locked]
    ) -> tuple[Sequence[Append], Sequence[Result | Locked]]:
        """The decided appends and their results; the others are queued, before those of `take`.

        Those whose table has been locked for too long are decided, as `Locked`.
        """
        if not self._tables and Locked not in map(type, results):
            return batch, results
        now, self._trying = monotonic(), ()
        decided: list[tuple[Append, Result | Locked]] = []
        locked: dict[bytes, list[Append]] = {}
        for request, result in zip(batch, results, strict=True):
            if isinstance(result, Locked):
                locked.setdefault(request.table, []).append(request)
                if result.in_doubt:
                    self.in_doubt.add(request)
                continue
            decided.append((request, result))
            self.in_doubt.discard(request)
            table = self._tables.get(request.table)
            if table is not None:
                table.since, table.due = None, now
                table.backoff.reset()
        for table_id, requests in locked.items():
            table = self._tables.setdefault(table_id, _Table())
            table.queue.extendleft(reversed(requests))
            if table.since is None or now - table.tried >= SEEN_SECONDS:
                table.since = now
            table.tried, table.due = now, now + table.backoff.next()
            if now - table.since >= self._seconds:
                for request in table.queue:
                    decided.append((request, Locked(request in self.in_doubt)))
                    self.in_doubt.discard(request)
                table.queue.clear()
        self._tables = {
            table_id: table
            for table_id, table in self._tables.items()
            if table.queue or (table.since is not None and now - table.tried < SEEN_SECONDS)
        }
        self.count = self._counted()
        return [request for request, _ in decided], [result for _, result in decided]

    def seconds_until_due(self) -> float | None:
        """Seconds until the next attempt; None if nothing is queued."""
        due = [table.due for table in self._tables.values() if table.queue]
        return max(0.0, min(due) - monotonic()) if due else None

    def drain(self) -> list[Append]:
        """Remove and return all appends, also those that were taken and without a result."""
        queued = [request for table in self._tables.values() for request in table.queue]
        found = [*self._trying, *queued]
        self._tables.clear()
        self.count, self._trying = 0, ()
        return found

    def _counted(self) -> int:
        return sum([len(table.queue) for table in self._tables.values()])
