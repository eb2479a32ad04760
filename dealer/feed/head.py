"""Head of the feed: how far this process knows it to reach, its newest rows, and its growth."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice

from dealer.feed.positions import Place
from dealer.feed.sequencer import FeedRow

ROWS = 10_000
"""Rows of `feed` that are kept while there are followers: they are spared the database."""


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
        self._rows: deque[FeedRow] = deque(maxlen=ROWS)  # without a gap

    def add_rows(self, rows: Sequence[FeedRow]) -> None:
        """Remember the rows of a slice; those before a gap are forgotten, without followers all."""
        if not self.followers or (rows and self._rows and rows[0].seq != self._rows[-1].seq + 1):
            self._rows.clear()
        if self.followers:
            self._rows.extend(rows)

    def rows_from(self, place: Place, *, limit: int) -> list[FeedRow] | None:
        """At most `limit` rows from this place on; None if they are not all in memory."""
        rows = self._rows
        if rows and rows[-1].seq < self.seq:
            return None  # another process has written the newest ones
        if not rows or not rows[0].seq <= place.seq <= rows[-1].seq + 1:
            return None
        start = place.seq - rows[0].seq
        return list(islice(rows, start, start + limit))

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
