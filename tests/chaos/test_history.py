"""Linearizability of a table, and of the check itself; `DEALER_COMMANDS=5000` runs more."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.history import one_order
from tests.chaos.linearizability import Call, violations

COMMANDS = int(os.environ.get("DEALER_COMMANDS", "900"))


async def test_all_that_many_clients_do_at_once_has_one_order(tmp_path: Path) -> None:
    figures = await one_order(tmp_path, commands=COMMANDS, seed=COMMANDS)
    assert figures.faults == []
    assert figures.kills >= 1
    assert min(figures.granted, figures.conflicts, figures.sent_again, figures.questions) > 0
    assert figures.answered_twice > 0


def drew(cmd: str, version: int, called: int, answered: int, **more: Any) -> Call:
    """Seat 1 draws the card in the slot whose number is the version."""
    result = {"slots": [version], "version": version}
    return Call(
        seat=1,
        method="deck.draw",
        cmd=cmd,
        called=called,
        params={},
        answered=answered,
        first=version,
        last=version,
        result=result,
        **more,
    )


LOG = [
    {"version": version, "type": "CardDrawn", "public": {"seat": 1, "slot": version}}
    for version in (1, 2, 3)
]
GOOD = [
    drew("a", 1, 1, 6),
    drew("b", 2, 2, 3, expect=1),
    drew("c", 3, 4, 7, expect=2),
    Call(1, "table.state", "look", 5, {}, answered=8, last=3),
    Call(1, "deck.draw", "late", 4, {}, expect=2, answered=9, reason="conflict"),
]


def test_a_good_history_is_found_good() -> None:
    assert violations(GOOD, LOG) == []


@pytest.mark.parametrize(
    "wrong",
    [
        GOOD[:2] + GOOD[3:],  # a card that no command was granted
        [*GOOD, drew("d", 3, 1, 9)],  # one card granted twice
        [*GOOD, drew("d", 4, 1, 9)],  # granted, and not in the log
        [drew("a", 1, 4, 6), *GOOD[1:]],  # called after the second was answered
        [GOOD[0], replace(GOOD[1], expect=0), *GOOD[2:]],  # decided at an older version
        [
            *GOOD[:3],
            Call(1, "table.state", "look", 8, {}, answered=9, last=2),
        ],  # an older version
        [
            *GOOD[:3],
            Call(1, "table.state", "look", 2, {}, answered=3, last=3),
        ],  # a later version
        [*GOOD[:4], replace(GOOD[4], expect=3)],  # a conflict without a reason
        [*GOOD[:3], replace(GOOD[4], answered=4)],  # a conflict with a later event
        [replace(GOOD[0], more=[{"version": 2}]), *GOOD[1:]],  # another answer the second time
    ],
)
def test_a_history_without_one_order_is_found_out(wrong: list[Call]) -> None:
    assert violations(wrong, LOG) != []
