"""The one memory of recent events: no gap, nothing lost to the projector unsaid, and bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dealer.eventlog import EventRecord
from dealer.eventlog.recent import BYTES, EVENTS, RecentEvents
from tests.eventlog.requests import A, B, C

BOUND = 60_000

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from((A, B, C)), st.lists(st.integers(1, 3000))),
        st.tuples(st.just("skip"), st.sampled_from((A, B, C)), st.integers(1, 3)),
        st.tuples(st.just("release"), st.sampled_from((A, B, C)), st.none()),
        st.tuples(st.just("take"), st.none(), st.integers(1, 20)),
        st.tuples(st.just("put back"), st.none(), st.integers(0, 3)),
        st.tuples(st.just("follow"), st.none(), st.booleans()),
    ),
    max_size=40,
)


def records(version: int, lengths: list[int]) -> list[EventRecord]:
    return [
        EventRecord(version + n, "CardDrawn", 1, 0, "", leaf="x" * length)
        for n, length in enumerate(lengths, 1)
    ]


def kept(recent: RecentEvents, table: bytes) -> list[int]:
    ring = recent._rings.get(table)
    return [] if ring is None else [record.version for record in ring.records]


@given(STEPS, st.booleans())
def test_events_are_kept_without_a_gap_and_within_the_bound(
    steps: list[tuple[str, bytes, object]], keep: bool
) -> None:
    recent = RecentEvents(bound=BOUND)
    versions = dict.fromkeys((A, B, C), 0)
    taken = dict.fromkeys((A, B, C), 0)
    unsaid = True  # whether no event was dropped before the projector had it
    for step, table, value in steps:
        if step == "add" and value:
            found = records(versions[table], value)  # type: ignore[arg-type]
            recent.add(table, found, keep=keep)
            versions[table] = found[-1].version
        elif step == "skip":  # another process appends
            versions[table] += value  # type: ignore[operator]
        elif step == "release":
            recent.release(table)
        elif step == "follow":
            recent.follow(bool(value))
        elif step in ("take", "put back"):
            for one, got in recent.take(int(str(value)) or 1):
                assert [each.version for each in got] == list(
                    range(got[0].version, versions_in(recent, one) + 1)
                )
                unsaid &= got[0].version == taken[one] + 1
                taken[one] = got[-1].version
                if step == "put back":
                    recent.put_back(one, got[-1].version)
                    taken[one] = got[-1].version - 1
                recent.projected([one])
        unsaid &= recent.dropped == 0
        for one in versions:
            there = kept(recent, one)
            assert there == list(range(there[0], there[0] + len(there))) if there else True
            if there and one not in recent.waiting and not recent._followed:
                assert keep
                assert len(there) <= EVENTS
        assert 0 <= recent.bytes <= BOUND or len(recent._rings) == 1
        assert recent.bytes == sum(ring.size for ring in recent._rings.values())


def versions_in(recent: RecentEvents, table: bytes) -> int:
    return kept(recent, table)[-1]


@pytest.mark.parametrize("keep", [True, False])
def test_what_is_projected_is_kept_for_subscribers_only(keep: bool) -> None:
    recent = RecentEvents()
    recent.add(A, records(0, [100] * 20), keep=keep)
    assert len(kept(recent, A)) == 20
    recent.take(99)
    recent.projected([A])
    assert kept(recent, A) == ([13, 14, 15, 16, 17, 18, 19, 20] if keep else [])
    recent.release(A)
    assert (kept(recent, A), recent.bytes) == ([], 0)


def test_large_events_are_kept_up_to_their_bytes() -> None:
    recent = RecentEvents()
    recent.add(A, records(0, [3000] * 8), keep=True)
    recent.take(99)
    recent.projected([A])
    assert kept(recent, A) == [7, 8]
    assert recent.bytes <= BYTES


def test_while_the_feed_is_followed_events_stay_until_the_memory_is_full() -> None:
    recent = RecentEvents(bound=BOUND)
    recent.follow(True)
    recent.add(A, records(0, [100] * 60), keep=False)
    recent.take(99)
    recent.projected([A])
    assert recent.between(A, 1, 60) is not None
    recent.add(B, records(0, [3000] * 13), keep=False)
    assert recent.between(A, 1, 60) is None
    assert recent.between(B, 1, 13) is not None, "it is not projected"
    assert recent.dropped == 0
    recent.take(99)
    recent.follow(False)
    assert recent.bytes == 0


def test_versions_that_are_not_all_there_are_not_given() -> None:
    recent = RecentEvents()
    recent.add(A, records(3, [1, 1]), keep=True)
    found = recent.between(A, 4, 5)
    assert found is not None
    assert [each.version for each in found] == [4, 5]
    assert recent.between(A, 3, 4) is None
    assert recent.between(A, 5, 6) is None
    assert recent.between(B, 1, 1) is None


def test_events_after_those_of_another_process_replace_the_earlier_ones() -> None:
    recent = RecentEvents()
    recent.add(A, records(0, [1, 1]), keep=True)
    recent.add(A, records(5, [1]), keep=True)
    assert kept(recent, A) == [6]
    assert recent.dropped == 1


def test_the_events_of_a_closed_table_are_for_the_projector_only() -> None:
    """They may have been archived, which only the log says."""
    recent = RecentEvents()
    recent.follow(True)
    recent.add(A, records(0, [1, 1]), keep=True)
    assert recent.between(A, 1, 2)
    recent.add(A, [EventRecord(3, "TableClosed", 1, 0, "")], keep=True)
    assert recent.between(A, 1, 2) is None
    assert recent.between(A, 3, 3) is None
    recent.follow(False)
    assert [len(found) for _, found in recent.take(9)] == [3]
    recent.projected([A])
    assert recent.bytes == 0


def test_a_rewound_log_leaves_nothing() -> None:
    recent = RecentEvents()
    recent.add(A, records(0, [1, 1]), keep=True)
    recent.forget()
    assert (recent.bytes, recent.take(9), recent.between(A, 1, 1)) == (0, [], None)
    assert recent.dropped > 0


def test_what_was_dropped_cannot_wait_again() -> None:
    recent = RecentEvents()
    recent.add(A, records(0, [1, 1]), keep=False)
    recent.take(9)
    recent.forget()
    recent.put_back(A, 2)
    assert not recent.waiting
    assert recent.dropped > 0
