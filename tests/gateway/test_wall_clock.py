"""Over sockets: a step of the wall clock by an hour during a shuffle excludes no player."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dealer.gateway import Gateway
from dealer.service.build import open_service
from dealer.service.service import ServiceOptions
from tests.gateway.conftest import Connect, serving
from tests.gateway.tables import SeatedTable, commit_entropy, reveal_entropy, seat_players
from tests.service.wall_clock import HOUR, WallClock


@pytest.fixture
def clock() -> WallClock:
    return WallClock()


@pytest.fixture
async def gateway(clock: WallClock, tmp_path: Path) -> AsyncIterator[Gateway]:
    async with serving(
        open_service(f"sqlite:///{tmp_path / 'dealer.db'}", ServiceOptions(clock=clock))
    ) as gateway:
        yield gateway


async def waiting_shuffle(connect: Connect, gateway: Gateway, *, wait_ms: int) -> SeatedTable:
    """A table with a shuffle that waits for its two players."""
    table = await seat_players(connect, gateway, players=2)
    await table.host.call("round.open", commit_ms=wait_ms, reveal_ms=wait_ms)
    await table.host.call("deck.shuffle")
    return table


async def events_to_the_seal(table: SeatedTable) -> list[dict[str, Any]]:
    player = table.players[0]
    await player.until(lambda: player.events and player.events[-1]["type"] == "DeckSealed")
    return player.events


@pytest.mark.parametrize("step", [-HOUR, HOUR])
async def test_a_shuffle_has_the_entropy_of_all_players(
    gateway: Gateway, connect: Connect, clock: WallClock, step: int
) -> None:
    table = await waiting_shuffle(connect, gateway, wait_ms=30_000)
    clock.ms += step
    await commit_entropy(table)
    clock.ms -= step
    await reveal_entropy(table)
    events = await events_to_the_seal(table)
    types = [event["type"] for event in events]
    assert types.count("EntropyRevealed") == 2
    assert "ShuffleVoided" not in types
    at = [event["at"] for event in events]
    assert at == sorted(at)


@pytest.mark.parametrize("step", [-HOUR, HOUR])
async def test_silent_players_do_not_stall_a_shuffle(
    gateway: Gateway, connect: Connect, clock: WallClock, step: int
) -> None:
    table = await waiting_shuffle(connect, gateway, wait_ms=1000)
    clock.ms += step
    await events_to_the_seal(table)
    assert (await table.host.call("deck.deal", each=1))["version"]
