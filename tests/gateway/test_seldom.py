"""What guests can cause as often as they like is told once a second."""

from __future__ import annotations

import logging

import pytest

from dealer.gateway.seldom import KINDS, Seldom

log = logging.getLogger("dealer.test")


def test_one_line_a_second_and_how_many_were_left_out(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    seldom = Seldom(log, clock=lambda: now[0])
    with caplog.at_level(logging.INFO):
        for _ in range(5):
            seldom.say(logging.INFO, "refused", reason="full")
        seldom.say(logging.INFO, "refused", reason="origin")
        now[0] = 1.5
        seldom.say(logging.INFO, "refused", reason="full")
    assert [record.told for record in caplog.records] == [
        {"reason": "full"},
        {"reason": "origin"},
        {"reason": "full", "times": 5},
    ]


def test_of_more_kinds_in_a_second_nothing_is_told(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    seldom = Seldom(log, clock=lambda: now[0])

    def say(*numbers: int) -> None:
        for number in numbers:
            seldom.say(logging.INFO, "refused", address=number)

    with caplog.at_level(logging.INFO):
        say(*range(20 * KINDS), 5, 5)
        assert len(caplog.records) == KINDS
        now[0] = 1.5
        say(5, KINDS)
        now[0] = 2.0
        say(*range(KINDS, 20 * KINDS))
    assert [record.told for record in caplog.records[KINDS : KINDS + 2]] == [
        {"address": 5, "times": 3},
        {"address": KINDS},
    ]
    assert len(caplog.records) == 2 * KINDS
    assert len(seldom._kinds) <= KINDS
