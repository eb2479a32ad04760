"""Backoff with jitter, and polls."""

from __future__ import annotations

import asyncio

import pytest

from dealer.backoff import Backoff, around, jittered, poll
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

    polling = asyncio.create_task(poll(0.0, work))
    assert calls == []
    await done.wait()
    polling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await polling
    assert len(calls) >= 3
    assert reported == [ZeroDivisionError]
