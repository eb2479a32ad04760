"""When to try again: exponential backoff with full jitter, pauses, polls, and when to say so."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
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
    """When a failure that is met again and again is logged: at once, then once a minute."""

    __slots__ = ("_due",)

    def __init__(self) -> None:
        self._due: float | None = None

    def to_be_logged(self, now: float) -> bool:
        """Whether to log the failure that was met at `now`, in seconds of a monotonic clock."""
        if self._due is not None and now < self._due:
            return False
        self._due = now + LOG_SECONDS
        return True

    def ended(self) -> None:
        """An attempt succeeded: the next failure is a new one."""
        self._due = None


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


async def poll(seconds: float, work: Callable[[], Awaitable[object]]) -> NoReturn:
    """Await `work()` again and again until cancelled, each time after so many seconds.

    A DealerError, as of a database that is away, is left to the next time. Any other exception is
    a bug, which is reported to the loop; it does not end the polling either.
    """
    while True:
        await asyncio.sleep(seconds)
        try:
            await work()
        except DealerError:
            continue
        except Exception as error:
            asyncio.get_running_loop().call_exception_handler(
                {"message": "polling failed", "exception": error}
            )
