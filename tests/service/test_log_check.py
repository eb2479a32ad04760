"""The check of a table's rows, with what neither a load nor a verifier reads."""

from __future__ import annotations

import pytest

from dealer.errors import DatabaseDamaged
from dealer.game.commands import Actor, CloseRound, Draw, Show, StartShuffle
from dealer.service import LiveTable, Service
from dealer.service.operations.log_check import Keys, find_damaged, require_intact
from dealer.service.tables.round_secret import RoundSecret
from tests.harness.damage import change_table, version_of
from tests.service.tables import HOST, new_table


async def peeked_table(service: Service) -> LiveTable:
    """A table where seat 2 was shown a card of seat 1, in its open round."""
    live_table = await new_table(service)
    await service.execute(live_table, StartShuffle(HOST))
    await service.execute(live_table, Draw(Actor(seat=1)))
    await service.execute(live_table, Show(Actor(seat=1), "hand:1", to=2))
    return live_table


def keys_of(service: Service) -> Keys:
    return {service.keys.public_key: service.keys}


async def test_an_intact_log_is_checked_wholly_with_its_key(service: Service) -> None:
    live_table = await peeked_table(service)
    assert await require_intact(service.log, live_table.id, keys_of(service))
    assert not await require_intact(service.log, live_table.id, {})
    await service.execute(live_table, CloseRound(HOST))
    assert await require_intact(service.log, live_table.id, {})
    assert await find_damaged(service.log, keys_of(service)) == ([], 0)


@pytest.mark.parametrize("type_", ["CardPeeked", "CardDrawn", "CardsSwapped"])
async def test_a_hidden_part_that_another_encrypted_is_found(service: Service, type_: str) -> None:
    """The secret of a closed round is public."""
    live_table = await peeked_table(service)
    version, secret = await version_of(service.log, live_table, type_), live_table.secret
    assert isinstance(secret, RoundSecret)
    await service.execute(live_table, CloseRound(HOST))
    part = b'{"j":0,"j":1}' if type_ == "CardsSwapped" else b'{"card":"??"}'
    forged = secret.encrypt(version, part, nonce=bytes(12))
    sql = "UPDATE event SET hidden = ? WHERE stream = TABLE AND version = ?"
    await change_table(service.log, live_table, sql, (forged, version))
    sentence = f"the hidden part of version {version} was altered"
    with pytest.raises(DatabaseDamaged, match=sentence):
        await require_intact(service.log, live_table.id, {})
    (found,), _ = await find_damaged(service.log, {})
    assert sentence in found


async def test_an_older_head_that_is_not_the_houses_is_found(service: Service) -> None:
    live_table = await peeked_table(service)
    await service.execute(live_table, CloseRound(HOST))
    sealed = await version_of(service.log, live_table, "DeckSealed")
    sql = "UPDATE checkpoint SET note = 'a note' WHERE stream = TABLE AND size = ?"
    await change_table(service.log, live_table, sql, (sealed,))
    with pytest.raises(DatabaseDamaged, match=f"the checkpoint at version {sealed}"):
        await require_intact(service.log, live_table.id, {})


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
async def test_events_whose_table_is_missing_are_counted(service: Service) -> None:
    """SQLite's connections check the reference from the events to their table."""
    live_table = await peeked_table(service)
    await change_table(service.log, live_table, "DELETE FROM stream WHERE id = TABLE")
    (found,), _ = await find_damaged(service.log, {})
    assert "events of 1 tables that are not in `stream`" in found
