"""Clients reconnect while events flow."""

from __future__ import annotations

from pathlib import Path

from tests.chaos.reconnects import reconnect
from tests.harness.depth import amount

RECONNECTS = amount(80, many=400)


async def test_a_reconnecting_client_receives_every_version_once(tmp_path: Path) -> None:
    figures = await reconnect(tmp_path, reconnects=RECONNECTS, seed=RECONNECTS)
    assert figures.faults == []
    assert figures.reconnects == RECONNECTS
    assert figures.resets + figures.snapshots > 0
    assert figures.cut_short > 0
    assert figures.received > figures.reconnects
    assert figures.events > 100
