"""Table lifecycle: into memory, up to date with the log, and back in memory for a deadline.

A load makes a live table of what the log has. A reload brings one up to date after an append was
lost, after another process wrote events, or after the log was rewound to an older state. A table
that leaves memory while its shuffle waits for players is loaded again when the time is over.

Waits are measured by the loop's monotonic clock. The log has the start of a wait by the wall clock,
which may be stepped by hours. So the wall clock is read once, when this process first sees the
wait: the remaining time is the difference to the deadline, between zero and the whole wait. When
the time is over the table gets CheckDeadlines with the deadline in the log, whatever the wall clock
says.
"""

from __future__ import annotations

import asyncio
from asyncio import TimerHandle
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dealer.backoff import around
from dealer.errors import DealerError
from dealer.eventlog import Log
from dealer.eventlog.high_water_mark import HighWaterMark
from dealer.eventlog.read_only_log import ReadAhead
from dealer.game.commands import CheckDeadlines
from dealer.game.decide.rounds import deadline
from dealer.game.state import Round
from dealer.service.clock import Clock
from dealer.service.commands.background_tasks import BackgroundTasks
from dealer.service.tables.archive import require_here
from dealer.service.tables.cache import TableCache
from dealer.service.tables.execution import (
    CommandExecution,
    CommandResult,
    Outcome,
    may_pass,
    report,
    unavailable,
)
from dealer.service.tables.live_table import CommitNotice, LiveTable, Notices
from dealer.service.tables.loading import SLICE, Loader
from dealer.service.tables.stored_savepoints import StoredSavepoints

NEVER = 2**63
"""A version that no table reaches: its waiters are called when the table was reloaded."""

RELOAD_RETRY_SECONDS = 0.5
"""Mean seconds until a table whose log cannot be read is tried again."""

DEADLINE_RETRY_SECONDS = 0.5
"""Seconds until a deadline is submitted again that the table could not take."""

LOAD_RETRY_SECONDS = 1.0
"""Seconds until a table is tried again that could not be loaded at its deadline."""

WaitId = tuple[int, int, bool, int]
"""Identifies a wait: (round, k, whether the digests are closed, deadline in the log)."""


class Wait(NamedTuple):
    """A wait for digests or reveals; `ends` is in seconds of the loop's clock."""

    id: WaitId
    ends: float
    timer: TimerHandle


class Deadlines:
    """One timer for each table whose shuffle waits, whether the table is in memory or not.

    `on_end(table, wait)` is called when one ends, with the table's id of 16 bytes. `now` is the
    wall clock.
    """

    def __init__(self, now: Clock, on_end: Callable[[bytes, WaitId], None]) -> None:
        self._now = now
        self._on_end = on_end
        self._waits: dict[bytes, Wait] = {}

    def arm(self, live_table: LiveTable) -> None:
        """Set the table's timer to the end of the current wait, if there is one."""
        self.disarm(live_table)
        round_ = live_table.table.round
        due = None if round_ is None else deadline(round_)
        if round_ is None or due is None:
            self._waits.pop(live_table.id, None)
            return
        loop = asyncio.get_running_loop()
        shuffle = round_.shuffle
        id = (round_.number, round_.k, bool(shuffle and shuffle.closed_version), due)
        known = self._waits.get(live_table.id)
        if known is not None and known.id == id:
            ends = known.ends
        else:
            ends = loop.time() + min(max(0, due - self._now()), _whole(round_)) / 1000
        live_table.timer = loop.call_at(ends, self._on_end, live_table.id, id)
        self._waits[live_table.id] = Wait(id, ends, live_table.timer)

    def disarm(self, live_table: LiveTable) -> None:
        """Cancel the table's timer, which it may have from an earlier time in memory."""
        wait = self._waits.get(live_table.id)
        if wait is not None:
            wait.timer.cancel()
        live_table.timer = None

    def again(self, table: bytes, *, seconds: float) -> TimerHandle | None:
        """Call `on_end` again for a wait that has ended, after this time; None without one."""
        wait = self._waits.get(table)
        if wait is None:
            return None
        timer = asyncio.get_running_loop().call_later(seconds, self._on_end, table, wait.id)
        self._waits[table] = wait._replace(timer=timer)
        return timer

    def forget(self, table: bytes) -> None:
        """Cancel the timer of a table that has left the log, and drop the end of its wait."""
        wait = self._waits.pop(table, None)
        if wait is not None:
            wait.timer.cancel()

    def close(self) -> None:
        """Cancel all timers."""
        for wait in self._waits.values():
            wait.timer.cancel()


