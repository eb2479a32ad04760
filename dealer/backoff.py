"""When to try again: exponential backoff with full jitter, pauses, polls, and when to say so."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from logging import Logger
from typing import NoReturn

from dealer.errors import DealerError

LOG_SECONDS = 60.0
"""Seconds from one log line about a failure to the next, while it lasts."""


class Backoff:
    """Delays between attempts, in seconds: `first`, then doubled each time up to `longest`."""

    __slots__ = ("_delay", "_first", "_longest")

    def __init__(self, *, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self._delay = first

    def next(self) -> float:
        """The delay before the next attempt; the one after it is twice as long."""
        delay = self._delay
        self._delay = min(2 * delay, self._longest)
        return delay

    def next_jittered(self) -> float:
        """`next` with full jitter; see `jittered`."""
        return jittered(self.next())

    def reset(self) -> None:
        """Start again at `first`, after an attempt that succeeded."""
        self._delay = self._first


class LastingFailure:
    """Logs a failure that is met again and again as `event`: at once, then once a minute.

    Also if attempts between succeed: a database that fails now and then is not in every line.
    """

    __slots__ = ("_due", "_event", "_log")

    def __init__(self, log: Logger, event: str) -> None:
        self._log = log
        self._event = event
        self._due: float | None = None

    def met(self, error: Exception, now: float, **fields: object) -> None:
        """Log `error`, if that is due `now`: in seconds of a monotonic clock."""
        if self._due is None or now >= self._due:
            self._due = now + LOG_SECONDS
            self._log.error(self._event, extra={"fields": {**fields, "says": str(error)}})


def jittered(delay: float) -> float:
    """A random time from 0 to `delay`: processes that failed together do not retry together.

    "Full jitter" of https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/.
    """
    return random.uniform(0, delay)


def around(seconds: float) -> float:
    """A random time of `seconds` in the mean, half of it at least and one and a half at most.

    For retries that go on until something is back: those of all tables and nodes are spread, and
    none comes at once.
    """
    return seconds / 2 + jittered(seconds)


class Polls:
    """Awaits `work()` again and again, and `delay` seconds after `wake`, if that is earlier.

    A DealerError, as of a database that is away, is passed to `failure`, if there is one. The work
    is repeated after about `retry` seconds, or at the next poll without them. Any other exception
    is a bug, which is reported to the loop; it does not end the polls either.

    `seconds` is the time from one poll to the next, `polling` whether the present work is one.
    """

    def __init__(
        self,
        work: Callable[[], Awaitable[object]],
        *,
        delay: float = 0.0,
        retry: float | None = None,
        failure: LastingFailure | None = None,
    ) -> None:
        self.seconds = 0.0
        self.polling = False
        self._work = work
        self._delay = delay
        self._retry = retry
        self._failure = failure
        self._woken = asyncio.Event()

    def wake(self) -> None:
        """Await the work soon."""
        self._woken.set()

    async def run(self, seconds: float, *, at_once: bool = False) -> NoReturn:
        """Poll until cancelled, each time after so many `seconds`, or first `at_once`."""
        loop = asyncio.get_running_loop()
        self.seconds = seconds
        due = loop.time() + (0.0 if at_once else seconds)
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._woken.wait()
                    await asyncio.sleep(self._delay)
            self._woken.clear()
            self.polling = loop.time() >= due
            if not await self._succeeds(loop) and self._retry is not None:
                self._woken.set()
                await asyncio.sleep(around(self._retry))
            if self.polling:
                due = loop.time() + self.seconds

    async def _succeeds(self, loop: asyncio.AbstractEventLoop) -> bool:
        try:
            await self._work()
        except DealerError as error:
            if self._failure is not None:
                self._failure.met(error, loop.time())
            return False
        except Exception as error:
            loop.call_exception_handler({"message": "polling failed", "exception": error})
            return False
        return True
