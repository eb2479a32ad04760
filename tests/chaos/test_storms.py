"""The server is killed while its players resume."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.storms import KILLS, kill_in_storms
from tests.harness.depth import amount

PLAYERS = amount(100, many=1000)


async def test_a_kill_in_a_storm_of_resumes_loses_nothing_and_leaves_no_player_out(
    tmp_path: Path,
) -> None:
    figures = await kill_in_storms(tmp_path, players=PLAYERS, seed=PLAYERS)
    assert figures.faults == []
    assert (figures.lost, figures.doubled, figures.left_out) == (0, 0, 0)
    assert figures.kills == KILLS
    assert figures.cut_short > 0
    assert figures.acknowledged >= PLAYERS
    assert figures.resumes > figures.acknowledged
