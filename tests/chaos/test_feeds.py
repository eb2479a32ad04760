"""Feeds and a webhook through cuts and kills."""

from __future__ import annotations

from math import ceil
from pathlib import Path

import pytest

from tests.chaos import feeds
from tests.chaos.feeds import follow_through_failures
from tests.harness.depth import amount
from tests.harness.postgres import programs

CUTS = amount(20, many=100)


@pytest.mark.parametrize("nodes", [1, 2])
async def test_every_follower_gets_every_version_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nodes: int
) -> None:
    if nodes > 1:
        programs()
    monkeypatch.setattr(feeds, "CUTS_FOR_A_KILL", max(CUTS // 2, 1))
    figures = await follow_through_failures(tmp_path, cuts=CUTS, seed=CUTS, nodes=nodes)
    assert figures.faults == []
    assert figures.cuts >= CUTS
    assert figures.kills == ceil(CUTS / feeds.CUTS_FOR_A_KILL)
    assert figures.receiver_kills == ceil(CUTS / feeds.CUTS_FOR_A_RECEIVER)
    assert figures.events > 100
