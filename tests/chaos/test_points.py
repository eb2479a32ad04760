"""The server dies at named points of its code."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from dealer.eventlog.writer import MODES
from tests.chaos.named_points import ALL, PLAYING, Point
from tests.chaos.points import die_at_points
from tests.harness.depth import amount
from tests.harness.dies_at import named

OF_A_CHANGE = 8
"""Points at which a server dies on each change: others every day, so that all come in turn. The
simulation kills at every point on each change."""


def of_today(names: Sequence[str], count: int) -> list[str]:
    """`count` of the names, those that follow the ones of yesterday."""
    first = int(time.time() // 86_400) * count
    return [names[(first + place) % len(names)] for place in range(count)]


@pytest.mark.parametrize("name", ALL)
def test_each_point_is_in_the_code(name: str) -> None:
    function, place, often, after, commit = ALL[name]
    assert commit in ("", *MODES)
    assert not after or after in ALL
    assert callable(named(function)[2]) or hasattr(named(function)[2], "__func__")
    when, _, what = place.partition(" ")
    assert when in ("begin", "end", "before", "after", "call")
    assert often >= 1
    if when == "call":
        assert callable(named(what)[2])


@pytest.mark.parametrize(("commit", "points"), [("auto", ALL), ("loop", PLAYING)])
async def test_a_server_that_dies_at_any_point_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commit: str, points: dict[str, Point]
) -> None:
    monkeypatch.setenv("DEALER_COMMIT", commit)
    names = of_today(list(points), amount(OF_A_CHANGE, many=len(points)))
    figures = await die_at_points(tmp_path, times=1, seed=1, names=names)
    assert figures.faults == []
    assert figures.deaths >= len(names)
    assert (figures.lost, figures.doubled, figures.changed) == (0, 0, 0)
