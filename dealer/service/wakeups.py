"""Wake-ups for tables that left memory while a shuffle waits: a deadline and an id each.

At its deadline such a table is loaded again, and its own timer (`deadlines`) goes on from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from heapq import heapify, heappop, heappush

from dealer.errors import DealerError, Refused
from dealer.service.resident import Resident

BOUND = 100_000
"""Tables that may sleep at a time; where as many do, the next ones stay in memory."""

SIZE = 260
"""Bytes that a sleeping table takes, estimated."""

SOON_SECONDS = 1.0
"""A table whose deadline is nearer than this does not leave memory."""

RETRY_SECONDS = 1.0
"""How long it takes until a table that could not be loaded is tried again."""


class Wakeups:
    """Loads each table that `sleep` took in when its time has come; `load` raises DealerError."""

    def __init__(self, load: Callable[[str], Awaitable[object]]) -> None:
        self._load = load
        self._due: dict[str, float] = {}
        self._queue: list[tuple[float, str]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._waking: asyncio.Task[None] | None = None

    def __len__(self) -> int:
        return len(self._due)

    @property
    def size(self) -> int:
        """Bytes of memory that this takes, estimated."""
        return SIZE * len(self._queue)

    def sleep(self, resident: Resident) -> bool:
        """Wake this table when its timer would have gone off; False if it has to stay."""
        if resident.timer is None:
            return True
        loop = asyncio.get_running_loop()
        due = resident.timer.when()
        if due < loop.time() + SOON_SECONDS or len(self._due) >= BOUND:
            return False
        resident.timer.cancel()
        resident.timer = None
        self._add(resident.table_id, due)
        return True

    def forget(self, table: str) -> None:
        """The table is in memory again, where it has a timer of its own."""
        if self._due.pop(table, None) is not None and len(self._queue) > 2 * len(self._due) + 64:
            self._queue = [(due, table) for table, due in self._due.items()]
            heapify(self._queue)

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._waking is not None:
            self._waking.cancel()
            await asyncio.gather(self._waking, return_exceptions=True)

    def _add(self, table: str, due: float) -> None:
        self._due[table] = due
        heappush(self._queue, (due, table))
        self._set_timer()

    def _set_timer(self) -> None:
        """Be called at the first deadline, unless tables are being woken already."""
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
        """One table after the other, so that many that are due at once do not fill memory."""
        loop = asyncio.get_running_loop()
        while self._queue and self._queue[0][0] <= loop.time():
            due, table = heappop(self._queue)
            if self._due.get(table) != due:
                continue
            try:
                await self._load(table)
            except DealerError as error:
                if isinstance(error, Refused) and not error.temporary:
                    self._due.pop(table, None)  # gone, or archived: nothing waits there
                elif self._due.get(table) == due:
                    self._add(table, loop.time() + RETRY_SECONDS)
            else:
                self.forget(table)
