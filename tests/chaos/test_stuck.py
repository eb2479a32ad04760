"""Stuck clients delay no other client and no shutdown."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.stuck import EACH, play_among_stuck
from tests.harness.depth import amount

DRAWS = amount(30, many=100)


async def test_stuck_clients_delay_no_other_client_and_no_shutdown(tmp_path: Path) -> None:
    figures = await play_among_stuck(tmp_path, draws=DRAWS, seed=DRAWS)
    assert figures.faults == []
    assert figures.stuck == 4 * EACH
    assert figures.draws == DRAWS
