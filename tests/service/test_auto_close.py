"""Tables that nobody uses are closed, and can be proved; those in use are not."""

from __future__ import annotations

import asyncio

import pytest

from dealer.game.cards import STANDARD
from dealer.game.commands import Actor, LeaveSeat, OpenRound, TakeSeat
from dealer.projector.runner import Projector
from dealer.proof.verify import verify
from dealer.service import Resident, Service, auto_close
from dealer.service.auto_close import AutoClose

HOST = Actor(host=True)
HOUR = 3_600_000


async def closer_of(
    service: Service, monkeypatch: pytest.MonkeyPatch, *, empty: int, idle: int, later: int
) -> AutoClose:
    """A closer whose clock is so many milliseconds ahead; the read models are up to date."""
    await service.log.schedule(Projector().slice)
    closer = AutoClose(service, empty_ms=empty, idle_ms=idle)
    now = closer.now
    monkeypatch.setattr(closer, "now", lambda: now() + later)
    return closer


async def tables(service: Service) -> dict[str, Resident]:
    """One of each kind of use."""
    made = {name: (await service.open_table({}))[0] for name in ("new", "left", "sits", "plays")}
    made["refuses"] = (await service.open_table({"close": "nobody"}))[0]
    for name in ("left", "sits"):
        await service.call(made[name], TakeSeat("somebody"))
    await service.call(made["left"], LeaveSeat(Actor(seat=1)))
    await service.call(made["plays"], OpenRound(HOST, STANDARD, "house", 1000, 1000))
    return made


async def test_empty_tables_close_after_their_time_whatever_their_rules_say(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await tables(service)
    early = await closer_of(service, monkeypatch, empty=HOUR, idle=0, later=HOUR // 2)
    assert await early.slice() == 0
    closer = await closer_of(service, monkeypatch, empty=HOUR, idle=0, later=2 * HOUR)
    assert await closer.slice() == 3
    closed = {name for name, resident in made.items() if resident.table.closed}
    assert closed == {"new", "left", "refuses"}
    assert service.counts.closed == {"empty": 3}
    assert await closer.slice() == 0


async def test_idle_tables_close_with_their_round_and_are_proved(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await tables(service)
    closer = await closer_of(service, monkeypatch, empty=0, idle=HOUR, later=2 * HOUR)
    assert await closer.slice() == 5
    lines = [line async for line in service.bundle(made["plays"])]
    report = verify(lines, key=service.public_key)
    assert report.fault is None
    assert '"RoundClosed"' in "".join(lines)


async def test_a_table_that_somebody_is_connected_to_is_left_open(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    resident, _ = await service.open_table({})
    service.subscribe(resident, "somebody")
    closer = await closer_of(service, monkeypatch, empty=HOUR, idle=HOUR, later=2 * HOUR)
    assert await closer.slice() == 0
    service.unsubscribe(resident, "somebody")
    assert await closer.slice() == 1


async def test_what_the_read_models_do_not_know_yet_is_not_closed_for_it(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    closer = await closer_of(service, monkeypatch, empty=HOUR, idle=0, later=2 * HOUR)
    resident, _ = await service.open_table({})
    assert await closer.slice() == 0
    await service.log.schedule(Projector().slice)
    await service.call(resident, TakeSeat("at the last moment"))
    assert await closer.slice() == 0
    assert not resident.table.closed


async def test_all_streams_are_gone_through_in_slices(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(7):
        await service.open_table({})
    monkeypatch.setattr(auto_close, "SLICE", 3)
    monkeypatch.setattr(auto_close, "CLOSED", 2)
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
    for resident in opened:
        rows = await one.log.read(resident.id)
        assert [row.type for row in rows] == ["TableOpened", "TableClosed"]


async def test_no_step_of_the_wall_clock_makes_a_table_old(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    await service.open_table({})
    closer = await closer_of(service, monkeypatch, empty=HOUR, idle=HOUR, later=0)
    now = service.now
    monkeypatch.setattr(service, "now", lambda: now() + 1000 * HOUR)
    assert await closer.slice() == 0
