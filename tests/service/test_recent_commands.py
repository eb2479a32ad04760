"""Recent commands and the event ring of a table: exact, and bounded in size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dealer.service.encoding import EncodedEvent
from dealer.service.event_ring import BYTES, EVENTS, EventRing
from dealer.service.recent_commands import BUCKET, BUCKETS, RecentCommands
from dealer.service.requests import StoredCommand


@given(st.lists(st.tuples(st.integers(0, 400), st.booleans()), max_size=800))
def test_a_stored_command_is_exact_or_absent(steps: list[tuple[int, bool]]) -> None:
    recent = RecentCommands()
    model: dict[str, StoredCommand] = {}
    latest: list[str] = []
    for version, (number, settled) in enumerate(steps, 1):
        name = f"seat:1:2/{number}"
        if name in model:
            continue
        command = StoredCommand(number.to_bytes(16, "big"), version, number)
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
            assert name not in latest  # the latest ones are in memory in any bucket
        else:
            assert (found.digest, found.version, found.count, found.committed) == (
                command.digest, command.version, command.count, command.committed,
            )  # fmt: skip
    committed = recent.committed()
    assert all(committed.get(name) is None for name, one in model.items() if not one.committed)


def test_memory_of_stored_commands_is_bounded() -> None:
    recent = RecentCommands()
    for number in range(10_000):
        command = StoredCommand(bytes(16), number, 1)
        recent.start(str(number), command)
        recent.settle(str(number), command)
    found = [recent.get(str(number)) for number in range(10_000)]
    assert recent.size < BUCKETS * BUCKET * 64
    assert sum(map(bool, found)) == BUCKETS * BUCKET


@given(st.lists(st.lists(st.integers(1, 3000), min_size=1, max_size=150), max_size=20))
def test_the_ring_has_the_newest_events_without_a_gap(appends: list[list[int]]) -> None:
    ring, version = EventRing(), 0
    for lengths in appends:
        entries = [
            EncodedEvent(version + n, "x" * length, "CardDrawn")
            for n, length in enumerate(lengths, 1)
        ]
        version = entries[-1].version
        ring.extend(entries)
        assert [entry.version for entry in ring] == list(
            range(version - len(ring) + 1, version + 1)
        )
        assert len(ring) <= EVENTS
        assert 0 <= ring.size <= BYTES
    if appends and appends[-1][-1] < 1000:
        assert ring[len(ring) - 1].version == version
