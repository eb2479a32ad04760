"""Wake-ups: a table whose shuffle waits leaves memory and is loaded at its deadline."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest

from dealer.errors import DatabaseDamaged, Overloaded, TableArchived
from dealer.game.cards import STANDARD
from dealer.game.commands import OpenRound, StartShuffle, TakeSeat
from dealer.service import LiveTable, Service
from dealer.service.commands import table_lifecycle
from dealer.service.commands.table_lifecycle import Wait
from dealer.service.tables import cache
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
    assert service.tables.get(live_table.table_id) is None
    assert len(service.tables.asleep) == 1
    listener = Listener(service)
    await listener.until_type("DeckSealed")
    assert listener.types[0] == "EntropyClosed"
    assert listener.types[-1] == "DeckSealed"
    assert len(service.tables.asleep) == 0


async def test_a_table_that_is_loaded_meanwhile_has_its_timer_again(service: Service) -> None:
    live_table = await waiting_table(service, commit_ms=60_000)
    bound, service.tables.bytes_bound = service.tables.bytes_bound, 1
    await service.tables.load_or_create(bytes(16))
    assert service.tables.get(live_table.table_id) is None
    service.tables.bytes_bound = bound
    again = await service.lifecycle.load(live_table.table_id)
    assert again is not live_table
    assert again.timer is not None
    assert len(service.tables.asleep) == 0


async def test_a_table_that_a_caller_holds_stays_in_memory(service: Service) -> None:
    live_table = await waiting_table(service, commit_ms=60_000)
    assert live_table.idle()
    with live_table.held():
        service.tables.bytes_bound = 1
        await service.tables.load_or_create(bytes(16))
        assert service.tables.get(live_table.table_id) is live_table


@dataclass
class Loads:
    """Takes the place of loading: `refused` raises once for each table, by its number."""

    refused: dict[int, list[Exception]]
    begun: list[int] = field(default_factory=list)
    woken: list[int] = field(default_factory=list)

    async def load(self, table: str) -> LiveTable:
        number = int(table, 16)
        self.begun.append(number)
        if self.refused.get(number):
            raise self.refused[number].pop(0)
        self.woken.append(number)
        raise TableArchived("woken, and nothing more to do")


async def wake(
    service: Service, monkeypatch: pytest.MonkeyPatch, loads: Loads, due: dict[int, float]
) -> None:
    """Let tables that are not in memory wait for these seconds, until none of them waits."""
    monkeypatch.setattr(table_lifecycle, "LOAD_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(service.lifecycle, "_load", loads.load)
    loop, deadlines = asyncio.get_running_loop(), service.lifecycle.deadlines
    for number, seconds in due.items():
        table, id = number.to_bytes(16, "big"), (1, 0, False, 0)
        ends = loop.time() + seconds
        timer = loop.call_at(ends, service.lifecycle._on_deadline, table, id)
        deadlines._waits[table] = Wait(id, ends, timer)
        service.tables.asleep.add(table.hex())
    await eventually(lambda: not deadlines._waits)
    assert not service.tables.asleep


async def test_tables_wake_in_order_and_failed_loads_are_retried(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    loads = Loads({2: [Overloaded("full")], 3: [TableArchived("gone")]})
    await wake(service, monkeypatch, loads, {1: 0.05, 2: 0.02, 3: 0.03, 5: 0.04})
    assert sorted(loads.woken) == [1, 2, 5]
    assert loads.begun.count(2) == 2
    assert loads.woken.index(5) < loads.woken.index(1)


async def test_a_table_that_cannot_be_loaded_wakes_no_more_and_others_do(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[dict[str, Any]] = []
    monkeypatch.setattr(asyncio.get_running_loop(), "call_exception_handler", reported.append)
    loads = Loads({1: [DatabaseDamaged("damaged")], 2: [KeyError("a bug")], 3: [MemoryError()]})
    await wake(service, monkeypatch, loads, {number: 0.01 * number for number in range(1, 5)})
    assert sorted(loads.begun) == [1, 2, 3, 3, 4]
    assert [type(context["exception"]) for context in reported] == [KeyError, MemoryError]


async def test_sleeping_tables_are_bounded_and_due_soon_ones_stay(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "ASLEEP", 3)
    soon = await waiting_table(service, commit_ms=1000)
    later = [await waiting_table(service, commit_ms=60_000) for _ in range(5)]
    service.tables.bytes_bound = 1
    await service.tables.load_or_create(bytes(16))
    assert service.tables.get(soon.table_id) is soon
    kept = [service.tables.get(live_table.table_id) is not None for live_table in later]
    assert kept == [False, False, False, True, True]
    assert len(service.tables.asleep) == 3
    service.tables.bytes_bound = 2**30
    for live_table in later:
        await service.lifecycle.load(live_table.table_id)
    assert len(service.tables.asleep) == 0
