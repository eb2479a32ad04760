"""A game over connections that are cut at any byte."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.cuts import play_on_bad_links
from tests.harness.depth import amount

CUTS = amount(30, many=100)


async def test_cut_connections_lose_and_double_nothing(tmp_path: Path) -> None:
    figures = await play_on_bad_links(tmp_path, cuts=CUTS, seed=CUTS)
    assert figures.faults == []
    assert figures.cuts >= CUTS
    assert figures.torn > 0
    assert (figures.lost, figures.doubled, figures.changed) == (0, 0, 0)
