"""Clients reconnect while events flow; `DEALER_RECONNECTS=1000` runs more of it."""

from __future__ import annotations

import os
from pathlib import Path

from tests.chaos.reconnects import come_and_go

RECONNECTS = int(os.environ.get("DEALER_RECONNECTS", "80"))


async def test_who_comes_and_goes_is_told_every_version_once(tmp_path: Path) -> None:
    figures = await come_and_go(tmp_path, reconnects=RECONNECTS, seed=RECONNECTS)
    assert figures.faults == []
    assert figures.reconnects == RECONNECTS
    assert figures.resets + figures.snapshots > 0
    assert figures.cut_short > 0
    assert figures.received > figures.events > 100