def _whole(round_: Round) -> int:
    """Length of the current wait in milliseconds."""
    closed = round_.shuffle is not None and round_.shuffle.closed_version
    return round_.reveal_ms if closed else round_.commit_ms


class TableLifecycle:
    """Moves tables between `log` and `cache`, and reloads them.

    `mark` records what other processes wrote, before it is published in `notices`. `decide` gets
    the commands that waited for a reload, and those of the deadlines.
    """

    def __init__(
        self,
        log: Log,
        loader: Loader,
        cache: TableCache,
        savepoints: StoredSavepoints,
        notices: Notices,
        tasks: BackgroundTasks,
        mark: HighWaterMark | None,
        *,
        now: Clock,
        decide: Callable[[LiveTable, CommandExecution], None],
    ) -> None:
        self._log = log
        self._loader = loader
        self._cache = cache
        self._savepoints = savepoints
        self._notices = notices
        self._tasks = tasks
        self._mark = mark
        self._decide = decide
        self._due: deque[bytes] = deque()  # out of memory, and their deadline has come
        self.deadlines = Deadlines(now, self._on_deadline)

    def close(self) -> None:
        """Cancel all deadlines."""
        self.deadlines.close()

    # Into memory

    async def load(self, table: str) -> LiveTable:
        """The table, from memory or from the log; UnknownTable if there is none.

        It has every event that any process had committed before the call. Raises Overloaded if
        it is not in memory and the tables in use leave no room for it.
        """
        live_table = self._cache.get(table)
        if live_table is None:
            self._cache.require_room()
            live_table = await self._load(table)
        # Also after a load: another caller may have started it before the newest commit.
        await self.catch_up(live_table)
        if not live_table.committed:
            return await self._cache.load(table)  # raises UnknownTable if the log was rewound
        if live_table.table.closed:
            await require_here(self._log, live_table.id)
        return self._cache.add(live_table)

    async def load_or_create(self, table: bytes) -> LiveTable:
        """A table that may be about to begin; raises Overloaded if there is no room."""
        self._cache.require_room()
        live_table = await self._cache.load_or_create(table)
        self.deadlines.arm(live_table)
        return live_table

    async def load_together(self, tables: Sequence[bytes]) -> list[LiveTable | DealerError]:
        """These tables, or what `load` raises for each; the log is read by a few statements.

        Events that other processes write meanwhile may be missing: a command meets a conflict then.
        """
        loader = self._loader.reading(await ReadAhead.of(self._log, tables, chunk=SLICE))
        loaded: list[LiveTable | DealerError] = []
        for table in tables:
            try:
                self._cache.require_room()
                loaded.append(self._enter(self._cache.add(await loader.load(table))))
            except DealerError as error:
                loaded.append(error)
            await asyncio.sleep(0)  # nothing else runs while a table is read from memory
        return loaded

    async def _load(self, table: str) -> LiveTable:
        return self._enter(await self._cache.load(table))

    def _enter(self, live_table: LiveTable) -> LiveTable:
        self._savepoints.write_due(live_table)
        self.deadlines.arm(live_table)
        self._record_mark(live_table, old=True)
        return live_table

    def _record_mark(self, live_table: LiveTable, *, old: bool = False) -> None:
        """Record the newest event before anybody sees it: if the log loses it, that is noticed."""
        if self._mark is not None:
            at = live_table.table.at
            self._mark.saw(live_table.id, live_table.committed, live_table.leaf, at=at, old=old)

    # Up to date with the log

    def reload_if_due(self, live_table: LiveTable) -> None:
        """Reload the table in a task if it has to be and no append of it is in flight."""
        if live_table.reload_due:
            self._tasks.start(self._reload(live_table))

    async def catch_up(self, live_table: LiveTable) -> None:
        """Read and publish the events that other processes have written to this table.

        So, too, if the log was rewound to an older state. Raises DatabaseError, as
        DatabaseDamaged if the table's rows do not end at its version, Unavailable or
        TableArchived.
        """
        # Each turn answers a version that another process has written meanwhile: a reload reaches
        # the one that the log has at its moment, or gives the table up.
        while True:
            live_table.require_here()
            committed = live_table.committed
            head = await self._log.head(live_table.id) or 0
            live_table.require_here()  # it may have been given up meanwhile
            if committed <= head <= live_table.committed:
                return
            if not (live_table.reloading or live_table.in_flight):
                live_table.begin_reload()
                # A task of its own: the caller may be cancelled meanwhile.
                self.reload_if_due(live_table)
            # Appends in flight meet the foreign events in the log, as a conflict.
            await live_table.wait_committed(
                NEVER if live_table.reloading else live_table.table.version
            )

    async def _reload(self, live_table: LiveTable) -> None:
        while True:
            try:
                fresh, notice = await self._loader.advance(live_table)
                break
            except Exception as error:
                if not isinstance(error, DealerError):
                    report("reloading a table failed", error)
                if not may_pass(error):
                    self._give_up(live_table, error)
                    return
                for execution in live_table.take_pending_retries():
                    execution.answer(unavailable(error))
                live_table.read_failed()
                # Spread the retries of all tables and nodes for when the database is back.
                await asyncio.sleep(around(RELOAD_RETRY_SECONDS))
        try:
            live_table.adopt(fresh)
            if notice.entries:
                self._record_mark(live_table)
            if notice.entries or notice.reset:
                self._notices.send(live_table, notice)
        except Exception as error:  # half published: subscribers and callers begin again
            report("publishing a reloaded table failed", error)
            self._give_up(live_table, error)
            return
        self._resume(live_table)

    def _resume(self, live_table: LiveTable) -> None:
        """Decide what waited for the reload, once what it found is published."""
        # Another process may have sealed the shuffle that a draw waits for.
        live_table.drop_pending_draw()
        for execution in live_table.resume():
            self._decide(live_table, execution)
        self.deadlines.arm(live_table)
        self._cache.weigh(live_table)

    def _give_up(self, live_table: LiveTable, error: Exception) -> None:
        """Another process has archived the table, or its log cannot be read: no retry helps.

        Its subscribers are disconnected.
        """
        live_table.give_up(error)
        live_table.drop_pending_draw()
        self.deadlines.disarm(live_table)
        self.deadlines.forget(live_table.id)
        self._cache.remove(live_table)
        self._notices.send(live_table, CommitNotice([], [], reset=True))

    # Deadlines

    def _on_deadline(self, table: bytes, wait: WaitId) -> None:
        live_table = self._cache.get(table.hex())
        if live_table is None:
            self._due.append(table)
            if len(self._due) == 1:
                self._tasks.start(self._wake_due())
            return
        live_table.timer = None

        def on_outcome(outcome: Outcome) -> None:
            if isinstance(outcome, CommandResult):
                self.deadlines.arm(live_table)
            elif live_table.timer is None:
                live_table.timer = self.deadlines.again(table, seconds=DEADLINE_RETRY_SECONDS)

        # The deadline of this wait and not a later one, which another process may have begun.
        self._decide(
            live_table, CommandExecution(command=CheckDeadlines(wait[-1]), done=on_outcome)
        )

    async def _wake_due(self) -> None:
        """Load due tables one after the other, so that many at a time do not fill memory."""
        while self._due:
            await self._wake(self._due[0])
            self._due.popleft()

    async def _wake(self, table: bytes) -> None:
        """Load a table whose deadline has come, even if there is no room."""
        if self._cache.get(table.hex()) is not None:
            return
        try:
            await self.catch_up(await self._load(table.hex()))
        except Exception as error:
            if not isinstance(error, DealerError):
                report("loading a table for its deadline failed", error)
            if may_pass(error):
                self.deadlines.again(table, seconds=LOAD_RETRY_SECONDS)
            else:  # unknown, archived or damaged: no shuffle ends there
                self.deadlines.forget(table)
                self._cache.asleep.discard(table.hex())
