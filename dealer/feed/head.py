"""Head of the feed: how far this process knows it to reach, and notices when it grows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress


class FeedHead:
    """The newest row of `feed` that this process knows of; used on the event loop.

    `seq` is its number, `followers` how many followers wait for more. `listeners` are called when
    it grows, and when the followers have to check whether they may go on.
    """

    def __init__(self) -> None:
        self.seq = 0
        self.followers = 0
        self.closing = False
        self.listeners: list[Callable[[], None]] = []
        self._changed = asyncio.Event()

    def advance(self, seq: int) -> None:
        """The feed reaches up to row `seq`."""
        if seq > self.seq:
            self.seq = seq
            self.wake()

    def wake(self) -> None:
        """Let all followers check their state."""
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()
        for listener in tuple(self.listeners):
            listener()

    def close(self) -> None:
        """Let all followers end: the server drains."""
        self.closing = True
        self.wake()

    async def wait(self, seq: int, *, seconds: float) -> bool:
        """Wait until `wake`, unless a row after `seq` is known; False after so many seconds."""
        if self.seq > seq or self.closing:
            return True
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()
                return True
        return False
