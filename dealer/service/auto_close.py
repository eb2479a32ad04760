"""Automatic closing of tables and decks that are not used for longer than the operator allows.

The streams are scanned in slices, so the cost does not grow with the number of tables. Several
nodes may do it concurrently: the second one to close a table finds it closed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

from dealer.errors import DealerError, Refused
from dealer.service.close_tables import force_close
from dealer.service.decks import RULE
from dealer.service.live_table import LiveTable
from dealer.service.service import Service

SLICE = 500
"""Streams that one slice reads: about 2 ms of a reader's time."""

EVERY_SECONDS = 5.0
"""Seconds between two slices: 100 streams a second."""

CLOSED = 50
"""The most tables that one slice closes; the next slice continues after them."""

EMPTY, IDLE, DECK = "empty", "idle", "deck"

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
FROM (SELECT id, table_id, version, projected FROM stream WHERE id > ? ORDER BY id LIMIT ?) s
LEFT JOIN event e ON e.stream = s.id AND e.version = s.version AND e.type <> 'TableClosed'
ORDER BY s.id
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
        rows = await self._service.log.fetch(_SLICE, (due, due, _DECKS, self._after, SLICE))
        self._after = rows[-1].id if len(rows) == SLICE else self._first
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
            live_table = await self._service.load(table)
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
