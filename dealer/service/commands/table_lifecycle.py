"""Table lifecycle: loads tables into memory, lets idle ones leave, and keeps shuffle deadlines.

A table that leaves memory while a shuffle waits is loaded again at its deadline.

A table that leaves memory while a shuffle waits is loaded again at its deadline, and gets a timer
of its own (`deadlines`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from heapq import heapify, heappop, heappush

from dealer.errors import DealerError, Refused
from dealer.eventlog import ReadOnlyLog
from dealer.service.commands.deadlines import Deadlines
from dealer.service.commands.reload import Reloader
from dealer.service.tables.archive import require_here
from dealer.service.tables.cache import TableCache
from dealer.service.tables.execution import may_pass
from dealer.service.tables.live_table import LiveTable
from dealer.service.tables.stored_savepoints import StoredSavepoints

BOUND = 100_000
"""Tables that may sleep at the same time; further ones stay in memory."""

SIZE = 260
"""Estimated bytes of a sleeping table."""

SOON_SECONDS = 1.0
"""A table whose deadline is nearer than this does not leave memory."""

RETRY_SECONDS = 1.0
"""Seconds until a table that could not be loaded is tried again."""


class Wakeups:
    """Calls `load`, which may raise DealerError, with each sleeping table at its deadline.

    `on_size` is called with `size` whenever it has changed.
    """

    def __init__(
        self,
        load: Callable[[str], Awaitable[object]],
        *,
        on_size: Callable[[int], None] = lambda size: None,
    ) -> None:
        self._load = load
        self._on_size = on_size
        self._due: dict[str, float] = {}
        self._queue: list[tuple[float, str]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._waking: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._due)

    @property
    def size(self) -> int:
        """Estimated bytes of memory."""
        return SIZE * len(self._queue)

    def sleep(self, live_table: LiveTable) -> bool:
        """Take over the table's timer; False if the table has to stay in memory."""
        if live_table.timer is None:
            return True
        loop = asyncio.get_running_loop()
        due = live_table.timer.when()
        if due < loop.time() + SOON_SECONDS or len(self._due) >= BOUND:
            return False
        live_table.timer.cancel()
        live_table.timer = None
        self._add(live_table.table_id, due)
        return True

    def forget(self, table: str) -> None:
        """Drop the wake-up of a table that is in memory again."""
        if self._due.pop(table, None) is not None and len(self._queue) > 2 * len(self._due) + 64:
            self._queue = [(due, table) for table, due in self._due.items()]
            heapify(self._queue)
            self._on_size(self.size)

    async def close(self) -> None:
        """Cancel the timer and the task that loads tables."""
        if self._timer is not None:
            self._timer.cancel()
        if self._waking is not None:
            self._waking.cancel()
            await asyncio.gather(self._waking, return_exceptions=True)

    def _add(self, table: str, due: float) -> None:
        self._due[table] = due
        heappush(self._queue, (due, table))
        self._on_size(self.size)
        self._set_timer()

    def _set_timer(self) -> None:
        """Set the timer to the first deadline, unless tables are being loaded."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._queue and self._waking is None:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_at(self._queue[0][0], self._start)

    def _start(self) -> None:
        self._timer = None
        self._waking = asyncio.get_running_loop().create_task(self._wake())
        self._waking.add_done_callback(self._woken)

    def _woken(self, task: asyncio.Task[None]) -> None:
        self._waking = None
        if not task.cancelled():
            task.result()
            self._set_timer()

    async def _wake(self) -> None:
        """Load due tables one after the other, so that many at a time do not fill memory."""
        loop = asyncio.get_running_loop()
        while self._queue and self._queue[0][0] <= loop.time():
            due, table = heappop(self._queue)
            self._on_size(self.size)
            if self._due.get(table) != due:
                continue
            try:
                await self._load(table)
            except Exception as error:
                if not isinstance(error, DealerError):
                    loop.call_exception_handler(
                        {"message": "waking a table failed", "exception": error}
                    )
                if may_pass(error) and self._due.get(table) == due:
                    self._add(table, loop.time() + RETRY_SECONDS)
                else:  # unknown, archived or damaged: no shuffle ends there
                    self._due.pop(table, None)
            else:
                self.forget(table)


class TableLifecycle:
    """Moves tables between `log` and `cache`; `on_load` is called with each that was loaded."""

    def __init__(
        self,
        log: ReadOnlyLog,
        cache: TableCache,
        reloader: Reloader,
        deadlines: Deadlines,
        savepoints: StoredSavepoints,
        *,
        on_load: Callable[[LiveTable], None],
    ) -> None:
        self._log = log
        self._cache = cache
        self._reloader = reloader
        self._deadlines = deadlines
        self._savepoints = savepoints
        self._on_load = on_load
        self.wakeups = Wakeups(self._wake, on_size=self._count_wakeups)

    async def load(self, table: str) -> LiveTable:
        """The table with every committed event; see `Service.load`."""
        live_table = self._cache.get(table)
        if live_table is None:
            self._cache.require_room()
            live_table = await self._load(table)
        # Also after a load: another caller may have started it before the newest commit.
        await self._reloader.catch_up(live_table)
        if not live_table.committed:
            return await self._cache.load(table)  # raises UnknownTable if the log was rewound
        if live_table.table.closed:
            await require_here(self._log, live_table.id)
        return self._cache.add(live_table)

    async def load_or_create(self, table: bytes) -> LiveTable:
        """A table that may be about to begin; raises Overloaded where there is no room."""
        self._cache.require_room()
        live_table = await self._cache.load_or_create(table)
        self._arm(live_table)
        return live_table

    def leave(self, live_table: LiveTable) -> bool:
        """Whether the table may leave memory now; if so, its deadline stays scheduled."""
        if not self.wakeups.sleep(live_table):
            return False
        live_table.postpone_draw()
        self._savepoints.write_newest(live_table)
        return True

    async def close(self) -> None:
        """Write the savepoints of long tables, and cancel all deadlines."""
        await self.wakeups.close()
        await self._savepoints.close(self._cache)
        for live_table in self._cache:
            self._deadlines.disarm(live_table)

    def _count_wakeups(self, size: int) -> None:
        self._cache.other_bytes = size

    async def _load(self, table: str) -> LiveTable:
        live_table = await self._cache.load(table)
        self._savepoints.write_due(live_table)
        self._arm(live_table)
        self._on_load(live_table)
        return live_table

    def _arm(self, live_table: LiveTable) -> None:
        """Replace the wake-up of a table that is in memory again by a timer of its own."""
        self.wakeups.forget(live_table.table_id)
        self._deadlines.arm(live_table)

    async def _wake(self, table: str) -> None:
        """Load a table whose deadline has come, even where there is no room."""
        if self._cache.get(table) is not None:
            return
        try:
            await self._reloader.catch_up(await self._load(table))
        except Refused as refusal:
            if not refusal.temporary:
                self._deadlines.drop_wait(bytes.fromhex(table))
            raise
