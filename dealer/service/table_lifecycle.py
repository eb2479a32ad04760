"""Table lifecycle: loads tables into memory, lets idle ones leave, and keeps shuffle deadlines.

A table that leaves memory while a shuffle waits is loaded again at its deadline.
"""

from __future__ import annotations

from collections.abc import Callable

from dealer.errors import Refused
from dealer.eventlog import ReadOnlyLog
from dealer.service.archive import require_here
from dealer.service.deadlines import Deadlines
from dealer.service.live_table import LiveTable
from dealer.service.reload import Reloader
from dealer.service.stored_savepoints import StoredSavepoints
from dealer.service.table_cache import TableCache
from dealer.service.wakeups import Wakeups


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
