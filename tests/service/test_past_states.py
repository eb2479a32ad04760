"""A past state from the events of its round and the few before it is the state that there was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dealer.errors import BadRequest, DatabaseDamaged
from dealer.game.commands import (
    Actor,
    AddNote,
    CloseRound,
    CloseTable,
    Command,
    Draw,
    LeaveSeat,
    Move,
    Show,
    StartShuffle,
    TakeSeat,
    TransferHost,
    VacateSeat,
)
from dealer.game.decide import NoRoundSecrets
from dealer.game.state import SeatHolder, Table, copy_table
from dealer.service import LiveTable, Service
from dealer.service.reading.past_states import AnySecret, table_at
from tests.service.tables import HOST, OPEN_ROUND, bundle_of

ANN, BOB = Actor(seat=1), Actor(seat=2)
COMMANDS: list[Command] = [
    TakeSeat("Ann"), TakeSeat("Bob"), OPEN_ROUND, StartShuffle(HOST), Draw(ANN), Draw(BOB, 2),
    Show(BOB, "hand:2", to=1), TakeSeat("Cleo"), LeaveSeat(BOB), CloseRound(HOST),
    # Between rounds, and in the next one: everything that outlives a round.
    TransferHost(HOST, 1), TakeSeat("Dora"), VacateSeat(ANN, 3, "away"), AddNote(ANN, "x", "y"),
    replace(OPEN_ROUND, actor=ANN), TakeSeat("Eve"), TransferHost(ANN, 2), LeaveSeat(ANN),
    StartShuffle(BOB), CloseRound(BOB), LeaveSeat(BOB), TakeSeat("Finn", 1),
    replace(OPEN_ROUND, actor=ANN), StartShuffle(ANN), Draw(ANN, 2),
    Move(ANN, "play", "hand:1", "pile:x", count=1, face="up"), CloseTable(ANN),
]  # fmt: skip


async def play(service: Service) -> tuple[LiveTable, list[Table]]:
    """A table, and its state after each command."""
    live_table, _ = await service.open_table({"preset": "shared"})
    states = [copy_table(live_table.table)]
    for command in COMMANDS:
        await service.execute(live_table, command)
        states.append(copy_table(live_table.table))
    return live_table, states


def view(service: Service, live_table: LiveTable, version: int, viewer: SeatHolder | None):
    async def no_pause() -> None:
        pass

    return service.past_states.view(live_table, version, viewer, pause=no_pause)


async def test_it_is_the_state_after_each_command(service: Service) -> None:
    live_table, states = await play(service)
    secrets = service.past_states._secrets

    async def secret_of(row) -> AnySecret:
        return await secrets.secret(live_table, row.members()["round"])

    for state in states:
        opened = [one for one in live_table.table.round_versions if one <= state.version]
        found = await table_at(
            service.log, live_table.id, state.version, opened=opened, secret_of=secret_of
        )
        assert found == state
    assert await bundle_of(service, live_table)


async def test_who_has_left_sees_what_everyone_saw(service: Service) -> None:
    live_table, states = await play(service)
    ann = SeatHolder(1, 2)
    drawn = next(state.version for state in states if state.round and state.round.known)
    as_ann = await view(service, live_table, drawn, ann)
    assert as_ann == await view(service, live_table, drawn, None)
    assert as_ann["round"]["cards"] == []
    finn = live_table.table.holder(1)
    assert await view(service, live_table, drawn, finn) == as_ann
    (own,) = (await view(service, live_table, states[-3].version, finn))["round"]["cards"][1:]
    assert len(own) == 3  # slot, card and salt


async def test_versions_and_rows_that_are_not_there(service: Service) -> None:
    live_table, _ = await play(service)
    for wrong in (0, live_table.committed + 1):
        with pytest.raises(BadRequest, match=f"no version {wrong}: its versions are 1 to "):
            await view(service, live_table, wrong, None)

    async def no_secret(_) -> AnySecret:
        return NoRoundSecrets()

    with pytest.raises(DatabaseDamaged):
        await table_at(service.log, live_table.id, 9_999, opened=[], secret_of=no_secret)
