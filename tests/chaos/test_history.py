"""Linearizability of a table, and of the check itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.chaos.history import check_linearizability
from tests.chaos.linearizability import Call, violations
from tests.harness.depth import amount

COMMANDS = amount(900, many=5000)


async def test_concurrent_commands_are_linearizable(tmp_path: Path) -> None:
    figures = await check_linearizability(tmp_path, commands=COMMANDS, seed=COMMANDS)
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
    Call(1, "table.state", "query", 5, {}, answered=8, last=3),
    Call(1, "deck.draw", "late", 4, {}, expect=2, answered=9, reason="conflict"),
]


def test_a_linearizable_history_has_no_violation() -> None:
    assert violations(GOOD, LOG) == []


@pytest.mark.parametrize(
    "wrong",
    [
        GOOD[:2] + GOOD[3:],  # a card that no command was granted
        [*GOOD, drew("d", 3, 1, 9)],  # a card granted twice
        [*GOOD, drew("d", 4, 1, 9)],  # granted, and not in the log
        [drew("a", 1, 4, 6), *GOOD[1:]],  # called after the second was answered
        [GOOD[0], replace(GOOD[1], expect=0), *GOOD[2:]],  # decided at an older version
        [
            *GOOD[:3],
            Call(1, "table.state", "query", 8, {}, answered=9, last=2),
        ],  # an older version
        [
            *GOOD[:3],
            Call(1, "table.state", "query", 2, {}, answered=3, last=3),
        ],  # a later version
        [*GOOD[:4], replace(GOOD[4], expect=3)],  # a conflict although nothing changed
        [*GOOD[:3], replace(GOOD[4], answered=4)],  # a conflict with a later event
        [replace(GOOD[0], more=[{"version": 2}]), *GOOD[1:]],  # a different second answer
    ],
)
def test_a_history_that_is_not_linearizable_is_detected(wrong: list[Call]) -> None:
    assert violations(wrong, LOG) != []
