"""Over sockets: the wall clock is stepped by an hour in mid-shuffle, and nobody is shut out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from dealer.gateway import Gateway, serve
from dealer.service.opening import open_service
from tests.gateway.conftest import EAGER, Arrive
from tests.gateway.tables import promise, reveal, seat_all
from tests.service.test_wall_clock import HOUR, WallClock


@pytest.fixture
def clock() -> WallClock:
    return WallClock()


@pytest.fixture
async def gateway(clock: WallClock, tmp_path: Path) -> AsyncIterator[Gateway]:
    async with (
        open_service(f"sqlite:///{tmp_path / 'dealer.db'}", clock=clock) as service,
        serve(service, port=0, limits=EAGER) as gateway,
    ):
        yield gateway


@pytest.mark.parametrize("step", [-HOUR, HOUR])
async def test_a_shuffle_is_sealed_with_everybodys_bytes(
    gateway: Gateway, arrive: Arrive, clock: WallClock, step: int
) -> None:
    table = await seat_all(arrive, gateway, players=2)
    await table.host.ask("round.open", commit_ms=30_000, reveal_ms=30_000)
    await table.host.ask("deck.shuffle")
    clock.ms += step
    await promise(table)
    clock.ms -= step
    await reveal(table)
    host = table.players[0]
    await host.until(lambda: host.events and host.events[-1]["type"] == "DeckSealed")
    kinds = [event["type"] for event in host.events]
    assert kinds.count("EntropyRevealed") == 2
    assert "ShuffleVoided" not in kinds
    at = [event["at"] for event in host.events]
    assert at == sorted(at)


@pytest.mark.parametrize("step", [-HOUR, HOUR])
async def test_who_is_silent_does_not_stall_it(
    gateway: Gateway, arrive: Arrive, clock: WallClock, step: int
) -> None:
    table = await seat_all(arrive, gateway, players=2)
    await table.host.ask("round.open", commit_ms=1000, reveal_ms=1000)
    await table.host.ask("deck.shuffle")
    clock.ms += step
    host = table.players[0]
    await host.until(lambda: host.events and host.events[-1]["type"] == "DeckSealed")
    assert (await table.host.ask("deck.deal", each=1))["version"]
