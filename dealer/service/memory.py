"""Cache of tables: those in use and, within a bound on bytes, the most recently used others.

A table's size is an estimate, made when it comes in and after each of its commits. When the sum is
past the bound, tables that nobody uses leave, the longest unused first. What is then still too much
is in use: until it is less no table is loaded or opened, and none that is large grows.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator

from dealer.errors import Overloaded, UnknownTable
from dealer.game.commands import (
    CloseRound,
    CloseTable,
    Command,
    CommitEntropy,
    FinishShuffle,
    LeaveSeat,
    PassTime,
    RevealEntropy,
)
from dealer.service.loading import Loader
from dealer.service.resident import Resident

BYTES = 64 * 2**20
"""The default bound on all tables in memory together."""

TABLES = 10_000
"""The default bound on the number of tables that nobody uses."""

SMALL = 65_536
"""Bytes up to which a table in use may grow, whatever the others take."""

LOADS = 8
"""Tables that are read from the log at a time: reading takes memory, too."""

_LOOKED_AT = 32
"""How many of the longest unused tables are looked at for each that comes in or grows."""

_SEARCHED = 512
"""How many are before a table is refused for want of room."""

_EVENTS, _LONG = 16, 2048
"""A table is weighed again after so many events, or one whose leaf is that long: at most some
6 KiB of it are not in the sum then."""

_ENDING = (
    CloseRound,
    CloseTable,
    CommitEntropy,
    FinishShuffle,
    LeaveSeat,
    PassTime,
    RevealEntropy,
)
"""Commands that end something, or let a shuffle that runs come to its end."""


class Memory:
    """Tables in memory by id.

    `bytes_bound` bounds the estimated bytes of all of them, `bound` the number of those that are
    not in use. `leave` is called with a table that is about to go; where it returns False the table
    stays.
    """

    def __init__(
        self,
        loader: Loader,
        *,
        bound: int = TABLES,
        bytes_bound: int = BYTES,
        leave: Callable[[Resident], bool] = lambda resident: True,
    ) -> None:
        self._loader = loader
        self.bound = bound
        self.bytes_bound = bytes_bound
        self.bytes = 0
        self.elsewhere: Callable[[], int] = lambda: 0
        self._leave = leave
        self._residents: OrderedDict[str, Resident] = OrderedDict()
        self._loading: dict[bytes, asyncio.Task[Resident]] = {}
        self._turn = asyncio.Semaphore(LOADS)

    def __len__(self) -> int:
        return len(self._residents)

    def __iter__(self) -> Iterator[Resident]:
        return iter(list(self._residents.values()))

    def get(self, table: str) -> Resident | None:
        resident = self._residents.get(table)
        if resident is not None:
            self._residents.move_to_end(table)
        return resident

    async def load(self, table: str) -> Resident:
        """From the log, once however many ask; UnknownTable if there is none."""
        resident = await self._load(_table_id(table))
        if not resident.committed:
            raise UnknownTable("There is no such table here; check its id, or open a new one.")
        return self.keep(resident)

    async def found(self, table: bytes) -> Resident:
        """A table that may be about to begin."""
        return self.keep(await self._load(table))

    def forget_if_empty(self, resident: Resident) -> None:
        if not resident.committed and resident.idle():
            self._remove(resident)

    async def _load(self, table: bytes) -> Resident:
        task = self._loading.get(table)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._load_in_turn(table))
            self._loading[table] = task
            task.add_done_callback(lambda done: self._loaded(table, done))
        return await asyncio.shield(task)

    async def _load_in_turn(self, table: bytes) -> Resident:
        async with self._turn:
            return await self._loader.load(table)

    def _loaded(self, table: bytes, task: asyncio.Task[Resident]) -> None:
        del self._loading[table]
        if not task.cancelled():
            task.exception()  # retrieved here, for all who waited may have gone

    def keep(self, resident: Resident) -> Resident:
        """The one that is in memory of this table: this one, unless there is another."""
        kept = self._residents.setdefault(resident.table_id, resident)
        self.weigh(kept)
        return kept

    # Bytes

    @property
    def full(self) -> bool:
        """Whether more bytes are taken than should be."""
        return self.bytes + self.elsewhere() > self.bytes_bound

    def weigh(self, resident: Resident) -> None:
        """Take in how much a table takes now, and let others go for it if need be."""
        if self._residents.get(resident.table_id) is not resident:
            return
        self._measure(resident)
        if self._too_much():
            self._shrink(_LOOKED_AT, but=resident)

    def committed(self, resident: Resident) -> None:
        """The same after a commit, where enough has happened for it to make a difference."""
        grown = resident.committed - resident.weighed_at
        if grown >= _EVENTS or len(resident.leaf) > _LONG:
            self.weigh(resident)

    def _measure(self, resident: Resident) -> None:
        size = resident.size()
        resident.weighed_at = resident.committed
        self.bytes += size - resident.weight
        resident.weight = size

    def require_room(self) -> None:
        """Raise Overloaded if no further table may come in just now."""
        if self.full:
            self._shrink(_SEARCHED)
        if self.full:
            raise Overloaded(
                "The tables in use here take all the memory that there is for them; try again "
                "shortly."
            )

    def require_room_to_grow(self, resident: Resident, command: Command) -> None:
        """Raise Overloaded if a large table may not do what would make it larger just now."""
        if resident.weight > SMALL and self.full and not isinstance(command, _ENDING):
            raise Overloaded(
                "This table is large, and the tables in use here take all the memory that there "
                "is for them; close its round, or try again shortly."
            )

    def _too_much(self) -> bool:
        return len(self._residents) > self.bound or self.full

    def _shrink(self, looked_at: int, *, but: Resident | None = None) -> None:
        """Let tables go, the longest unused first; those in use are not looked at again soon."""
        for _ in range(min(looked_at, len(self._residents))):
            resident = next(iter(self._residents.values()))
            if resident is not but and resident.idle() and self._leave(resident):
                self._remove(resident)
                if not self._too_much():
                    return
            else:
                # In use: whoever lags there reads the log, which is slower and takes no memory.
                resident.ring.clear()
                self._measure(resident)
                self._residents.move_to_end(resident.table_id)

    def _remove(self, resident: Resident) -> None:
        if self._residents.get(resident.table_id) is resident:
            del self._residents[resident.table_id]
            self.bytes -= resident.weight
            resident.weight = 0


def _table_id(table: str) -> bytes:
    try:
        table_id = bytes.fromhex(table)
    except ValueError:
        table_id = b""
    if len(table_id) != 16 or table_id.hex() != table:
        raise UnknownTable("A table's id is 32 lower-case hex digits; check that it is whole.")
    return table_id
