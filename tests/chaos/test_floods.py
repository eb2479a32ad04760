"""Floods of traffic that no real client sends."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.floods import FLOODS, flood
from tests.harness.depth import amount

CONNECTIONS = amount(4, many=30)


async def test_floods_stop_no_game_and_do_not_grow_the_server(tmp_path: Path) -> None:
    figures = await flood(tmp_path, connections=CONNECTIONS, seed=CONNECTIONS)
    assert figures.faults == []
    assert figures.connections == len(FLOODS) * CONNECTIONS
    assert figures.closed_by_the_server == figures.connections
    assert figures.draws_meanwhile >= len(FLOODS)
