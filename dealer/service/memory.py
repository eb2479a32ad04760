"""Which tables are in memory: those that somebody listens to, and the ones used last."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Iterator
from functools import partial

from dealer.errors import UnknownTable
from dealer.service.loading import Loader
from dealer.service.resident import Resident

_LOOKED_AT = 32
"""How many of the longest unused tables are looked at for each that comes in."""


class Memory:
    """At most about `bound` tables, but never one fewer than are in use."""

    def __init__(self, loader: Loader, *, bound: int) -> None:
        self._loader = loader
        self.bound = bound
        self._residents: OrderedDict[str, Resident] = OrderedDict()
        self._loading: dict[bytes, asyncio.Task[Resident]] = {}

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
            self._residents.pop(resident.table_id, None)

    async def _load(self, table: bytes) -> Resident:
        task = self._loading.get(table)
        if task is None:
            task = asyncio.get_running_loop().create_task(self._loader.load(table))
            self._loading[table] = task
            task.add_done_callback(partial(self._loaded, table))
        return await asyncio.shield(task)

    def _loaded(self, table: bytes, task: asyncio.Task[Resident]) -> None:
        del self._loading[table]
        if not task.cancelled():
            task.exception()  # retrieved here: every client that waits for it may have gone

    def keep(self, resident: Resident) -> Resident:
        """The one that is in memory of this table: this one, unless there is another."""
        kept = self._residents.setdefault(resident.table_id, resident)
        surplus = len(self._residents) - self.bound
        if surplus > 0:
            for table in list(self._residents)[:_LOOKED_AT]:
                if self._residents[table].idle() and self._residents[table] is not kept:
                    del self._residents[table]
                else:
                    self._residents.move_to_end(table)
        return kept


def _table_id(table: str) -> bytes:
    try:
        table_id = bytes.fromhex(table)
    except ValueError:
        table_id = b""
    if len(table_id) != 16 or table_id.hex() != table:
        raise UnknownTable("A table's id is 32 lower-case hex digits; check that it is whole.")
    return table_id
