"""A table whose shuffle waits leaves memory like any other, and wakes for its deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dealer.errors import Overloaded, TableArchived
from dealer.game.cards import STANDARD
from dealer.game.commands import Actor, OpenRound, StartShuffle, TakeSeat
from dealer.service import Entry, Published, Resident, Service, wakeups
from dealer.service.wakeups import Wakeups
from tests.gateway.guest import eventually

HOST = Actor(host=True)


async def waiting_table(service: Service, *, commit_ms: int) -> Resident:
    """A table with a shuffle that waits for a player who never answers."""
    resident, _ = await service.open_table({})
    await service.call(resident, TakeSeat("silent"))
    await service.call(resident, OpenRound(HOST, STANDARD, "players", commit_ms, 60_000))
    await service.call(resident, StartShuffle(HOST))
    return resident


async def test_a_waiting_table_leaves_memory_and_wakes_for_its_deadline(service: Service) -> None:
    resident = await waiting_table(service, commit_ms=1500)
    assert resident.timer is not None
    service.memory.bytes_bound = 1
    await service.memory.found(bytes(16))
    assert service.resident(resident.table_id) is None
    assert len(service.wakeups) == 1
    sealed = asyncio.Event()
    entries: list[Entry] = []

    def publish(_: Resident, news: Published) -> None:
        entries.extend(news.entries)
        if '"type":"DeckSealed"' in entries[-1].leaf:
            sealed.set()

    service.publish = publish
    async with asyncio.timeout(30):
        await sealed.wait()
    assert '"type":"EntropyClosed"' in entries[0].leaf
    assert len(service.wakeups) == 0


async def test_a_table_that_is_loaded_meanwhile_has_its_timer_again(service: Service) -> None:
    resident = await waiting_table(service, commit_ms=60_000)
    bound, service.memory.bytes_bound = service.memory.bytes_bound, 1
    await service.memory.found(bytes(16))
    assert service.resident(resident.table_id) is None
    service.memory.bytes_bound = bound
    again = await service.load(resident.table_id)
    assert again is not resident
    assert again.timer is not None
    assert len(service.wakeups) == 0


async def test_a_table_that_a_caller_holds_stays(service: Service) -> None:
    resident = await waiting_table(service, commit_ms=60_000)
    assert resident.idle()
    with resident.held():
        service.memory.bytes_bound = 1
        await service.memory.found(bytes(16))
        assert service.resident(resident.table_id) is resident


def resident_due(loop: asyncio.AbstractEventLoop, number: int, seconds: float) -> Resident:
    table = number.to_bytes(16, "big")
    resident = Resident(table, table.hex(), committed=1)
    resident.timer = loop.call_later(seconds, lambda: None)
    return resident


async def test_tables_wake_in_order_and_one_that_cannot_be_loaded_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wakeups, "SOON_SECONDS", 0.0)
    monkeypatch.setattr(wakeups, "RETRY_SECONDS", 0.01)
    loop = asyncio.get_running_loop()
    woken: list[int] = []
    refused: dict[int, Exception] = {2: Overloaded("full"), 3: TableArchived("gone")}

    async def load(table: str) -> None:
        number = int(table, 16)
        if number in refused:
            raise refused.pop(number)
        woken.append(number)

    sleeping = Wakeups(load)
    for number, seconds in ((1, 0.05), (2, 0.02), (3, 0.03), (4, 0.06), (5, 0.04)):
        assert sleeping.sleep(resident_due(loop, number, seconds))
    sleeping.forget((4).to_bytes(16, "big").hex())
    await eventually(lambda: not len(sleeping))
    assert sorted(woken) == [1, 2, 5]
    assert woken.index(5) < woken.index(1)
    await sleeping.close()


async def test_so_many_sleep_and_none_that_is_due_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakeups, "BOUND", 3)
    loop = asyncio.get_running_loop()
    load: Callable[[str], Awaitable[Any]] = lambda table: asyncio.sleep(0)  # noqa: E731
    sleeping = Wakeups(load)
    soon = resident_due(loop, 9, 0.5)
    assert not sleeping.sleep(soon)
    assert soon.timer is not None
    ends = [sleeping.sleep(resident_due(loop, number, 60)) for number in range(5)]
    assert ends == [True, True, True, False, False]
    for number in range(3):
        sleeping.forget(number.to_bytes(16, "big").hex())
    assert len(sleeping) == 0
    for _ in range(200):  # what was forgotten leaves nothing behind
        sleeping.sleep(resident_due(loop, 1, 60))
        sleeping.forget((1).to_bytes(16, "big").hex())
    assert sleeping.size < 100 * wakeups.SIZE
    await sleeping.close()
