"""Exponential backoff with jitter."""

from __future__ import annotations

from dealer.backoff import Backoff, jittered


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
