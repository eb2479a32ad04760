"""What a table keeps at hand: its latest commands and its latest events, in a bounded space."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dealer.service.record import Entry
from dealer.service.remembered import BUCKET, BUCKETS, RecentCommands
from dealer.service.requests import Remembered
from dealer.service.ring import BYTES, EVENTS, Ring


@given(st.lists(st.tuples(st.integers(0, 400), st.booleans()), max_size=800))
def test_a_command_is_remembered_as_it_was_or_not_at_all(steps: list[tuple[int, bool]]) -> None:
    recent, model, latest = RecentCommands(), {}, []
    for version, (number, settled) in enumerate(steps, 1):
        name = f"seat:1:2/{number}"
        if name in model:
            continue
        command = Remembered(number.to_bytes(32, "big"), version, number)
        model[name] = command
        recent.start(name, command)
        assert recent.get(name) is command
        if settled:
            command.committed = True
            recent.settle(name, command)
            latest = [*latest, name][-BUCKET:]
    for name, command in model.items():
        found = recent.get(name)
        if found is None:
            assert command.committed
            assert name not in latest  # of the latest few none is forgotten, however they fall
        else:
            assert (found.digest, found.version, found.count, found.committed) == (
                command.digest, command.version, command.count, command.committed,
            )  # fmt: skip
    kept = recent.committed()
    assert all(kept.get(name) is None for name, one in model.items() if not one.committed)


def test_ever_more_commands_take_no_more_room() -> None:
    recent = RecentCommands()
    for number in range(10_000):
        command = Remembered(bytes(32), number, 1)
        recent.start(str(number), command)
        recent.settle(str(number), command)
    assert recent.size < BUCKETS * BUCKET * 80
    assert sum(recent.get(str(number)) is not None for number in range(10_000)) == BUCKETS * BUCKET


@given(st.lists(st.lists(st.integers(1, 3000), min_size=1, max_size=150), max_size=20))
def test_the_ring_has_the_latest_events_without_a_gap(appends: list[list[int]]) -> None:
    ring, version = Ring(), 0
    for lengths in appends:
        entries = [Entry(version + n, "x" * length) for n, length in enumerate(lengths, 1)]
        version = entries[-1].version
        ring.extend(entries)
        assert [entry.version for entry in ring] == list(
            range(version - len(ring) + 1, version + 1)
        )
        assert len(ring) <= EVENTS
        assert 0 <= ring.size <= BYTES
    if appends and appends[-1][-1] < 1000:
        assert ring[len(ring) - 1].version == version
