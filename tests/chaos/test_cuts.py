"""A game over connections that are cut at any byte; `DEALER_LINES=500` cuts more often."""

from __future__ import annotations

import os
from pathlib import Path

from tests.chaos.cuts import play_on_bad_links

CUTS = int(os.environ.get("DEALER_LINES", "30"))


async def test_cut_connections_lose_and_double_nothing(tmp_path: Path) -> None:
    figures = await play_on_bad_links(tmp_path, cuts=CUTS, seed=CUTS)
    assert figures.faults == []
    assert figures.cuts >= CUTS
    assert figures.torn > 0
    assert (figures.lost, figures.doubled, figures.changed) == (0, 0, 0)
