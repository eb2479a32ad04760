"""Schedules the projection: a quarter of a second after an append, and regularly for others.

Projecting an event alone costs many times its share of a slice, and appends wait for a slice.
Nothing is lost if the process dies: the next one, or another node, finds the lagging streams in the
database.
"""

from __future__ import annotations

import asyncio
from logging import getLogger
from time import monotonic, perf_counter

from dealer.backoff import LastingFailure, Polls
from dealer.errors import ConcurrentUpdate
from dealer.eventlog import Log
from dealer.eventlog.protocols import Connection
from dealer.eventlog.recent import RecentEvents
from dealer.eventlog.schema import near
from dealer.histogram import LONG_SECONDS, Histogram
from dealer.projector.runner import Projector, events_per_slice

SECONDS = 0.25
"""Seconds from an append to the slices that project it."""

POLL_SECONDS = 2.0
"""Interval of the polls for streams that no other process projects any more."""

RETRY_SECONDS = 5.0
"""Delay after a failure of the database."""

_log = getLogger("dealer.projector")


class ProjectionScheduler:
    """Runs a Projector's slices on the log's writer thread; used on the event loop.

    `recent` has what this process commits. If the log is in shards, each server has a projector of
    its own, and `projector` has what they have stopped. `slice_seconds` has the time of each slice,
    without its COMMIT. Nothing is projected while a caller holds `lock`.
    """

    def __init__(self, log: Log, recent: RecentEvents, *, seconds: float = SECONDS) -> None:
        self._log = log
        self._recent = recent
        self._projectors: dict[object, Projector] = {}
        self.projector = self._projector_of(None)
        self.slice_seconds = Histogram(LONG_SECONDS)
        self._polls = Polls(
            self._work,
            delay=seconds,
            retry=RETRY_SECONDS,
            failure=LastingFailure(_log, "projection failed, retrying"),
        )
        self.lock = asyncio.Lock()
        # When the oldest append of this process was committed that is not, or is being, projected.
        self._waiting_since: float | None = None
        self._running_since: float | None = None
        self._stopped_since: float | None = None

    @property
    def lag_seconds(self) -> float:
        """Age of the oldest append of this process that is not in the read models, or 0.

        A table that has stopped counts from its stop on.
        """
        own = self._waiting_since if self._running_since is None else self._running_since
        since = [each for each in (own, self._stopped_since) if each is not None]
        return monotonic() - min(since) if since else 0.0

    def on_commit(self) -> None:
        """Project soon what this process has committed."""
        if self._waiting_since is None:
            self._waiting_since = monotonic()
            self._polls.wake()

    async def run(self) -> None:
        """Project until cancelled, first what an earlier process left.

        A slice that runs then is committed or rolled back by the log.
        """
        await self._polls.run(POLL_SECONDS, at_once=True)

    async def up_to_date(self) -> None:
        """Wait until every event that is in the log now is in the read models."""
        async with self.lock:
            for projector in self._projectors.values():
                projector.catch_up()
            await self._project()

    async def _work(self) -> None:
        async with self.lock:
            if self._polls.polling:
                for projector in self._projectors.values():
                    projector.poll()
            try:
                await self._project()
            except ConcurrentUpdate:
                self._polls.wake()  # another process projects the same tables

    async def _project(self) -> None:
        if self._running_since is None:  # otherwise the last projection failed
            self._running_since = self._waiting_since
        self._waiting_since = None
        try:
            await self._log.run_when_idle(self._slice, by_worker=True)
            self._running_since = None
        except Exception:
            for projector in self._projectors.values():
                projector.rolled_back()
            raise
        finally:
            if not self.projector.stopped:
                self._stopped_since = None
            elif self._stopped_since is None:
                self._stopped_since = monotonic()

    def _slice(self, connection: Connection) -> bool:
        started_at = perf_counter()
        try:
            here = near(connection)
            return self._projector_of(here and here.worker).slice(connection)
        finally:
            self.slice_seconds.observe(perf_counter() - started_at)

    def _projector_of(self, worker: object) -> Projector:
        """The projector of a server; None names the only one."""
        if worker not in self._projectors:
            stopped = self.projector.stopped if self._projectors else None
            events = events_per_slice(self._log.dialect)
            made = Projector(recent=self._recent, events=events, stopped=stopped)
            self._projectors[worker] = made
        return self._projectors[worker]
