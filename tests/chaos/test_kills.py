"""The server process is killed in the middle of a game."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.kills import play_while_killed
from tests.harness.depth import amount

KILLS = amount(4, many=20)


@pytest.mark.parametrize("commit", ["thread", "loop"])
async def test_a_killed_server_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commit: str
) -> None:
    monkeypatch.setenv("DEALER_COMMIT", commit)
    figures = await play_while_killed(tmp_path, kills=KILLS, seed=KILLS)
    assert figures.faults == []
    assert figures.kills == KILLS
    assert (figures.lost, figures.doubled, figures.changed) == (0, 0, 0)
    assert figures.resumes >= figures.restarts
    assert figures.acknowledged > 100
