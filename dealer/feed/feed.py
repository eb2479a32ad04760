"""The parts of one process's feed: what `dealer.service` makes and the gateway reads."""

from __future__ import annotations

from collections.abc import Callable

from dealer.eventlog import Log
from dealer.eventlog.health import DamagedTables
from dealer.eventlog.recent import RecentEvents
from dealer.eventlog.seat_subjects import Subjects
from dealer.feed.head import FeedHead
from dealer.feed.positions import HEAD, NOW, Generations, Place
from dealer.feed.reader import FeedReader
from dealer.feed.scheduler import FeedScheduler


class Feed:
    """The feed of `log`; nothing is sequenced unless `enabled()`: a service key may read.

    Tables whose events are missing or altered are noted in `damaged`.
    """

    def __init__(
        self,
        log: Log,
        recent: RecentEvents,
        damaged: DamagedTables,
        *,
        enabled: Callable[[], bool],
    ) -> None:
        self._log = log
        self.enabled = enabled
        self.head = FeedHead()
        self.generations = Generations()
        self.scheduler = FeedScheduler(log, self.head, recent, enabled=enabled)
        self.subjects = Subjects(log)
        self.reader = FeedReader(log, self.head, recent, self.generations, self.subjects, damaged)

    async def open(self) -> None:
        """Read where the feed ends; raises DatabaseError."""
        await self.generations.refresh(self._log)
        await self.read_head()

    async def read_head(self) -> int:
        """The newest row of the feed in the database; raises DatabaseError."""
        (seq,) = await self._log.fetch_row("feed_state", HEAD)
        self.head.advance(seq)
        return self.head.seq

    async def place(self, position: str) -> Place:
        """The place of a position, of `start` or of `now`.

        Raises PositionLost if the log does not have it, ValueError if the text is no position.
        """
        if position == NOW:
            await self.scheduler.up_to_date()
        head = await self.read_head()
        return await self.generations.place(self._log, position, head=head)
