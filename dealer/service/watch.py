"""Background tasks that watch the database file and have the high-water mark on disk."""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress

from dealer.errors import DatabaseReplaced, DealerError
from dealer.eventlog import Log
from dealer.eventlog.mark import Mark
from dealer.service.counts import Counts
from dealer.service.restored import generations, next_generation

FILE_SECONDS = 0.5
"""How often an idle server looks whether its database file is still the one that it opened."""

MARK_SECONDS = 1.0
"""How often the mark is synced, and the log asked for a new generation."""

log_ = logging.getLogger(__name__)


async def watch_file(log: Log, counts: Counts) -> None:
    """Return once the file of this log was deleted or replaced; every use of it raises by then."""
    while True:
        try:
            await log.require_file()
        except DatabaseReplaced as error:
            counts.trouble = True
            log_.error("database file lost", extra={"told": {"says": str(error)}})
            return
        except DealerError:
            pass  # of anything else those are told who use the log
        await asyncio.sleep(FILE_SECONDS)


async def keep_mark(mark: Mark, log: Log) -> None:
    """Sync the mark, and begin it again when another node has dealt with a restored log."""
    known = await generations(log)
    while True:
        await asyncio.sleep(MARK_SECONDS)
        await asyncio.to_thread(mark.sync)
        with suppress(DealerError):
            generation = await next_generation(log, len(known))
            if generation is not None:
                known.append(generation)
                mark.begin(mark.log, generation)
