"""Tables whose rows end before or past their version: refused, named, and loaded when repaired."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable

import pytest

from dealer.errors import DatabaseDamaged, DealerError, TableIsClosed, Unavailable
from dealer.game.commands import CloseRound, CloseTable
from dealer.service import CommitNotice, LiveTable, Service
from dealer.service.tables.live_table import TableState
from tests.harness.damage import change_log
from tests.service.conftest import OpenService
from tests.service.tables import HOST, new_table, shuffled_table

PATIENT = 30.0

TOO_HIGH = "UPDATE stream SET version = version + 1"
TOO_LOW = "UPDATE stream SET version = version - 1"
NEWEST = "DELETE FROM event WHERE version = (SELECT version FROM stream WHERE id = event.stream)"
MIDDLE = "DELETE FROM event WHERE version = 4"


async def refused(work: Awaitable[object]) -> DealerError:
    """The error of a request, which is answered."""
    with pytest.raises(DealerError) as caught:
        async with asyncio.timeout(PATIENT):
            await work
    return caught.value


async def bundle(service: Service, live_table: LiveTable) -> list[str]:
    return [line async for line in service.bundle(live_table)]


@pytest.mark.parametrize("statement", [TOO_HIGH, TOO_LOW, NEWEST, MIDDLE])
async def test_a_damaged_table_is_not_loaded(
    open_service: OpenService, statement: str, caplog: pytest.LogCaptureFixture
) -> None:
    writer, service = await open_service(), await open_service()
    table = (await shuffled_table(writer)).table_id
    await change_log(writer.log, statement)
    with caplog.at_level(logging.ERROR, "dealer"):
        for _ in range(3):
            assert isinstance(await refused(service.lifecycle.load(table)), DatabaseDamaged)
    assert [record.getMessage() for record in caplog.records] == ["table damaged"]
    assert list(service.tables) == []
    (line,) = service.damaged.lines()
    assert line.startswith(f"damaged table {table}: ")


@pytest.mark.parametrize("statement", [TOO_HIGH, TOO_LOW])
async def test_a_table_in_memory_is_given_up_and_loaded_when_it_is_repaired(
    service: Service, statement: str
) -> None:
    live_table = await shuffled_table(service)
    notices: list[CommitNotice] = []
    service.notices.listen(lambda _, notice: notices.append(notice))
    before = live_table.committed
    await change_log(service.log, statement)
    await refused(service.lifecycle.load(live_table.table_id))
    assert live_table.state is TableState.UNREADABLE
    assert [notice.reset for notice in notices] == [True]
    assert service.tables.get(live_table.table_id) is None
    assert isinstance(await refused(service.execute(live_table, CloseRound(HOST))), Unavailable)
    assert isinstance(await refused(service.lifecycle.catch_up(live_table)), DatabaseDamaged)
    await change_log(service.log, TOO_LOW if statement == TOO_HIGH else TOO_HIGH)
    repaired = await service.lifecycle.load(live_table.table_id)
    assert repaired is not live_table
    assert repaired.committed == before
    assert len(service.damaged) == 0
    await service.execute(repaired, CloseRound(HOST))


async def test_an_append_that_meets_damage_is_answered(service: Service) -> None:
    """A row of another table is where the next one of this table belongs."""
    live_table = await shuffled_table(service)
    await change_log(service.log, TOO_LOW)
    error = await refused(service.execute(live_table, CloseRound(HOST)))
    assert isinstance(error, Unavailable)
    assert live_table.table_id in service.damaged


async def test_signed_events_that_are_missing_with_their_version(service: Service) -> None:
    """Rows and version fit, and a checkpoint of what is not there is left."""
    live_table = await new_table(service)
    await service.checkpoints.checkpoint(live_table)
    await change_log(service.log, NEWEST)
    await change_log(service.log, TOO_LOW)
    assert isinstance(await refused(bundle(service, live_table)), DatabaseDamaged)


async def test_a_table_in_memory_whose_signed_head_is_past_it(service: Service) -> None:
    live_table = await new_table(service)
    await service.checkpoints.checkpoint(live_table)
    await change_log(service.log, "UPDATE checkpoint SET size = size + 1")
    assert isinstance(await refused(service.checkpoints.checkpoint(live_table)), DatabaseDamaged)


async def test_a_row_in_the_middle_is_missing_while_the_table_is_in_memory(
    service: Service,
) -> None:
    live_table = await shuffled_table(service)
    await change_log(service.log, MIDDLE)
    service.recent.forget()
    for work in (service.reader.entries(live_table, 0), bundle(service, live_table)):
        assert isinstance(await refused(work), DatabaseDamaged)
    assert live_table.table_id in service.damaged
    await service.execute(live_table, CloseRound(HOST))
    await service.execute(live_table, CloseTable(HOST))
    assert isinstance(await refused(service.execute(live_table, CloseRound(HOST))), TableIsClosed)


async def test_a_bug_in_a_reload_leaves_no_caller_waiting(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    live_table = await shuffled_table(service)
    reported: list[object] = []
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(loop, "call_exception_handler", reported.append)

    async def fails(live_table: LiveTable) -> None:
        raise KeyError("a bug")

    with monkeypatch.context() as broken:
        broken.setattr(service.loader, "advance", fails)
        live_table.begin_reload()
        waiting = asyncio.ensure_future(service.execute(live_table, CloseRound(HOST)))
        await asyncio.sleep(0)
        service.lifecycle.reload_if_due(live_table)
        assert isinstance(await refused(waiting), Unavailable)
    assert len(reported) == 1
    again = await service.lifecycle.load(live_table.table_id)
    await service.execute(again, CloseRound(HOST))


def test_many_damaged_tables_are_counted(service: Service) -> None:
    for number in range(12):
        service.damaged.note(bytes([number] * 16).hex(), "A row is missing.")
    lines = service.damaged.lines()
    assert len(lines) == 11
    assert lines[-1] == "2 more tables are damaged"


def test_a_load_says_nothing_of_versions_past_the_end_of_the_table(service: Service) -> None:
    table_id = bytes(16).hex()
    service.damaged.note(table_id, "Version 9 is missing.", version=9)
    service.damaged.intact(table_id, version=8)
    assert table_id in service.damaged
    service.damaged.intact(table_id, version=9)
    assert table_id not in service.damaged
