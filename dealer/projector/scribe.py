"""When the read models are written: not after every event, but soon.

An event alone costs many times what it costs among others, so the scribe waits until 64 appends
or a quarter of a second have gathered. What is lost if the process dies is only the haste: the
next one finds the streams that are behind by itself.
"""

from __future__ import annotations

import asyncio
from logging import getLogger

from dealer.errors import DatabaseError, RaceLost, Unavailable
from dealer.eventlog import Log
from dealer.projector.runner import Projector

APPENDS = 64
SECONDS = 0.25
RETRY_SECONDS = 5.0
"""How long it leaves a database alone that failed."""

_log = getLogger("dealer.projector")


class Scribe:
    """Has a Projector's slices run on the log's writer; made and used on the loop.

    `start` once the log is open: what an earlier process left behind is taken up then.
    """

    def __init__(self, log: Log, *, appends: int = APPENDS, seconds: float = SECONDS) -> None:
        self.projector = Projector()
        self._log = log
        self._appends = appends
        self._seconds = seconds
        self._gathered = 0
        self._timer: asyncio.TimerHandle | None = None
        self._running: asyncio.Future[None] | None = None
        self._closed = False

    def start(self) -> None:
        self._begin()

    def noticed(self, appends: int) -> None:
        """So many appends have been committed since the last call."""
        self._gathered += appends
        if self._running is not None or self._closed:
            return
        if self._gathered >= self._appends:
            self._begin()
        elif self._timer is None:
            self._wait(self._seconds)

    async def up_to_date(self) -> None:
        """Returns when all that was in the log at the call is in the read models."""
        while (running := self._running) is not None:
            await asyncio.wait((running,))
        started = self._begin()
        if started is not None:
            await asyncio.shield(started)

    def close(self) -> None:
        """Starts nothing more; what has begun ends with the log, whole or not at all."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wait(self, seconds: float) -> None:
        self._timer = asyncio.get_running_loop().call_later(seconds, self._begin)

    def _begin(self) -> asyncio.Future[None] | None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._running is not None or self._closed:
            return None
        self._gathered = 0
        try:
            running = self._running = self._log.schedule(self.projector.slice)
        except (Unavailable, DatabaseError):
            # The log is closing or has failed: whoever opens it next goes on from here.
            self._closed = True
            return None
        running.add_done_callback(self._ended)
        return running

    def _ended(self, running: asyncio.Future[None]) -> None:
        self._running = None
        if running.cancelled() or self._closed:
            return
        error = running.exception()
        if error is None:
            if self._gathered:
                self.noticed(0)
            return
        if not isinstance(error, RaceLost):
            _log.error("read models fall behind", extra={"told": {"says": str(error)}})
        if self._timer is None:
            self._wait(self._seconds if isinstance(error, RaceLost) else RETRY_SECONDS)
