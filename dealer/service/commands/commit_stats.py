"""Commit statistics: counts of batches, appends and conflicts, and whether the database fails.

There are no counts by table or player.
"""

from __future__ import annotations

import asyncio
import logging
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from dealer.errors import DatabaseReplaced, DealerError
from dealer.eventlog import Append, Appended, Conflict, Log, Result
from dealer.histogram import Histogram

BATCHES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
"""Upper bounds for the number of appends in a batch."""

EVENTS = (1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0, 500.0, 1000.0)
"""Upper bounds for the number of events in an append."""

FILE_SECONDS = 0.5
"""Seconds between checks that the database file is still the one that was opened."""

log_ = logging.getLogger(__name__)


class CommitStats:
    """`closed` counts automatically closed tables by reason (empty, idle, deck).

    `appends` counts by outcome (written, conflict, known, failed); `batches` by the first bound of
    `BATCHES` that they fit under, the last element for larger ones; `events` has the events of
    each append; `failing` is set since a batch failed, or the database file was lost.
    """

    def __init__(self) -> None:
        self.appends: Counter[str] = Counter()
        self.closed: Counter[str] = Counter()
        self.batches = [0] * (len(BATCHES) + 1)
        self.requests = 0
        self.events = Histogram(EVENTS)
        self.failing = False

    def batch(self, results: Sequence[tuple[Append, Result]]) -> None:
        """Count the results of one batch."""
        size = len(results)
        self.requests += size
        self.batches[min(max(size - 1, 0).bit_length(), len(BATCHES))] += 1
        written, failure = 0, None
        for append, result in results:
            kind = type(result)
            if kind is Appended:
                written += 1
                if append.rows:  # `Histogram.observe` without the call
                    count = len(append.rows)
                    self.events.counts[bisect_left(EVENTS, count)] += 1
                    self.events.total += count
            elif isinstance(result, DealerError):
                self.appends["failed"] += 1
                failure = result
            elif kind is Conflict:
                self.appends["conflict"] += 1
                log_.debug("conflict", extra={"fields": {"table": append.table.hex()}})
            else:
                self.appends["known"] += 1
        self.appends["written"] += written
        if failure is not None:
            if not self.failing:
                log_.error("database failing", extra={"fields": {"says": str(failure)}})
            self.failing = True
        elif self.failing and written:
            self.failing = False
            log_.warning("database recovered")

    async def watch_file(self, log: Log) -> None:
        """Return once the log's file was deleted or replaced; by then every use of it raises."""
        while True:
            try:
                await log.require_file()
            except DatabaseReplaced as error:
                self.failing = True
                log_.error("database file lost", extra={"fields": {"says": str(error)}})
                return
            except DealerError:
                pass  # other errors reach the callers that use the log
            await asyncio.sleep(FILE_SECONDS)
