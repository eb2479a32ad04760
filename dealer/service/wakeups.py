"""Wake-ups: the deadlines of tables that left memory while a shuffle waits.

At its deadline such a table is loaded again and gets a timer of its own (`deadlines`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from heapq import heapify, heappop, heappush

from dealer.errors import DealerError
from dealer.service.execution import may_pass
from dealer.service.live_table import LiveTable

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
