"""Backoff with jitter, and polls."""

from __future__ import annotations

import asyncio
from logging import getLogger

import pytest

from dealer.backoff import Backoff, LastingFailure, Polls, around, jittered
from dealer.errors import DatabaseUnavailable


def test_delays_double_up_to_the_longest_and_start_again_after_reset() -> None:
    delays = Backoff(first=1.0, longest=5.0)
    assert [delays.next() for _ in range(5)] == [1.0, 2.0, 4.0, 5.0, 5.0]
    delays.reset()
    assert delays.next() == 1.0


def test_jitter_is_uniform_from_zero_to_the_delay(monkeypatch) -> None:
    bounds = []

    def uniform(low: float, high: float) -> float:
        bounds.append((low, high))
        return high

    monkeypatch.setattr("random.uniform", uniform)
    delays = Backoff(first=1.0, longest=5.0)
    assert [delays.next_jittered() for _ in range(4)] == [1.0, 2.0, 4.0, 5.0]
    assert jittered(3.0) == 3.0
    assert bounds == [(0, 1.0), (0, 2.0), (0, 4.0), (0, 5.0), (0, 3.0)]


def test_around_is_between_half_and_one_and_a_half(monkeypatch) -> None:
    monkeypatch.setattr("random.uniform", lambda low, high: high)
    assert around(2.0) == 3.0
    monkeypatch.setattr("random.uniform", lambda low, high: low)
    assert around(2.0) == 1.0


async def test_a_poll_goes_on_after_errors_and_reports_bugs() -> None:
    reported: list[type] = []
    calls: list[int] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: reported.append(type(context["exception"])))
    done = asyncio.Event()

    async def work() -> None:
        calls.append(len(calls))
        if len(calls) == 1:
            raise DatabaseUnavailable("away")
        if len(calls) == 2:
            raise ZeroDivisionError
        done.set()

    polling = asyncio.create_task(Polls(work).run(0.0))
    assert calls == []
    await done.wait()
    polling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await polling
    assert len(calls) >= 3
    assert reported == [ZeroDivisionError]


async def test_work_is_awaited_after_a_wake_and_again_after_a_failure(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("random.uniform", lambda low, high: 0.0)
    done, runs = asyncio.Event(), list[bool]()

    async def work() -> None:
        runs.append(polls.polling)
        if len(runs) < 4:
            raise DatabaseUnavailable("away")
        done.set()

    failure = LastingFailure(getLogger("dealer.test"), "work failed")
    polls = Polls(work, retry=0.0, failure=failure)
    polling = asyncio.create_task(polls.run(3600.0, at_once=True))
    await done.wait()
    assert runs == [True, False, False, False]
    assert caplog.messages == ["work failed"]
    done.clear()
    polls.wake()
    await done.wait()
    assert len(runs) == 5
    polling.cancel()
    await asyncio.wait([polling])


def test_a_failure_that_lasts_is_logged_once_a_minute(caplog: pytest.LogCaptureFixture) -> None:
    failure, error = LastingFailure(getLogger("dealer.test"), "failed"), DatabaseUnavailable("away")
    for now in (10.0, 40.0, 69.9):
        failure.met(error, now)
    assert len(caplog.records) == 1
    failure.met(error, 70.0, table="t")
    assert len(caplog.records) == 2
    assert vars(caplog.records[1])["fields"] == {"table": "t", "says": "away"}
    failure.met(error, 129.9)
    assert len(caplog.records) == 2


async def test_a_failure_between_successes_is_logged_once_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    runs, done = 0, asyncio.Event()

    async def work() -> None:
        nonlocal runs
        runs += 1
        if runs == 40:
            done.set()
        if runs % 2:
            raise DatabaseUnavailable("away")

    failure = LastingFailure(getLogger("dealer.test"), "failed")
    polls = Polls(work, delay=0.0, retry=0.001, failure=failure)
    polling = asyncio.create_task(polls.run(0.001))
    await done.wait()
    polling.cancel()
    await asyncio.wait([polling])
    assert [record.message for record in caplog.records] == ["failed"]
