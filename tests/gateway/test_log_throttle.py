"""Log lines that clients can cause any number of times are written once a second."""

from __future__ import annotations

import logging

import pytest

from dealer.gateway.observe.log_throttle import MAX_KINDS, LogThrottle

log = logging.getLogger("dealer.test")


def test_a_kind_is_logged_once_a_second_with_the_number_of_lines_omitted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    now = [0.0]
    throttle = LogThrottle(log, clock=lambda: now[0])
    with caplog.at_level(logging.INFO):
        for _ in range(5):
            throttle.log(logging.INFO, "refused", reason="full")
        throttle.log(logging.INFO, "refused", reason="origin")
        now[0] = 1.5
        throttle.log(logging.INFO, "refused", reason="full")
    assert [vars(record)["fields"] for record in caplog.records] == [
        {"reason": "full"},
        {"reason": "origin"},
        {"reason": "full", "times": 5},
    ]


def test_fields_of_an_example_do_not_make_another_kind(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    throttle = LogThrottle(log, clock=lambda: now[0])
    with caplog.at_level(logging.INFO):
        for number in range(3):
            throttle.log(logging.INFO, "refused", {"connection": number}, reason="full")
        now[0] = 1.5
        throttle.say_error(ValueError("x"), "failed", {"connection": 7}, method="ping")
        throttle.say_error(ValueError("y"), "failed", {"connection": 8}, method="ping")
    assert [vars(record)["fields"] for record in caplog.records] == [
        {"reason": "full", "connection": 0},
        {"method": "ping", "connection": 7},
    ]


def test_the_kinds_logged_in_a_second_are_limited(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    throttle = LogThrottle(log, clock=lambda: now[0])

    def log_refusals(*numbers: int) -> None:
        for number in numbers:
            throttle.log(logging.INFO, "refused", address=number)

    with caplog.at_level(logging.INFO):
        log_refusals(*range(20 * MAX_KINDS), 5, 5)
        assert len(caplog.records) == MAX_KINDS
        now[0] = 1.5
        log_refusals(5, MAX_KINDS)
        now[0] = 2.0
        log_refusals(*range(MAX_KINDS, 20 * MAX_KINDS))
    assert [vars(record)["fields"] for record in caplog.records[MAX_KINDS : MAX_KINDS + 2]] == [
        {"address": 5, "times": 3},
        {"address": MAX_KINDS},
    ]
    assert len(caplog.records) == 2 * MAX_KINDS
    assert len(throttle._kinds) <= MAX_KINDS
