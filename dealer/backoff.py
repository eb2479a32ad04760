"""Exponential backoff with full jitter."""

from __future__ import annotations

import random


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
        """The same with full jitter; see `jittered`."""
        return jittered(self.next())

    def reset(self) -> None:
        """Start again at `first`, after an attempt that succeeded."""
        self._delay = self._first


def jittered(delay: float) -> float:
    """A random time from 0 to `delay`: processes that failed together do not retry together.

    "Full jitter" of https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/.
    """
    return random.uniform(0, delay)
