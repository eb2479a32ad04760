"""Automatic closing: unused tables are closed and verify; tables in use stay open."""

from __future__ import annotations

import asyncio

import pytest

from dealer.game.cards import STANDARD
from dealer.game.commands import Actor, LeaveSeat, OpenRound, TakeSeat
from dealer.projector.runner import Projector
from dealer.proof.verify import verify
from dealer.service import LiveTable, Service
from dealer.service.operations import close_tables
from dealer.service.operations.close_tables import AutoClose
from dealer.service.tables.decks import RULE

HOST = Actor(host=True)
HOUR = 3_600_000


async def closer_of(
    service: Service, monkeypatch: pytest.MonkeyPatch, *, empty: int, idle: int, later: int
) -> AutoClose:
    """A closer whose clock is `later` milliseconds ahead; the read models are up to date."""
    await service.log.run_when_idle(Projector().slice)
    closer = AutoClose(service, empty_ms=empty, idle_ms=idle)
    now = closer.now
    monkeypatch.setattr(closer, "now", lambda: now() + later)
    return closer


async def tables(service: Service) -> dict[str, LiveTable]:
    """A table of each kind of use."""
    opened = {
        name: (await service.open_table({}))[0] for name in ("new", "left", "seated", "playing")
    }
    opened["refuses"] = (await service.open_table({"close": "nobody"}))[0]
    for name in ("left", "seated"):
        await service.execute(opened[name], TakeSeat("a player"))
    await service.execute(opened["left"], LeaveSeat(Actor(seat=1)))
    await service.execute(opened["playing"], OpenRound(HOST, STANDARD, "house", 1000, 1000))
    return opened


async def test_empty_tables_close_after_their_time_whatever_their_rules_say(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = await tables(service)
    early = await closer_of(service, monkeypatch, empty=HOUR, idle=0, later=HOUR // 2)
    assert await early.slice() == 0
    closer = await closer_of(service, monkeypatch, empty=HOUR, idle=0, later=2 * HOUR)
    assert await closer.slice() == 3
    closed = {name for name, live_table in opened.items() if live_table.table.closed}
    assert closed == {"new", "left", "refuses"}
    assert service.stats.closed == {"empty": 3}
    assert await closer.slice() == 0


async def test_idle_tables_close_with_their_round_and_verify(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = await tables(service)
    closer = await closer_of(service, monkeypatch, empty=0, idle=HOUR, later=2 * HOUR)
    assert await closer.slice() == 5
    lines = [line async for line in service.bundle(opened["playing"])]
    report = verify(lines, key=service.keys.public_key)
    assert report.fault is None
    assert '"RoundClosed"' in "".join(lines)


async def test_a_table_with_subscribers_stays_open(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_table, _ = await service.open_table({})
    service.subscribe(live_table, "a subscriber")
    closer = await closer_of(service, monkeypatch, empty=HOUR, idle=HOUR, later=2 * HOUR)
    assert await closer.slice() == 0
    service.unsubscribe(live_table, "a subscriber")
    assert await closer.slice() == 1


async def test_a_table_whose_read_models_lag_stays_open(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    closer = await closer_of(service, monkeypatch, empty=HOUR, idle=0, later=2 * HOUR)
    live_table, _ = await service.open_table({})
    assert await closer.slice() == 0
    await service.log.run_when_idle(Projector().slice)
    await service.execute(live_table, TakeSeat("at the last moment"))
    assert await closer.slice() == 0
    assert not live_table.table.closed


async def test_all_streams_are_scanned_in_slices(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(7):
        await service.open_table({})
    monkeypatch.setattr(close_tables, "SLICE", 3)
    monkeypatch.setattr(close_tables, "CLOSED", 2)
    closer = await closer_of(service, monkeypatch, empty=HOUR, idle=0, later=2 * HOUR)
    assert [await closer.slice() for _ in range(5)] == [2, 2, 2, 1, 0]


async def test_two_nodes_close_a_table_once(open_service, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = await open_service(), await open_service()
    opened = [(await one.open_table({}))[0] for _ in range(5)]
    closers = [
        await closer_of(node, monkeypatch, empty=HOUR, idle=0, later=2 * HOUR)
        for node in (one, other)
    ]
    closed = await asyncio.gather(*(closer.slice() for closer in closers))
    assert sum(closed) == 5
    for live_table in opened:
        rows = await one.log.read(live_table.id)
        assert [row.type for row in rows] == ["TableOpened", "TableClosed"]


async def test_a_step_of_the_wall_clock_does_not_age_a_table(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.open_table({})
    closer = await closer_of(service, monkeypatch, empty=HOUR, idle=HOUR, later=0)
    now = service.now
    monkeypatch.setattr(service, "now", lambda: now() + 1000 * HOUR)
    assert await closer.slice() == 0


async def test_unused_decks_close_whatever_else_stays_open(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = await tables(service)
    deck, _ = await service.open_table({RULE: 1})
    await service.execute(deck, OpenRound(HOST, STANDARD, "house", 1000, 1000))
    await service.log.run_when_idle(Projector().slice)
    closer = AutoClose(service, empty_ms=0, idle_ms=0, deck_ms=HOUR)
    assert await closer.slice() == 0
    now = closer.now
    monkeypatch.setattr(closer, "now", lambda: now() + 2 * HOUR)
    assert await closer.slice() == 1
    assert deck.table.closed
    assert not any(live_table.table.closed for live_table in opened.values())
    assert service.stats.closed == {"deck": 1}
    lines = [line async for line in service.bundle(deck)]
    assert verify(lines).fault is None
