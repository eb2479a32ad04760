"""The feed of one process: when committed events are sequenced, and what followers read.

The sequencer runs a fifth of a second after an append, and regularly for other processes. Nothing
is lost if the process dies: the next one, or another node, finds the events in the log. Nothing is
written while no service key may read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from logging import getLogger

from dealer.backoff import LastingFailure, Polls
from dealer.eventlog import Append, Log
from dealer.eventlog.health import DamagedTables
from dealer.eventlog.recent import RecentEvents
from dealer.eventlog.seat_subjects import Subjects
from dealer.feed.pages import FeedReader
from dealer.feed.positions import HEAD, NOW, Generations, Place
from dealer.feed.sequencer import FeedHead, Slice, sequence

SECONDS = 0.2
"""Seconds from an append to the slice that sequences it."""

POLL_SECONDS = 1.0
"""Seconds between two searches for events of other processes."""

POLL_FOLLOWED_SECONDS = 0.5
"""Seconds between two of these searches while this process has followers."""

SEARCH_SECONDS = 30.0
"""Seconds after which marked tables are searched again although their versions are the same.

After the failure of a database server, other events may have got them.
"""

RETRY_SECONDS = 1.0
"""Delay after a failure of the database."""

_BUSY_SECONDS = 0.05

_log = getLogger("dealer.feed")


class FeedScheduler:
    """Runs slices on the log's writer thread; `enabled` says whether a key may read.

    `behind_since` is when the oldest append was committed here that is not in the feed, by the
    loop's clock.
    """

    def __init__(
        self, log: Log, head: FeedHead, recent: RecentEvents, *, enabled: Callable[[], bool]
    ) -> None:
        self._log = log
        self._head = head
        self._recent = recent
        self._enabled = enabled
        self._hinted: set[bytes] = set()
        self._polls = Polls(
            self._work,
            delay=SECONDS,
            retry=RETRY_SECONDS,
            failure=LastingFailure(_log, "feed not written, retrying"),
        )
        self._lock = asyncio.Lock()
        self._searched: Mapping[bytes, int] = {}
        self._search_due = 0.0
        self.behind_since: float | None = None
        self.behind_events = 0

    def on_commit(self, written: Sequence[Append]) -> None:
        """Sequence soon what this process has committed: appends with events, if a key may read."""
        for append in written:
            self._hinted.add(append.table)
            self.behind_events += len(append.rows)
        if self._hinted and self.behind_since is None:
            self.behind_since = asyncio.get_running_loop().time()
            self._polls.wake()

    @property
    def lag_seconds(self) -> float:
        """Age of the oldest append of this process that is not in the feed, or 0."""
        if self.behind_since is None:
            return 0.0
        return asyncio.get_running_loop().time() - self.behind_since

    async def run(self) -> None:
        """Sequence until cancelled; after a failure of the database, try again."""
        await self._polls.run(POLL_SECONDS, at_once=True)

    async def _work(self) -> None:
        if not self._enabled():
            self._forget()
            self._recent.follow(False)
            return
        await self._sequence(poll=self._polls.polling)
        self._polls.seconds = POLL_FOLLOWED_SECONDS if self._head.followers else POLL_SECONDS

    async def up_to_date(self) -> None:
        """Wait until every event that is committed now is in the feed; raises DatabaseError."""
        if self._enabled():
            await self._sequence(poll=True, wait=True)

    async def _sequence(self, *, poll: bool, wait: bool = False) -> None:
        """Run slices until this process knows of no more events.

        While another process sequences, only its own events, or `wait`, make it try again.
        """
        async with self._lock:
            more = True
            while more:
                more = await self._slice(poll=poll, wait=wait)

    async def _slice(self, *, poll: bool, wait: bool) -> bool:
        hinted, since, events = self._hinted, self.behind_since, self.behind_events
        self._forget()
        now = asyncio.get_running_loop().time()
        if now >= self._search_due:
            self._searched, self._search_due = {}, now + SEARCH_SECONDS
        work = partial(sequence, hinted=hinted, poll=poll, searched=self._searched)
        done: Slice | None = None
        try:
            done = await self._log.run_in_transaction(work)
        finally:
            if done is None or done.busy:
                self._hinted |= hinted
                self.behind_events += events
                self.behind_since = since
        self._searched = done.searched
        self._head.add_rows(done.rows)
        self._head.advance(done.seq)
        self._recent.follow(self._head.followers > 0)
        if done.busy and (hinted or wait):
            await asyncio.sleep(_BUSY_SECONDS)
            return True
        return done.more

    def _forget(self) -> None:
        self._hinted = set()
        self.behind_since, self.behind_events = None, 0


class Feed:
    """The feed of `log`; nothing is sequenced unless `enabled()`: a service key may read.

    Tables whose events are missing or altered are noted in `damaged`.
    """

    def __init__(
        self, log: Log, recent: RecentEvents, damaged: DamagedTables, *, enabled: Callable[[], bool]
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
