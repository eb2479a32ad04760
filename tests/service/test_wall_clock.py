"""The wall clock is stepped by an hour, back or forth, while shuffles wait for their players."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from dealer.game.commands import Actor, CommitEntropy, RevealEntropy, StartShuffle
from dealer.game.decide.shuffles import deadline
from dealer.proof.keys import player_digest
from dealer.proof.verify import verify
from dealer.service import Resident, Service
from dealer.service.clock import utc_ms
from dealer.service.opening import open_service
from tests.service.test_service import HOST, bundle_of, table_of

HOUR = 3_600_000
NONCE = bytes(32)


class WallClock:
    """The system's clock, stepped by `ms`."""

    def __init__(self) -> None:
        self.ms = 0

    def __call__(self) -> int:
        return utc_ms() + self.ms


@pytest.fixture
def clock() -> WallClock:
    return WallClock()


@pytest.fixture
def opened(clock: WallClock, tmp_path: Path) -> Callable[[], Any]:
    return lambda: open_service(f"sqlite:///{tmp_path / 'dealer.db'}", clock=clock)


@pytest.fixture
async def service(opened: Callable[[], Any]) -> AsyncIterator[Service]:
    async with opened() as service:
        yield service


async def until(truth: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not truth():  # noqa: ASYNC110  the timer tells nobody
            await asyncio.sleep(0.01)


async def commit(service: Service, resident: Resident, seat: int) -> None:
    k = resident.table.round.k
    digest = player_digest(table=resident.id, round=1, k=k, seat=seat, nonce=NONCE)
    await service.call(resident, CommitEntropy(Actor(seat=seat), 1, k, digest))


async def reveal(service: Service, resident: Resident, seat: int) -> None:
    k = resident.table.round.k
    await service.call(resident, RevealEntropy(Actor(seat=seat), 1, k, NONCE))


def ends(service: Service, resident: Resident) -> float:
    """When the table's timer rings, in seconds from now."""
    assert resident.timer is not None
    return resident.timer.when() - asyncio.get_running_loop().time()


def sealed(resident: Resident) -> bool:
    return resident.table.round.shuffle is None


@pytest.mark.parametrize("step", [-HOUR, HOUR])
async def test_nobody_is_shut_out_and_nothing_stalls(
    service: Service, clock: WallClock, step: int
) -> None:
    """The clock is stepped in the first wait, and again, the other way, in the second."""
    resident = await table_of(service, entropy="players", commit_ms=60_000, reveal_ms=60_000)
    await service.call(resident, StartShuffle(HOST))
    await commit(service, resident, 1)
    clock.ms += step
    service._desk.deadlines.arm(resident)  # as any event at the table does
    assert 50 < ends(service, resident) <= 60
    await commit(service, resident, 2)
    assert resident.table.round.shuffle.closed_version
    await reveal(service, resident, 1)
    clock.ms -= step
    service._desk.deadlines.arm(resident)
    assert 50 < ends(service, resident) <= 60
    await reveal(service, resident, 2)
    assert sealed(resident)
    report = verify(await bundle_of(service, resident), key=service.public_key)
    assert report.ok
    assert (report.remarks.voided, report.remarks.left_out) == (0, 0)


@pytest.mark.parametrize("step", [-HOUR, HOUR])
async def test_a_wait_ends_when_it_is_over_and_not_by_the_wall_clock(
    service: Service, clock: WallClock, step: int
) -> None:
    """Seat 2 is silent in both waits: neither stalls, whatever the wall clock says."""
    resident = await table_of(service, entropy="players", commit_ms=1000, reveal_ms=1000)
    await service.call(resident, StartShuffle(HOST))
    clock.ms += step
    await commit(service, resident, 1)
    assert not resident.table.round.shuffle.closed_version
    await until(lambda: resident.table.round.shuffle.closed_version)
    clock.ms -= step
    await until(lambda: resident.table.round.k > 0)
    at = [row.at for row in await service.log.read(resident.id)]
    assert at == sorted(at)
    assert verify(await bundle_of(service, resident), key=service.public_key).ok


async def test_a_shuffle_after_a_step_back_waits_no_longer(
    service: Service, clock: WallClock
) -> None:
    """Events are never older than those before them, so the log runs ahead of the clock by then."""
    resident = await table_of(service, entropy="players", commit_ms=20_000, reveal_ms=1000)
    clock.ms -= HOUR
    await service.call(resident, StartShuffle(HOST))
    assert 15 < ends(service, resident) <= 20
    assert deadline(resident.table.round) - clock() > HOUR - 60_000


@pytest.mark.parametrize(
    ("step", "least", "most"),
    [(0, 10, 20), (-HOUR, 19, 20), (HOUR, 0, 0)],
)
async def test_what_is_left_after_a_restart_is_never_more_than_the_whole(
    opened: Callable[[], Any], clock: WallClock, step: int, least: float, most: float
) -> None:
    async with opened() as service:
        resident = await table_of(service, entropy="players", commit_ms=20_000, reveal_ms=20_000)
        await service.call(resident, StartShuffle(HOST))
    clock.ms += step
    async with opened() as service:
        resident = await service.load(resident.table_id)
        left = ends(service, resident) if resident.timer is not None else 0
        assert least <= left <= most


async def test_a_table_that_leaves_memory_and_comes_back_waits_on(
    service: Service, clock: WallClock
) -> None:
    resident = await table_of(service, entropy="players", commit_ms=60_000, reveal_ms=1000)
    await service.call(resident, StartShuffle(HOST))
    service._desk.deadlines.disarm(resident)
    service.memory._residents.clear()
    clock.ms += HOUR
    again = await service.load(resident.table_id)
    assert again is not resident
    assert 50 < ends(service, again) <= 60
    await commit(service, again, 1)
