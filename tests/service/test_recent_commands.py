"""Recent commands of a table: exact, and bounded in size."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dealer.game.commands import Actor, CloseRound
from dealer.service.tables.execution import (
    BUCKET,
    BUCKETS,
    CommandExecution,
    RecentCommands,
    StoredCommand,
)


def in_flight(name: str, digest: bytes) -> CommandExecution:
    return CommandExecution(command=CloseRound(Actor()), name=name, digest=digest)


@given(st.lists(st.tuples(st.integers(0, 400), st.booleans()), max_size=800))
def test_a_stored_command_is_exact_or_absent(steps: list[tuple[int, bool]]) -> None:
    recent = RecentCommands()
    model: dict[str, CommandExecution] = {}
    committed_as: dict[str, tuple[bytes, int, int]] = {}
    latest: list[str] = []
    for version, (number, settled) in enumerate(steps, 1):
        name = f"seat:1:2/{number}"
        if name in model:
            continue
        command = in_flight(name, number.to_bytes(16, "big"))
        model[name] = command
        recent.pending[name] = command
        assert recent.get(name) is command
        if settled:
            committed_as[name] = command.digest, version, number
            recent.add(name, *committed_as[name])
            latest = [*latest, name][-BUCKET:]
    for name, command in model.items():
        found = recent.get(name)
        if found is None:
            assert name in committed_as
            assert name not in latest  # the latest ones are in memory in any bucket
        elif isinstance(found, StoredCommand):
            assert found == StoredCommand(*committed_as[name])
        else:
            assert found is command
            assert name not in committed_as
    committed = recent.committed()
    assert all(committed.get(name) is None for name in model if name not in committed_as)


def test_memory_of_stored_commands_is_bounded() -> None:
    recent = RecentCommands()
    for number in range(10_000):
        recent.pending[str(number)] = in_flight(str(number), bytes(16))
        recent.add(str(number), bytes(16), number, 1)
    found = [recent.get(str(number)) for number in range(10_000)]
    assert recent.size < BUCKETS * BUCKET * 64
    assert sum(map(bool, found)) == BUCKETS * BUCKET
