"""The policy that decides on which thread appends are committed."""

from __future__ import annotations

import pytest

from dealer.errors import ConfigurationError
from dealer.eventlog import Log
from dealer.eventlog.rows import Append
from dealer.eventlog.writer import MAX_ROWS, QUICK, SLOW, CommitPolicy
from tests.eventlog.requests import A, append

HARDLY_QUICK = QUICK * 0.9
BETWEEN = (QUICK + SLOW) / 2


def measured(policy: CommitPolicy, seconds: float, *, upto: int = 1000) -> int:
    """The number of COMMITs of this duration after which the other thread commits."""
    before = policy.on_loop
    for count in range(1, upto + 1):
        policy.measured(seconds)
        if policy.on_loop is not before:
            return count
    return upto


def test_the_thread_begins_and_the_loop_follows_when_commits_are_quick() -> None:
    policy = CommitPolicy("auto")
    assert not policy.on_loop
    assert 5 < measured(policy, 0.0002) < 30


def test_between_the_two_limits_the_thread_that_commits_goes_on() -> None:
    policy = CommitPolicy("auto")
    assert measured(policy, BETWEEN) == 1000
    assert not policy.on_loop
    measured(policy, HARDLY_QUICK)
    assert policy.on_loop
    assert measured(policy, BETWEEN) == 1000
    assert policy.on_loop


def test_one_very_long_commit_is_enough_for_the_thread() -> None:
    policy = CommitPolicy("auto")
    measured(policy, 0.0001)
    assert measured(policy, 3.0) == 1
    assert not policy.on_loop
    assert measured(policy, 0.0001) > 50, "the loop would be stalled again too soon"
    assert policy.on_loop


def test_a_commit_a_little_too_long_now_and_then_changes_nothing() -> None:
    policy = CommitPolicy("auto")
    measured(policy, 0.0001)
    for _ in range(100):
        policy.measured(SLOW * 5)
        assert measured(policy, 0.0001, upto=30) == 30
    assert policy.on_loop
    assert measured(policy, SLOW * 2) < 20, "but if all are too long, the thread commits"


def test_after_a_failure_the_thread_commits_for_a_while() -> None:
    policy = CommitPolicy("auto")
    measured(policy, 0.0001)
    policy.failed()
    assert not policy.on_loop
    assert measured(policy, 0.0001) > 50


@pytest.mark.parametrize("mode", ["thread", "loop"])
def test_a_fixed_thread_stays(mode: str) -> None:
    policy = CommitPolicy(mode)
    for seconds in (0.00001, 30.0):
        assert measured(policy, seconds) == 1000
        assert policy.on_loop is (mode == "loop")
    policy.failed()
    assert policy.on_loop is (mode == "loop")


def test_the_loop_writes_small_batches_only() -> None:
    def rows(count: int) -> Append:
        return append(A, 0, *["{}"] * count)

    policy = CommitPolicy("loop")
    assert policy.allows([])
    assert policy.allows([rows(MAX_ROWS)])
    assert not policy.allows([rows(MAX_ROWS + 1)])
    assert policy.allows([rows(1)] * MAX_ROWS)
    assert not policy.allows([rows(1)] * MAX_ROWS + [rows(1)])
    assert not CommitPolicy("thread").allows([rows(1)])


async def test_another_mode_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="auto, thread or loop"):
        await Log.open("sqlite:///never.db", commit="both")
