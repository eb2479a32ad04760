"""The server dies at named points of its code; `DEALER_POINTS=1` kills it at all of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dealer.eventlog.commit_policy import MODES
from tests.chaos.named_points import ALL
from tests.chaos.points import die_at_points
from tests.harness.dies_at import named

TIMES = int(os.environ.get("DEALER_POINTS", "0"))
SOME = (
    "in the first migration",
    "the key file exists, the database has no check of it",
    "the head moved, no event written",
    "between the events and their checkpoint",
    "a command is received again",
    "after push, before reply",
    "the loop's thread committed",
    "the writer thread committed",
    "between projection and its mark",
    "the connections are closed",
    "in the swap, some tables renamed",
)
SOME_OF_AN_APPEND = (
    "before BEGIN",
    "the head moved, no event written",
    "before COMMIT",
    "after COMMIT",
    "the commit is in the mark",
    "before results are delivered",
)


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


@pytest.mark.parametrize(("commit", "some"), [("auto", SOME), ("loop", SOME_OF_AN_APPEND)])
async def test_a_server_that_dies_at_any_point_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commit: str, some: tuple[str, ...]
) -> None:
    monkeypatch.setenv("DEALER_COMMIT", commit)
    names = tuple(ALL) if TIMES else some
    figures = await die_at_points(tmp_path, times=TIMES or 1, seed=TIMES, names=names)
    assert figures.faults == []
    assert figures.deaths >= len(names) * (TIMES or 1)
    assert (figures.lost, figures.doubled, figures.changed) == (0, 0, 0)
