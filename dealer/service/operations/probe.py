"""Probe: checks once a second whether the server is ready, however often that is asked.

It allocates some memory, reads from the log, and finds out whether the log can be written: commits
since the last check show that it can; without any it takes the write lock and writes nothing. Only
after an append that failed it writes a row, which it deletes in the same transaction, until that
succeeds: a full disk is not found without writing, and a server that is not ready gets no commands
whose commits would show that the disk has room again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from mmap import mmap

from dealer.backoff import Polls
from dealer.errors import DatabaseReplaced, DealerError, WorkerUnavailable
from dealer.eventlog import Log
from dealer.eventlog.health import ProjectorLag, projector_lag, require_write, require_write_lock
from dealer.service.clock import Clock, clock_skew
from dealer.service.commands.commit_stats import CommitStats

SECONDS = 1.0
"""Seconds between the end of a check and the next one."""

TIMEOUT_SECONDS = 2.0
"""Timeout of a check, after which the server is not ready."""

STALE_SECONDS = 5.0
"""Age from which a result no longer counts; a check ends at most 3 s after the one before."""

log_ = logging.getLogger(__name__)

RESERVE = 16 * 2**20
"""Bytes that a process that is ready can allocate."""


class MemoryWatch:
    """Counts in `errors` the MemoryErrors of this process that were given to `note`.

    After a MemoryError the request that met it was answered, or its connection closed; but the next
    one may meet another, or a library may end the process.
    """

    def __init__(self) -> None:
        self.errors = 0

    def note(self, error: BaseException | None) -> None:
        """Count the error if it is a MemoryError."""
        self.errors += isinstance(error, MemoryError)


MEMORY = MemoryWatch()
"""The watch of this process: every internal error that is logged goes through it."""


class Probe:
    """The latest result for one log; `now` is the wall clock, `clock` gives seconds.

    `lag` is how far the read models are behind, and `database` the product and version, as of the
    last check that succeeded.
    """

    def __init__(
        self, log: Log, stats: CommitStats, *, now: Clock, clock: Callable[[], float]
    ) -> None:
        self.lag = ProjectorLag(0, 0)
        self.database = ""
        self._log = log
        self._stats = stats
        self._now = now
        self._clock = clock
        self._checked_at = clock()
        self._problem: str | None = None
        self._written = 0
        self._failed = 0
        self._memory_errors = MEMORY.errors  # those before it are another service's

    @property
    def age(self) -> float:
        """Seconds since the last check ended."""
        return self._clock() - self._checked_at

    @property
    def problem(self) -> str | None:
        """A sentence that says why the server is not ready; None if it is.

        That the file was deleted or replaced is checked here too, by two stat calls, because a
        commit may have found it since.
        """
        try:
            self._log.check()
        except DatabaseReplaced as error:
            return str(error)
        if self.age > STALE_SECONDS:
            return f"The log was last checked {self.age:.0f} s ago; the server is overloaded."
        return self._problem

    async def run(self) -> None:
        """Check once a second until cancelled."""
        await Polls(self.check).run(SECONDS)

    async def check(self) -> None:
        """Check now; the log has a line when the result differs from the last one."""
        before, self._problem = self._problem, await self._find_problem()
        self._checked_at = self._clock()
        if self._problem == before:
            return
        if self._problem is None:
            log_.info("readiness", extra={"fields": {"ready": True}})
        else:
            fields = {"ready": False, "says": self._problem}
            log_.error("readiness", extra={"fields": fields})

    async def _find_problem(self) -> str | None:
        try:
            async with asyncio.timeout(TIMEOUT_SECONDS):
                await self._require_writable()
                with suppress(WorkerUnavailable):  # the tables of other workers play on
                    self.lag = await projector_lag(self._log)
                wrong = await clock_skew(self._log, self._now)
                if self._problem is not None or not self.database:
                    self.database = await self._log.reader.version()
        except TimeoutError:
            return "the log does not answer in time"
        except DealerError as error:
            return str(error)
        return self._find_memory_problem() if wrong is None else f"{wrong}."

    async def _require_writable(self) -> None:
        appends = self._stats.appends
        written, failed = appends["written"], appends["failed"]
        if failed != self._failed:
            await require_write(self._log)
        elif written == self._written:
            await require_write_lock(self._log)
        self._written, self._failed = written, failed

    def _find_memory_problem(self) -> str | None:
        """A MemoryError since the last check, or no `RESERVE`."""
        seen, self._memory_errors = self._memory_errors, MEMORY.errors
        try:
            # Not from the allocator, which would keep it, and touch it the next time.
            mmap(-1, RESERVE).close()
        except OSError:
            seen = -1
        if seen == self._memory_errors:
            return None
        return "The process has no memory left; give it more, or restart it."
