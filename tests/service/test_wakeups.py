"""Wake-ups: a table whose shuffle waits leaves memory and is loaded at its deadline."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from dealer.errors import DatabaseDamaged, Overloaded, TableArchived
from dealer.game.cards import STANDARD
from dealer.game.commands import OpenRound, StartShuffle, TakeSeat
from dealer.service import LiveTable, Service
from dealer.service.commands import table_lifecycle
from dealer.service.commands.table_lifecycle import Wakeups
from tests.gateway.rpc_client import eventually
from tests.service.tables import HOST, Listener


async def waiting_table(service: Service, *, commit_ms: int) -> LiveTable:
    """A table with a shuffle that waits for a player that never answers."""
    live_table, _ = await service.open_table({})
    await service.execute(live_table, TakeSeat("silent"))
    await service.execute(live_table, OpenRound(HOST, STANDARD, "players", commit_ms, 60_000))
    await service.execute(live_table, StartShuffle(HOST))
    return live_table


async def test_a_waiting_table_leaves_memory_and_wakes_for_its_deadline(service: Service) -> None:
    live_table = await waiting_table(service, commit_ms=1500)
    assert live_table.timer is not None
    service.tables.bytes_bound = 1
    await service.tables.load_or_create(bytes(16))
    assert service.live_table(live_table.table_id) is None
    assert len(service.wakeups) == 1
    listener = Listener(service)
    await listener.until_type("DeckSealed")
    assert listener.types[0] == "EntropyClosed"
    assert listener.types[-1] == "DeckSealed"
    assert len(service.wakeups) == 0


async def test_a_table_that_is_loaded_meanwhile_has_its_timer_again(service: Service) -> None:
    live_table = await waiting_table(service, commit_ms=60_000)
    bound, service.tables.bytes_bound = service.tables.bytes_bound, 1
    await service.tables.load_or_create(bytes(16))
    assert service.live_table(live_table.table_id) is None
    service.tables.bytes_bound = bound
    again = await service.load(live_table.table_id)
    assert again is not live_table
    assert again.timer is not None
    assert len(service.wakeups) == 0


async def test_a_table_that_a_caller_holds_stays_in_memory(service: Service) -> None:
    live_table = await waiting_table(service, commit_ms=60_000)
    assert live_table.idle()
    with live_table.held():
        service.tables.bytes_bound = 1
        await service.tables.load_or_create(bytes(16))
        assert service.live_table(live_table.table_id) is live_table


def due_table(loop: asyncio.AbstractEventLoop, number: int, seconds: float) -> LiveTable:
    table = number.to_bytes(16, "big")
    live_table = LiveTable(table, table.hex(), committed=1)
    live_table.timer = loop.call_later(seconds, lambda: None)
    return live_table


async def test_tables_wake_in_order_and_failed_loads_are_retried(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table_lifecycle, "SOON_SECONDS", 0.0)
    monkeypatch.setattr(table_lifecycle, "RETRY_SECONDS", 0.01)
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
        assert sleeping.sleep(due_table(loop, number, seconds))
    sleeping.forget((4).to_bytes(16, "big").hex())
    await eventually(lambda: not len(sleeping))
    assert sorted(woken) == [1, 2, 5]
    assert woken.index(5) < woken.index(1)
    await sleeping.close()


async def test_a_table_that_cannot_be_loaded_wakes_no_more_and_others_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table_lifecycle, "SOON_SECONDS", 0.0)
    monkeypatch.setattr(table_lifecycle, "RETRY_SECONDS", 0.01)
    loop = asyncio.get_running_loop()
    reported: list[dict[str, Any]] = []
    monkeypatch.setattr(loop, "call_exception_handler", reported.append)
    loads: list[int] = []

    async def load(table: str) -> None:
        number = int(table, 16)
        loads.append(number)
        if number == 1:
            raise DatabaseDamaged("a row is missing")
        if number == 2:
            raise KeyError("a bug")
        if number == 3 and loads.count(3) == 1:
            raise MemoryError

    sleeping = Wakeups(load)
    for number in range(1, 5):
        assert sleeping.sleep(due_table(loop, number, 0.01 * number))
    await eventually(lambda: not len(sleeping))
    assert sorted(loads) == [1, 2, 3, 3, 4]
    assert [type(context["exception"]) for context in reported] == [KeyError, MemoryError]
    await sleeping.close()


async def test_sleeping_tables_are_bounded_and_due_soon_ones_stay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table_lifecycle, "BOUND", 3)
    loop = asyncio.get_running_loop()
    load: Callable[[str], Awaitable[Any]] = lambda table: asyncio.sleep(0)  # noqa: E731
    sleeping = Wakeups(load)
    soon = due_table(loop, 9, 0.5)
    assert not sleeping.sleep(soon)
    assert soon.timer is not None
    accepted = [sleeping.sleep(due_table(loop, number, 60)) for number in range(5)]
    assert accepted == [True, True, True, False, False]
    for number in range(3):
        sleeping.forget(number.to_bytes(16, "big").hex())
    assert len(sleeping) == 0
    for _ in range(200):  # a forgotten table leaves no entry
        sleeping.sleep(due_table(loop, 1, 60))
        sleeping.forget((1).to_bytes(16, "big").hex())
    assert sleeping.size < 100 * table_lifecycle.SIZE
    await sleeping.close()
