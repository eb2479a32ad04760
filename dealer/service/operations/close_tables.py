"""Forced closing of tables: the open round is closed first, so that it can be audited.

Tables and decks that are not used for longer than the operator allows are closed automatically. The
streams are scanned in slices, so the cost does not grow with the number of tables. Several nodes
may do it concurrently: the second one to close a table finds it closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import Any

from dealer.errors import DealerError, Refused
from dealer.eventlog import ReadOnlyLog
from dealer.game.commands import Actor, CheckDeadlines, CloseTable
from dealer.game.decide.rounds import deadline
from dealer.service.service import Service
from dealer.service.tables.decks import RULE
from dealer.service.tables.live_table import LiveTable

AT_ONCE = 32
"""Tables that are loaded and closed together, so that they share statements and commits."""

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
    part: Sequence[bytes] = ()
    loaded: list[LiveTable | DealerError] = []
    for start in range(0, len(tables) + AT_ONCE, AT_ONCE):
        following = tables[start : start + AT_ONCE]
        closing = (_close(service, each, end_shuffles=end_shuffles) for each in loaded)
        # The next tables are read while these are written.
        errors, next_loaded = await asyncio.gather(
            asyncio.gather(*closing), service.lifecycle.load_together(following)
        )
        for table, error in zip(part, errors, strict=True):
            yield table, error
        part, loaded = following, next_loaded


async def _close(
    service: Service, live_table: LiveTable | DealerError, *, end_shuffles: bool
) -> DealerError | None:
    try:
        if isinstance(live_table, DealerError):
            return live_table
        if end_shuffles:
            await _end_shuffle(service, live_table)
        await force_close(service, live_table)
    except DealerError as error:
        return error
    return None


async def _end_shuffle(service: Service, live_table: LiveTable) -> None:
    """At most three steps: no more digests, no more reveals, a shuffle without the silent seats."""
    while (round_ := live_table.table.round) is not None and (due := deadline(round_)) is not None:
        if not (await service.execute(live_table, CheckDeadlines(due))).events:
            return


SLICE = 500
"""Streams that one slice reads: about 2 ms of a reader's time."""

EVERY_SECONDS = 5.0
"""Seconds between two slices: 100 streams a second."""

CLOSED = 50
"""The most tables that one slice closes; the next slice continues after them."""

EMPTY, IDLE, DECK = "empty", "idle", "deck"

_PAGE = "SELECT id FROM stream WHERE id > ? ORDER BY id LIMIT ?"
_SLICE = """
SELECT s.id, s.table_id, e.at, s.version = s.projected AS projected,
       CASE WHEN e.at <= ? THEN (
           SELECT count(*) FROM seats x WHERE x.stream = s.id AND x.until IS NULL
       ) + (
           SELECT count(*) FROM rounds r WHERE r.stream = s.id AND r.until IS NULL
       ) END AS used,
       CASE WHEN e.at <= ? THEN (
           SELECT count(*) FROM tables t WHERE t.stream = s.id AND t.rules LIKE ?
       ) END AS decks
FROM stream s
LEFT JOIN event e ON e.stream = s.id AND e.version = s.version AND e.type <> 'TableClosed'
WHERE s.id > ? AND s.id <= ? ORDER BY s.id
"""

_DECKS = f'%"{RULE}":%'

log = logging.getLogger(__name__)


class AutoClose:
    """Closes tables of `service`, with their open rounds, after ages in milliseconds.

    `empty_ms`: no seat is taken, no round is open, and the newest event is that old. `idle_ms`: the
    newest event is that old. `deck_ms`: so is the newest event of a deck of the simple REST
    interface. 0 means never. A table with subscribers at this node stays open. Ages are measured by
    a clock that steps of the wall clock do not affect.
    """

    def __init__(self, service: Service, *, empty_ms: int, idle_ms: int, deck_ms: int = 0) -> None:
        self._service = service
        self._ages = {EMPTY: empty_ms, IDLE: idle_ms, DECK: deck_ms}
        self._first: int | bytes = 0 if service.log.dialect == "sqlite" else b""
        self._after = self._first
        self._started = service.now() - self._elapsed()

    @staticmethod
    def _elapsed() -> int:
        return int(asyncio.get_running_loop().time() * 1000)

    def now(self) -> int:
        """Milliseconds since 1970 by the wall clock at the start and the monotonic one since."""
        return self._started + self._elapsed()

    async def run(self) -> None:
        """Scan all streams again and again until cancelled; skip a slice if the database fails."""
        while any(self._ages.values()):
            await asyncio.sleep(EVERY_SECONDS)
            try:
                await self.slice()
            except DealerError as error:
                log.debug("tables not scanned", extra={"fields": {"says": str(error)}})

    async def slice(self) -> int:
        """Scan the next streams and close what is due; returns how many were closed."""
        due = self.now() - min(age for age in self._ages.values() if age)
        log, after = self._service.log, self._after
        page = await log.fetch(_PAGE, (after, SLICE))
        self._after = page[-1].id if len(page) == SLICE else self._first
        if not page:
            return 0
        rows = await log.fetch(_SLICE, (due, due, _DECKS, after, page[-1].id))
        closed = 0
        for row, why in self._due(rows):
            closed += await self._close(row.table_id.hex(), why)
            if closed == CLOSED:
                self._after = row.id
                break
        return closed

    def _due(self, rows: list[Any]) -> Iterator[tuple[Any, str]]:
        for row in rows:
            if row.at is not None and self._is_old(row.at, IDLE):
                yield row, IDLE
            elif row.decks and self._is_old(row.at, DECK):
                yield row, DECK
            elif row.used == 0 and row.projected and self._is_old(row.at, EMPTY):
                yield row, EMPTY

    def _is_old(self, at: int, why: str) -> bool:
        return bool(self._ages[why]) and at <= self.now() - self._ages[why]

    async def _close(self, table: str, why: str) -> bool:
        try:
            live_table = await self._service.lifecycle.load(table)
            if not self._is_due(live_table, why):
                return False
            await force_close(self._service, live_table)
        except Refused as refusal:
            log.debug("table not closed", extra={"fields": {"table": table, "says": str(refusal)}})
            return False
        self._service.stats.closed[why] += 1
        log.info("table closed", extra={"fields": {"table": table, "why": why}})
        return True

    def _is_due(self, live_table: LiveTable, why: str) -> bool:
        """Whether the table itself agrees with the read models, and has no subscriber here."""
        state = live_table.table
        if not self._is_old(state.at, why) or live_table.subscribers:
            return False
        if why == DECK:
            return RULE in state.rules.given
        used = bool(state.seats) or state.round is not None
        return not (used and why == EMPTY)
