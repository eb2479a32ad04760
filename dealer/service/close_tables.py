"""Forced closing of tables: the open round is closed first, so that it can be audited."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

from dealer.errors import DealerError
from dealer.eventlog import ReadOnlyLog
from dealer.game.commands import Actor, CheckDeadlines, CloseTable
from dealer.game.decide.shuffles import deadline
from dealer.service.live_table import LiveTable
from dealer.service.service import Service

AT_ONCE = 64
"""Tables that are closed concurrently, so that they share commits."""

_OPEN = """
SELECT s.table_id FROM stream s JOIN event e ON e.stream = s.id AND e.version = s.version
WHERE e.type <> 'TableClosed' AND e.at <= ? ORDER BY e.at
"""
_ALL = 2**63 - 1


async def open_tables(log: ReadOnlyLog, *, before: int | None = None) -> list[bytes]:
    """The ids of the tables that are not closed, the longest idle one first.

    Only those whose newest event is from millisecond `before` or earlier, if that is given.
    """
    found = await log.fetch(_OPEN, (_ALL if before is None else before,))
    return [table for (table,) in found]


async def force_close(service: Service, live_table: LiveTable) -> None:
    """Close a table with its open round, as the host; raises what `Service.execute` raises."""
    await service.execute(live_table, CloseTable(Actor(host=True), forced=True))


async def close_tables(
    service: Service, tables: Sequence[bytes], *, end_shuffles: bool = False
) -> AsyncIterator[tuple[bytes, DealerError | None]]:
    """Close each table with its open round, which makes the round's secret public.

    Yields each id with None, or with the error. `end_shuffles` ends a shuffle that waits for
    players as if its time were up; without it such a table is not closed.
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
        live_table = await service.load(table.hex())
        if end_shuffles:
            await _end_shuffle(service, live_table)
        await force_close(service, live_table)
    except DealerError as error:
        return table, error
    return table, None


async def _end_shuffle(service: Service, live_table: LiveTable) -> None:
    """At most three steps: no more digests, no more reveals, a shuffle without the silent seats."""
    while (round_ := live_table.table.round) is not None and (due := deadline(round_)) is not None:
        if not (await service.execute(live_table, CheckDeadlines(due))).events:
            return
