"""Steps of the wall clock by an hour, in both directions, while shuffles wait for players."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from dealer.game.commands import StartShuffle
from dealer.game.decide.rounds import deadline
from dealer.proof.verify import verify
from dealer.service import LiveTable, Service
from dealer.service.build import open_service
from dealer.service.service import ServiceOptions
from tests.gateway.rpc_client import eventually
from tests.service.tables import (
    HOST,
    bundle_of,
    commit_entropy,
    new_table,
    reveal_entropy,
    round_of,
)
from tests.service.wall_clock import HOUR, WallClock


@pytest.fixture
def clock() -> WallClock:
    return WallClock()


@pytest.fixture
def opened(clock: WallClock, tmp_path: Path) -> Callable[[], Any]:
    return lambda: open_service(f"sqlite:///{tmp_path / 'dealer.db'}", ServiceOptions(clock=clock))


@pytest.fixture
async def service(opened: Callable[[], Any]) -> AsyncIterator[Service]:
    async with opened() as service:
        yield service


def seconds_left(live_table: LiveTable) -> float:
    """Seconds until the table's timer fires."""
    assert live_table.timer is not None
    return live_table.timer.when() - asyncio.get_running_loop().time()


def sealed(live_table: LiveTable) -> bool:
    return round_of(live_table).shuffle is None


def digests_closed(live_table: LiveTable) -> bool:
    shuffle = round_of(live_table).shuffle
    return shuffle is not None and shuffle.closed_version > 0


@pytest.mark.parametrize("step", [-HOUR, HOUR])
async def test_a_step_excludes_no_player_and_stalls_no_shuffle(
    service: Service, clock: WallClock, step: int
) -> None:
    """The clock is stepped in the first wait, and again, the other way, in the second."""
    live_table = await new_table(service, entropy="players", commit_ms=60_000, reveal_ms=60_000)
    await service.execute(live_table, StartShuffle(HOST))
    await commit_entropy(service, live_table, 1)
    clock.ms += step
    service.lifecycle.deadlines.arm(live_table)  # as any event at the table does
    assert 50 < seconds_left(live_table) <= 60
    await commit_entropy(service, live_table, 2)
    assert digests_closed(live_table)
    await reveal_entropy(service, live_table, 1)
    clock.ms -= step
    service.lifecycle.deadlines.arm(live_table)
    assert 50 < seconds_left(live_table) <= 60
    await reveal_entropy(service, live_table, 2)
    assert sealed(live_table)
    report = verify(await bundle_of(service, live_table), key=service.keys.public_key)
    assert report.ok
    assert (report.remarks.voided, report.remarks.left_out) == (0, 0)


@pytest.mark.slow
@pytest.mark.parametrize("step", [-HOUR, HOUR])
async def test_a_wait_ends_by_the_monotonic_clock(
    service: Service, clock: WallClock, step: int
) -> None:
    """Seat 2 sends nothing in both waits, and each of them ends at any time of the wall clock."""
    live_table = await new_table(service, entropy="players", commit_ms=1000, reveal_ms=1000)
    await service.execute(live_table, StartShuffle(HOST))
    clock.ms += step
    await commit_entropy(service, live_table, 1)
    assert not digests_closed(live_table)
    await eventually(lambda: digests_closed(live_table))
    clock.ms -= step
    await eventually(lambda: round_of(live_table).k > 0)
    at = [row.at for row in await service.log.read(live_table.id)]
    assert at == sorted(at)
    assert verify(await bundle_of(service, live_table), key=service.keys.public_key).ok


async def test_a_shuffle_after_a_step_back_waits_no_longer(
    service: Service, clock: WallClock
) -> None:
    """Events are never older than those before them, so the log is ahead of the clock then."""
    live_table = await new_table(service, entropy="players", commit_ms=20_000, reveal_ms=1000)
    clock.ms -= HOUR
    await service.execute(live_table, StartShuffle(HOST))
    assert 15 < seconds_left(live_table) <= 20
    by_the_log = deadline(round_of(live_table))
    assert by_the_log is not None
    assert by_the_log - clock() > HOUR - 60_000


@pytest.mark.parametrize(
    ("step", "least", "most"),
    [(0, 10, 20), (-HOUR, 19, 20), (HOUR, 0, 0)],
)
async def test_after_a_restart_at_most_the_whole_wait_is_left(
    opened: Callable[[], Any], clock: WallClock, step: int, least: float, most: float
) -> None:
    async with opened() as service:
        live_table = await new_table(service, entropy="players", commit_ms=20_000, reveal_ms=20_000)
        await service.execute(live_table, StartShuffle(HOST))
    clock.ms += step
    async with opened() as service:
        live_table = await service.lifecycle.load(live_table.table_id)
        left = seconds_left(live_table) if live_table.timer is not None else 0
        assert least <= left <= most


async def test_a_wait_continues_when_its_table_is_loaded_again(
    service: Service, clock: WallClock
) -> None:
    live_table = await new_table(service, entropy="players", commit_ms=60_000, reveal_ms=1000)
    await service.execute(live_table, StartShuffle(HOST))
    service.lifecycle.deadlines.disarm(live_table)
    service.tables._tables.clear()
    clock.ms += HOUR
    again = await service.lifecycle.load(live_table.table_id)
    assert again is not live_table
    assert 50 < seconds_left(again) <= 60
    await commit_entropy(service, again, 1)
