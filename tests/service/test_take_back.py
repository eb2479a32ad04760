"""What can be taken back follows from the log: after a restart, and at another node."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dealer.errors import NothingToTakeBack
from dealer.game.commands import Actor, Deal, Move, Pass, StartShuffle, TakeBack, TakeSeat
from dealer.service import LiveTable, Service, clock
from tests.service.conftest import OpenService
from tests.service.savepoints import load_whole
from tests.service.tables import HOST, OPEN_ROUND, round_of

ONE, TWO = Actor(seat=1), Actor(seat=2)


@pytest.fixture(autouse=True)
def _stopped_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """All commands at one millisecond, as at a node whose clock is behind another's."""
    monkeypatch.setattr(clock, "time", SimpleNamespace(time_ns=lambda: 1_700_000_000_000_000_000))


async def dealt_table(service: Service) -> LiveTable:
    live_table, _ = await service.open_table({"collect": "nobody"})
    for command in (
        TakeSeat("Ada"),
        TakeSeat("Bob"),
        OPEN_ROUND,
        StartShuffle(HOST),
        Deal(HOST, 3),
    ):
        await service.execute(live_table, command)
    return live_table


def discard(slot: int) -> Move:
    return Move(ONE, "discard", "hand:1", "pile:discard", (slot,))


async def test_the_last_of_two_moves_of_one_millisecond(
    service: Service, open_service: OpenService
) -> None:
    here = await dealt_table(service)
    first, second, third = round_of(here).cards("hand:1")
    await service.execute(here, discard(first))
    await service.execute(here, discard(second))
    assert here.table.at == 1_700_000_000_001
    other = await open_service()
    there = await other.lifecycle.load(here.table_id)
    assert there.table == here.table
    done = await other.execute(there, TakeBack(ONE))
    assert len(done.events) == 2
    assert round_of(there).cards("hand:1") == [second, third]
    with pytest.raises(NothingToTakeBack):
        await service.execute(here, TakeBack(ONE))  # after it has read the other node's events
    assert here.table == there.table


async def test_passed_cards_wait_across_a_restart(
    service: Service, open_service: OpenService
) -> None:
    here = await dealt_table(service)
    mine, his = round_of(here).cards("hand:1")[0], round_of(here).cards("hand:2")[0]
    await service.execute(here, Pass(ONE, (mine,), 2))
    other = await open_service()
    there = await other.lifecycle.load(here.table_id)
    assert (await load_whole(other, here.id)).table == here.table
    await other.execute(there, Pass(TWO, (his,), 1))
    assert his in round_of(there).cards("hand:1")
    assert mine in round_of(there).cards("hand:2")


async def test_a_draw_of_the_same_millisecond_keeps_its_time(service: Service) -> None:
    here = await dealt_table(service)
    at = here.table.at
    for _ in range(3):
        await service.execute(here, Deal(HOST, 1))
    assert here.table.at == at
