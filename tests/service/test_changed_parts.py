"""Parts of events that no signed head covers, or that are in no leaf, changed in the database."""

from __future__ import annotations

import pytest

from dealer.errors import DatabaseDamaged
from dealer.game.commands import Actor, AddNote, CloseRound, Draw, StartShuffle
from dealer.service import LiveTable, Service
from dealer.service.tables.round_secret import RoundSecret
from tests.harness.damage import change_table, version_of
from tests.service.conftest import OpenService
from tests.service.tables import HOST, new_table


async def table_with_a_draw(service: Service) -> LiveTable:
    """A table whose newest events, a draw and a note, are in no signed head."""
    live_table = await new_table(service)
    await service.execute(live_table, StartShuffle(HOST))
    await service.execute(live_table, Draw(Actor(seat=1)))
    await service.execute(live_table, AddNote(HOST, "test", "a note"))
    return live_table


async def test_a_hidden_part_of_a_closed_round_that_another_encrypted_is_not_shown(
    service: Service, open_service: OpenService
) -> None:
    live_table = await table_with_a_draw(service)
    drawn, secret = await version_of(service.log, live_table, "CardDrawn"), live_table.secret
    assert isinstance(secret, RoundSecret)
    await service.execute(live_table, CloseRound(HOST))
    forged = secret.encrypt(drawn, b'{"card":"??"}', nonce=bytes(12))
    sql = "UPDATE event SET hidden = ? WHERE stream = TABLE AND version = ?"
    await change_table(service.log, live_table, sql, (forged, drawn))
    other = await open_service()
    loaded = await other.lifecycle.load(live_table.table_id)
    with pytest.raises(DatabaseDamaged, match=f"The hidden part of version {drawn} is not the one"):
        await other.reader.entries(loaded, drawn - 1, 1)


CHANGES: dict[str, tuple[str, object]] = {
    "a commitment": ("commitment = ?", bytes(32)),
    "a stack that is not there": (
        "type = 'CardDrawn', public = ?",
        '{"from":"pile:none","round":1,"seat":1,"slot":51}',
    ),
    "a time before the one before": ("at = ?", 1),
}


@pytest.mark.parametrize("what", CHANGES)
async def test_an_event_that_does_not_follow_is_damage(
    service: Service, open_service: OpenService, what: str
) -> None:
    """No signed head shows it, and the house would sign what no verifier accepts."""
    live_table = await table_with_a_draw(service)
    drawn = await version_of(service.log, live_table, "CardDrawn")
    column, value = CHANGES[what]
    sql = f"UPDATE event SET {column} WHERE stream = TABLE AND version = ?"
    await change_table(service.log, live_table, sql, (value, drawn))
    other = await open_service()
    with pytest.raises(DatabaseDamaged):
        await other.lifecycle.load(live_table.table_id)
