"""Which tables stay in memory."""

from __future__ import annotations

from typing import Any

from dealer.service.memory import Memory
from dealer.service.resident import Resident


class Shelf:
    """Every table is there, and has one event."""

    async def load(self, table: bytes) -> Resident:
        return Resident(table, table.hex(), committed=1)


async def test_tables_in_use_keep_no_others_in_memory() -> None:
    shelf: Any = Shelf()
    memory = Memory(shelf, bound=100)
    names = [number.to_bytes(16, "big").hex() for number in range(2000)]
    used = [await memory.load(name) for name in names[:40]]
    for resident in used:
        resident.sessions.add("somebody")
    for name in names[40:]:
        await memory.load(name)
    assert len(memory) <= 140
    assert all(memory.get(resident.table_id) is resident for resident in used)
