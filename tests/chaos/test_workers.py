"""Two nodes over a Citus cluster: workers die, and nothing is lost or doubled."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.workers import play_while_workers_die
from tests.harness.cluster import require_citus


async def test_a_killed_worker_loses_and_doubles_nothing(tmp_path: Path) -> None:
    require_citus()
    figures = await play_while_workers_die(tmp_path, kills=2, seed=2)
    assert figures.faults == []
    assert (figures.lost, figures.doubled, figures.changed) == (0, 0, 0)
    assert (figures.kills, figures.named) == (2, 4)
    assert figures.acknowledged > 0
