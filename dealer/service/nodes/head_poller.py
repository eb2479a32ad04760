"""Head poller: finds what other processes wrote to the tables with subscribers, once a second.

One statement reads the heads of all these tables and the counts of their cosignatures. Hints
between nodes only bring the poll of a table forward.
"""

from __future__ import annotations

from contextlib import suppress

from dealer.backoff import Polls
from dealer.errors import DealerError, WorkerUnavailable
from dealer.eventlog import Log
from dealer.service.commands.table_lifecycle import TableLifecycle
from dealer.service.nodes.presence import SharedPresence
from dealer.service.reading.checkpoints import Checkpoints
from dealer.service.tables.cache import TableCache
from dealer.service.tables.live_table import LiveTable

POLL_SECONDS = 1.0
"""Seconds between two polls of all tables with subscribers, or broadcasts."""


class HeadPoller:
    """Compares the tables in `cache` with `log` and lets `lifecycle` catch up."""

    def __init__(
        self,
        log: Log,
        cache: TableCache,
        lifecycle: TableLifecycle,
        checkpoints: Checkpoints,
        presence: SharedPresence,
    ) -> None:
        self._log = log
        self._cache = cache
        self._lifecycle = lifecycle
        self._checkpoints = checkpoints
        self._presence = presence
        self._polls = Polls(self._poll)
        self._hinted: set[bytes] = set()

    def on_hint(self, tables: set[bytes]) -> None:
        """Poll these tables now, if they have subscribers: another process may have written."""
        self._presence.on_hint(tables)
        self._hinted |= tables
        self._polls.wake()

    async def run(self) -> None:
        """Poll until cancelled; while the database is unavailable, try again each second."""
        await self._polls.run(POLL_SECONDS)

    async def _poll(self) -> None:
        hinted, self._hinted = self._hinted, set()
        followed = [each for each in self._cache if each.subscribers or each.broadcasts]
        if not self._polls.polling:
            followed = [live_table for live_table in followed if live_table.id in hinted]
        await self.check(followed)
        if self._polls.polling:
            await self._presence.exchange(followed)

    async def check(self, followed: list[LiveTable]) -> None:
        """Catch up with the log if a table is lagging, or if the log was rewound."""
        if not followed:
            return
        known = [(live_table, live_table.committed) for live_table in followed]
        try:
            found = await self._log.heads_and_cosigned(live_table.id for live_table in followed)
        except WorkerUnavailable:
            # The tables of other workers are polled: a half that has none of the worker's.
            if len(followed) > 1:
                half = len(followed) // 2
                await self.check(followed[:half])
                await self.check(followed[half:])
            return
        for live_table, committed in known:
            head, cosigned = found.get(live_table.id, (0, 0))
            # A table that cannot be read does not keep the others from being polled.
            with suppress(DealerError):
                if not committed <= head <= live_table.committed:
                    await self._lifecycle.catch_up(live_table)
                if cosigned != live_table.cosigned:
                    await self._checkpoints.publish_cosigned(live_table, count=cosigned)
