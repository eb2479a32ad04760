"""Schedules the projection: a quarter of a second after the first append, or after 4,096 of them.

Projecting an event alone costs many times its share of a slice, and appends wait for a slice.
Nothing is lost if the process dies: the next one, or another node, finds the lagging streams in the
database.
"""

from __future__ import annotations

import asyncio
from logging import getLogger
from time import monotonic, perf_counter

from sqlalchemy import Connection

from dealer.backoff import LastingFailure
from dealer.errors import ConcurrentUpdate, DatabaseError, Unavailable
from dealer.eventlog import Log
from dealer.eventlog.recent import RecentEvents
from dealer.histogram import LONG_SECONDS, Histogram
from dealer.projector.runner import Projector, events_per_slice

APPENDS = 4096
SECONDS = 0.25
POLL_SECONDS = 2.0
"""Interval of the polls for streams that no other process projects any more."""

RETRY_SECONDS = 5.0
"""Delay after a database failure."""

_log = getLogger("dealer.projector")


class ProjectionScheduler:
    """Runs a Projector's slices on the log's writer thread; used on the event loop.

    Call `start` once the log is open: it projects what an earlier process left. `recent` has what
    this process commits; for commits of others that it knows of, call `projector.catch_up`.
    `slice_seconds` has the time of each slice, without its COMMIT.
    """

    def __init__(
        self, log: Log, recent: RecentEvents, *, appends: int = APPENDS, seconds: float = SECONDS
    ) -> None:
        self.projector = Projector(recent=recent, events=events_per_slice(log.dialect))
        self.slice_seconds = Histogram(LONG_SECONDS)
        self._poll_timer: asyncio.TimerHandle | None = None
        self._log = log
        self._appends = appends
        self._seconds = seconds
        self._gathered = 0
        # When the oldest append of this process was committed that is not, or is being, projected.
        self._waiting_since: float | None = None
        self._running_since: float | None = None
        self._stopped_since: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._running: asyncio.Future[None] | None = None
        self._closed = False
        self._failure = LastingFailure()

    def start(self) -> None:
        """Start a first projection, and poll for lagging streams from now on."""
        self._begin()
        self._schedule_poll()

    @property
    def lag_seconds(self) -> float:
        """Age of the oldest append of this process that is not in the read models, or 0.

        A table that has stopped counts from its stop on.
        """
        own = self._waiting_since if self._running_since is None else self._running_since
        since = [each for each in (own, self._stopped_since) if each is not None]
        return monotonic() - min(since) if since else 0.0

    def on_commit(self, appends: int) -> None:
        """Count appends with events that were committed since the last call."""
        self._gathered += appends
        if self._waiting_since is None:
            self._waiting_since = monotonic()
        if self._running is not None or self._closed:
            return
        if self._gathered >= self._appends:
            self._begin()
        elif self._timer is None:
            self._wait(self._seconds)

    async def up_to_date(self) -> None:
        """Wait until every event that is in the log now is in the read models."""
        while (running := self._running) is not None:
            await asyncio.wait((running,))
        self.projector.catch_up()
        started = self._begin()
        if started is not None:
            await asyncio.shield(started)

    def close(self) -> None:
        """Start no further slices; a running one is committed or rolled back by the log."""
        self._closed = True
        for timer in (self._timer, self._poll_timer):
            if timer is not None:
                timer.cancel()
        self._timer = self._poll_timer = None

    def _schedule_poll(self) -> None:
        self._poll_timer = asyncio.get_running_loop().call_later(POLL_SECONDS, self._poll)

    def _poll(self) -> None:
        self.projector.poll()
        if self._timer is None:
            self._begin()
        if not self._closed:
            self._schedule_poll()

    def _wait(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._begin)

    def _begin(self) -> asyncio.Future[None] | None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._running is not None or self._closed:
            return None
        self._gathered = 0
        if self._running_since is None:  # otherwise the last projection failed
            self._running_since = self._waiting_since
        self._waiting_since = None
        try:
            running = self._running = self._log.run_when_idle(self._slice)
        except (Unavailable, DatabaseError):
            # The log is closing or has failed: the next process continues here.
            self._closed = True
            return None
        running.add_done_callback(self._ended)
        return running

    def _slice(self, connection: Connection) -> bool:
        started_at = perf_counter()
        try:
            return self.projector.slice(connection)
        finally:
            self.slice_seconds.observe(perf_counter() - started_at)

    def _ended(self, running: asyncio.Future[None]) -> None:
        self._running = None
        if not self.projector.stopped:
            self._stopped_since = None
        elif self._stopped_since is None:
            self._stopped_since = monotonic()
        if running.cancelled() or self._closed:
            return
        error = running.exception()
        if error is None:
            self._running_since = None
            self._failure.ended()
            if self._gathered:
                self.on_commit(0)
            return
        self.projector.rolled_back()
        if not isinstance(error, ConcurrentUpdate) and self._failure.to_be_logged(monotonic()):
            _log.error("projection failed, retrying", extra={"fields": {"says": str(error)}})
        if self._timer is None:
            self._wait(self._seconds if isinstance(error, ConcurrentUpdate) else RETRY_SECONDS)
