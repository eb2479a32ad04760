"""Table cache: the tables in use and, within a bound on bytes, the most recently used idle ones.

A table's size is an estimate, made when it is loaded and after its commits. While the sum exceeds
the bound, idle tables are evicted, the least recently used first. If that is not enough, the rest
is in use: until it shrinks, no table is loaded or opened and no large table grows.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from time import perf_counter

from dealer.errors import Overloaded, UnknownTable
from dealer.eventlog.recent import RecentEvents
from dealer.game import commands
from dealer.histogram import LONG_SECONDS, Histogram
from dealer.projector.runner import Projector
from dealer.service.tables.live_table import LiveTable
from dealer.service.tables.loading import Loader

BYTES = 64 * 2**20
"""Default bound on the bytes of all tables in memory."""

TABLES = 10_000
"""Default bound on the number of tables before idle ones are evicted."""

SMALL = 65_536
"""Bytes up to which a table in use may always grow."""

LOADS = 8
"""Tables that are read from the log at the same time: reading takes memory, too."""

ASLEEP = 100_000
"""Tables that may be out of memory while a deadline of theirs runs; further ones stay."""

ASLEEP_BYTES = 600
"""Estimated bytes of the timer and the wait of such a table."""

SOON_SECONDS = 1.0
"""A table whose deadline is nearer than this does not leave memory."""

_CHECKED = 32
"""Least recently used tables that are considered when a table is added or grows."""

_SEARCHED = 512
"""Tables that are considered before a load is refused."""

EVENTS, LONG = 16, 2048
"""A table is weighed again after this many events, or after a leaf of this length: at most some
6 KiB of it are then missing in the sum."""

_ENDING = (
    commands.CloseRound,
    commands.CloseTable,
    commands.CommitEntropy,
    commands.FinishShuffle,
    commands.LeaveSeat,
    commands.CheckDeadlines,
    commands.CloseEntropy,
    commands.RevealEntropy,
    commands.VacateSeat,
)
"""Commands that end something, or let a running shuffle finish; allowed without room."""


class TableCache:
    """Tables in memory by id.

    `bytes_bound` bounds the estimated bytes of all of them, of `recent` and of `projector`, `bound`
    the number of those that are not in use. `asleep` are the tables that have left memory while a
    deadline of theirs runs; their timers count against `bytes_bound`, too. `load_seconds` has
    the time of each load, with the wait for its slot.
    """

    def __init__(
        self,
        loader: Loader,
        recent: RecentEvents,
        projector: Projector,
        *,
        bound: int = TABLES,
        bytes_bound: int = BYTES,
    ) -> None:
        self._loader = loader
        self._recent = recent
        self._projector = projector
        self.bound = bound
        self.bytes_bound = bytes_bound
        self.small = SMALL  # bytes up to which a table in use may always grow
        self.bytes = 0
        self.asleep: set[str] = set()
        self.load_seconds = Histogram(LONG_SECONDS)
        self._tables: OrderedDict[str, LiveTable] = OrderedDict()
        self._loading: dict[bytes, asyncio.Task[LiveTable]] = {}
        self._load_slots = asyncio.Semaphore(LOADS)

    def __len__(self) -> int:
        return len(self._tables)

    def __iter__(self) -> Iterator[LiveTable]:
        return iter(list(self._tables.values()))

    def get(self, table: str) -> LiveTable | None:
        """The table, if it is in memory; it counts as used."""
        live_table = self._tables.get(table)
        if live_table is not None:
            self._tables.move_to_end(table)
        return live_table

    async def load(self, table: str) -> LiveTable:
        """Read from the log, once for concurrent calls; UnknownTable if there is none."""
        table_id = _table_id(table)
        shared = table_id in self._loading
        live_table = await self._load(table_id)
        if shared and not live_table.committed:
            live_table = await self._load(table_id)  # it may have been opened since that load began
        if not live_table.committed:
            raise UnknownTable("There is no such table here; check its id, or open a new one.")
        return self.add(live_table)

    async def load_or_create(self, table: bytes) -> LiveTable:
        """A table that may be about to begin."""
        return self.add(await self._load(table))

    def discard_if_empty(self, live_table: LiveTable) -> None:
        """Remove a table that was never opened."""
        if not live_table.committed and live_table.idle():
            self.remove(live_table)

    async def _load(self, table: bytes) -> LiveTable:
        task = self._loading.get(table)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._load_in_slot(table))
            self._loading[table] = task
            task.add_done_callback(lambda done: self._loaded(table, done))
        return await asyncio.shield(task)

    async def _load_in_slot(self, table: bytes) -> LiveTable:
        started_at = perf_counter()
        async with self._load_slots:
            live_table = await self._loader.load(table)
        self.load_seconds.observe(perf_counter() - started_at)
        return live_table

    def _loaded(self, table: bytes, task: asyncio.Task[LiveTable]) -> None:
        del self._loading[table]
        if not task.cancelled():
            task.exception()  # retrieved, for every waiting caller may be cancelled

    def add(self, live_table: LiveTable) -> LiveTable:
        """Add the table, or return the one that is in memory under this id already."""
        kept = self._tables.setdefault(live_table.table_id, live_table)
        self.asleep.discard(live_table.table_id)
        self.weigh(kept)
        return kept

    # Bytes

    @property
    def used(self) -> int:
        """The bytes that `bytes_bound` bounds: of tables, recent events, projector and timers."""
        kept = self._recent.bytes + self._projector.bytes
        return self.bytes + kept + ASLEEP_BYTES * len(self.asleep)

    @property
    def full(self) -> bool:
        """Whether the bound on bytes is exceeded."""
        return self.used > self.bytes_bound

    def weigh(self, live_table: LiveTable) -> None:
        """Update the size of a table, and evict others if the sum exceeds a bound."""
        live_table = live_table.source or live_table  # with which a broadcast is weighed
        if self._tables.get(live_table.table_id) is not live_table:
            return
        size = live_table.size()
        live_table.weighed_at = live_table.committed
        live_table.weighed_busy = live_table.in_flight > 0 or not live_table.committed
        self.bytes += size - live_table.weight
        live_table.weight = size
        if self._over_bound():
            self._shrink(_CHECKED, but=live_table)

    def require_room(self) -> None:
        """Raise Overloaded if there is no room for another table."""
        if self.full:
            self._shrink(_SEARCHED)
        if self.full:
            raise Overloaded(
                "The tables in use take all the memory that this server has for them; try again "
                "shortly."
            )

    def require_room_to_grow(self, live_table: LiveTable, command: commands.Command) -> None:
        """Raise Overloaded if the command would make a large table larger while memory is full."""
        if live_table.weight > self.small and self.full and not isinstance(command, _ENDING):
            raise Overloaded(
                "This table is large, and the tables in use take all the memory that this server "
                "has for them; close its round, or try again shortly."
            )

    def _over_bound(self) -> bool:
        return len(self._tables) > self.bound or self.full

    def _shrink(self, most: int, *, but: LiveTable | None = None) -> None:
        """Evict idle tables, the least recently used first; tables in use move to the end."""
        for _ in range(min(most, len(self._tables))):
            live_table = next(iter(self._tables.values()))
            if live_table is not but and self._may_leave(live_table):
                self._leave(live_table)
                if not self._over_bound():
                    return
            else:
                # In use: lagging subscribers read the log instead, which takes no memory.
                self._recent.release(live_table.id)
                self._tables.move_to_end(live_table.table_id)

    def _may_leave(self, live_table: LiveTable) -> bool:
        if not live_table.idle():
            return False
        timer = live_table.timer
        if timer is None:
            return True
        soon = asyncio.get_running_loop().time() + SOON_SECONDS
        return timer.when() >= soon and len(self.asleep) < ASLEEP

    def _leave(self, live_table: LiveTable) -> None:
        """Evict a table: its timer runs on, and will have the table loaded again."""
        if live_table.timer is not None:
            self.asleep.add(live_table.table_id)
        live_table.drop_pending_draw()
        self.remove(live_table)

    def remove(self, live_table: LiveTable) -> None:
        """Drop a table, unless another one of its id is in memory instead."""
        if self._tables.get(live_table.table_id) is live_table:
            del self._tables[live_table.table_id]
            self.bytes -= live_table.weight
            live_table.weight = 0
            self._recent.release(live_table.id)


def _table_id(table: str) -> bytes:
    try:
        table_id = bytes.fromhex(table)
    except ValueError:
        table_id = b""
    if len(table_id) != 16 or table_id.hex() != table:
        raise UnknownTable("A table's id is 32 lower-case hex digits; check that it is complete.")
    return table_id
