"""The server dies at named points of its code; `DEALER_POINTS=1` goes through all of them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dealer.eventlog.commit_policy import MODES
from tests.chaos.named_points import ALL
from tests.chaos.points import die_everywhere
from tests.harness.dies_at import named

TIMES = int(os.environ.get("DEALER_POINTS", "0"))
SOME = (
    "in the first migration",
    "the key hangs, the database has no check of it",
    "the head moved, no event there",
    "between the events and their checkpoint",
    "a command is heard again",
    "after push, before reply",
    "the loop's thread committed",
    "the writer thread committed",
    "between projection and its mark",
    "goodbye is said",
    "in the swap, half gone",
)
SOME_OF_AN_APPEND = (
    "before BEGIN",
    "the head moved, no event there",
    "before COMMIT",
    "after COMMIT",
    "the commit is in the mark",
    "before results are delivered",
)


@pytest.mark.parametrize("name", ALL)
def test_a_named_point_is_in_the_code(name: str) -> None:
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
async def test_a_house_that_dies_at_a_named_point_loses_and_doubles_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commit: str, some: tuple[str, ...]
) -> None:
    monkeypatch.setenv("DEALER_COMMIT", commit)
    names = tuple(ALL) if TIMES else some
    figures = await die_everywhere(tmp_path, times=TIMES or 1, seed=TIMES, names=names)
    assert figures.faults == []
    assert figures.deaths >= len(names) * (TIMES or 1)
    assert (figures.lost, figures.doubled, figures.changed) == (0, 0, 0)
