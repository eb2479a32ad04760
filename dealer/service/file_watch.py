"""Background tasks that watch the database file and sync the high-water mark."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from dealer.errors import DatabaseReplaced, DealerError
from dealer.eventlog import Log
from dealer.eventlog.high_water_mark import HighWaterMark
from dealer.service.commit_stats import CommitStats
from dealer.service.restore_check import (
    Home,
    find_lost,
    generations,
    next_generation,
    settle,
)

FILE_SECONDS = 0.5
"""Seconds between checks that the database file is still the one that was opened."""

MARK_SECONDS = 1.0
"""Seconds between syncs of the mark, and reads of the log's generation."""

log_ = logging.getLogger(__name__)


async def watch_file(log: Log, stats: CommitStats) -> None:
    """Return once the file of this log was deleted or replaced; by then every use of it raises."""
    while True:
        try:
            await log.require_file()
        except DatabaseReplaced as error:
            stats.failing = True
            log_.error("database file lost", extra={"fields": {"says": str(error)}})
            return
        except DealerError:
            pass  # other errors reach the callers that use the log
        await asyncio.sleep(FILE_SECONDS)


async def keep_mark(mark: HighWaterMark, log: Log) -> None:
    """Sync the mark, and restart it when another node has handled a restored log.

    When the log is in another database, as after a failover, and has the newest events of this
    process, that is recorded, so that the next start does not take it for a copy.
    """
    known = await generations(log)
    database = await log.identity()
    while True:
        await asyncio.sleep(MARK_SECONDS)
        await asyncio.to_thread(mark.sync)
        with suppress(DealerError):
            generation = await next_generation(log, len(known))
            if generation is not None:
                known.append(generation)
                mark.begin(mark.log, generation)
            found = await log.identity()
            if found != database and await find_lost(log, mark.records()) is None:
                await settle(log, Home(found, mark.folder))
                database = found
