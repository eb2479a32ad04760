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


def test_it_remembers_only_so_many() -> None:
    seldom = Seldom(log, clock=lambda: 0.0)
    for number in range(3 * KINDS):
        seldom.say(logging.DEBUG, "refused", address=str(number))
    assert len(seldom._kinds) <= KINDS
