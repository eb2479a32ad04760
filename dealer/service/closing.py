"""Close tables on behalf of the operator: the open round first, so that it can be audited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from dealer.errors import DealerError
from dealer.eventlog import Reading
from dealer.game.commands import Actor, CloseTable, PassTime
from dealer.game.decide.shuffles import deadline

if TYPE_CHECKING:
    from dealer.service.core import Service
    from dealer.service.resident import Resident

AT_ONCE = 64
"""How many tables are closed at the same time, so that they share commits."""

_OPEN = """
SELECT s.table_id FROM stream s JOIN event e ON e.stream = s.id AND e.version = s.version
WHERE e.type <> 'TableClosed' AND e.at <= ? ORDER BY e.at
"""
_ALL = 2**63 - 1


async def open_tables(log: Reading, *, before: int | None = None) -> list[bytes]:
    """The ids of the tables that are not closed, the one that was idle the longest first.

    Only those whose newest event is from millisecond `before` or earlier, if that is given.
    """
    found = await log.fetch(_OPEN, (_ALL if before is None else before,))
    return [table for (table,) in found]


async def close_tables(
    service: Service, tables: Sequence[bytes], *, end_shuffles: bool = False
) -> AsyncIterator[tuple[bytes, DealerError | None]]:
    """Close each table, and the round that is open there, whose secret becomes public by it.

    Yields each with None, or with why it is not closed. `end_shuffles` ends a shuffle that waits
    for players as if its time were up; else such a table is not closed.
    """
    for start in range(0, len(tables), AT_ONCE):
        part = tables[start : start + AT_ONCE]
        closing = (_close(service, table, end_shuffles=end_shuffles) for table in part)
        for closed in await asyncio.gather(*closing):
            yield closed


async def _close(
    service: Service, table: bytes, *, end_shuffles: bool
) -> tuple[bytes, DealerError | None]:
    try:
        resident = await service.load(table.hex())
        if end_shuffles:
            await _end_shuffle(service, resident)
        await service.call(resident, CloseTable(Actor(host=True), forced=True))
    except DealerError as error:
        return table, error
    return table, None


async def _end_shuffle(service: Service, resident: Resident) -> None:
    """At most three steps: no more digests, no more reveals, a shuffle without the silent seats."""
    while (round_ := resident.table.round) is not None and (due := deadline(round_)) is not None:
        if not (await service.call(resident, PassTime(due))).events:
            return
