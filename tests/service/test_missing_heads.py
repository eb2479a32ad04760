"""A log that lacks a head which is due is not served: the house would sign another history."""

from __future__ import annotations

from functools import partial

import pytest

from dealer.errors import DatabaseDamaged
from dealer.eventlog import savepoints
from dealer.game.commands import Actor, AddNote, CloseRound, CloseTable, Draw, StartShuffle
from dealer.service import LiveTable, Service
from tests.harness.damage import change_table, version_of
from tests.service.conftest import OpenService
from tests.service.savepoints import long_table, settled, signed_size
from tests.service.tables import HOST, commit_entropy, new_table, reveal_entropy

DUE = ("EntropyClosed", "DeckSealed", "RoundClosed", "TableClosed")


async def closed_table(service: Service) -> LiveTable:
    """A closed table whose log has each event at which a head is due."""
    live_table = await new_table(service, entropy="players")
    await service.execute(live_table, StartShuffle(HOST))
    await commit_entropy(service, live_table, 1, 2)
    await reveal_entropy(service, live_table, 1, 2)
    await service.execute(live_table, CloseRound(HOST))
    await service.execute(live_table, AddNote(HOST, "test", "a note"))
    await service.execute(live_table, CloseTable(HOST))
    return live_table


@pytest.mark.parametrize("type_", DUE)
async def test_a_table_without_a_due_head_is_not_loaded(
    service: Service, open_service: OpenService, type_: str
) -> None:
    live_table = await closed_table(service)
    version = await version_of(service.log, live_table, type_)
    delete = f"DELETE FROM checkpoint WHERE stream = TABLE AND size = {version}"
    await change_table(service.log, live_table, delete)
    other = await open_service()
    with pytest.raises(DatabaseDamaged, match=rf"at version {version} \({type_}\) is missing"):
        await other.lifecycle.load(live_table.table_id)


async def test_no_head_is_signed_over_a_log_that_was_altered_where_heads_were_deleted(
    service: Service, open_service: OpenService
) -> None:
    live_table = await new_table(service)
    await service.execute(live_table, StartShuffle(HOST))
    await change_table(service.log, live_table, "DELETE FROM checkpoint WHERE stream = TABLE")
    await change_table(
        service.log,
        live_table,
        "UPDATE event SET public = replace(public, '\"commit_ms\":10000', '\"commit_ms\":10001')"
        " WHERE stream = TABLE AND type = 'RoundOpened'",
    )
    other = await open_service()
    with pytest.raises(DatabaseDamaged, match="is missing"):
        await other.lifecycle.load(live_table.table_id)
    assert await other.log.newest_checkpoint(live_table.id) is None


async def test_a_reload_finds_that_a_head_of_the_tail_is_missing(
    service: Service, open_service: OpenService
) -> None:
    other = await open_service()
    here = await new_table(service)
    there = await other.lifecycle.load(here.table_id)
    await service.execute(here, StartShuffle(HOST))
    await change_table(service.log, here, "DELETE FROM checkpoint WHERE stream = TABLE")
    with pytest.raises(DatabaseDamaged, match="is missing"):
        await other.loader.advance(there)


@pytest.mark.usefixtures("often")
async def test_a_savepoint_is_not_used_where_a_head_after_it_is_missing(
    service: Service, open_service: OpenService
) -> None:
    live_table = await long_table(service)
    saved = await savepoints.read(service.log, service.keys, live_table.id)
    assert saved is not None
    signed = await signed_size(service, live_table)
    await service.execute(live_table, CloseRound(HOST))
    await settled(service)
    put = partial(
        savepoints.put, keys=service.keys, table=live_table.id, saved=saved, nonce=bytes(12)
    )
    await service.log.run_when_idle(put)
    delete = f"DELETE FROM checkpoint WHERE stream = TABLE AND size > {signed}"
    await change_table(service.log, live_table, delete)
    other = await open_service()
    with pytest.raises(DatabaseDamaged, match="is missing"):
        await other.lifecycle.load(live_table.table_id)
    assert (other.savepoints.used, other.savepoints.refused) == (0, 1)


async def test_events_after_the_newest_head_need_none(
    service: Service, open_service: OpenService
) -> None:
    """No head is due at a draw: that there is none is no damage."""
    live_table = await new_table(service)
    await service.execute(live_table, StartShuffle(HOST))
    await service.execute(live_table, Draw(Actor(seat=1)))
    other = await open_service()
    assert (await other.lifecycle.load(live_table.table_id)).committed == live_table.committed
