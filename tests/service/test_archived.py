"""Tables that another process archives while they are in use here."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dealer.cli.commands.tables import archive_tables
from dealer.errors import DatabaseDamaged, TableArchived
from dealer.eventlog import Log
from dealer.eventlog.services import HOST as HOST_LINK
from dealer.game.commands import CloseTable, TakeSeat
from dealer.game.view import SPECTATOR
from dealer.proof.checkpoint import Cosigner
from dealer.service import LiveTable, Service
from dealer.service.commands.table_lifecycle import Wait
from dealer.service.operations import archiver
from dealer.service.tables.archive import ArchiveFolder, find
from tests.harness.damage import change_log
from tests.service.conftest import OpenService
from tests.service.tables import HOST, bundle_of

COSIGNER = Cosigner(bytes(32))


async def closed_table(service: Service) -> LiveTable:
    live_table, _ = await service.open_table({"preset": "free"})
    await service.execute(live_table, TakeSeat("Ann", key=COSIGNER.public_key))
    await service.execute(live_table, CloseTable(HOST))
    return live_table


async def archive(url: str, folder: Path, live_table: LiveTable) -> None:
    assert await archive_tables(url, folder, live_table.table_id, None, "", "test") == (1, [])


async def archived_elsewhere(
    open_service: OpenService, url: str, folder: Path
) -> tuple[Service, LiveTable]:
    """A node and its table, which another node has closed and archived meanwhile."""
    here, there = await open_service(), await open_service()
    live_table, _ = await here.open_table({"preset": "free"})
    other = await there.lifecycle.load(live_table.table_id)
    await there.execute(other, CloseTable(HOST))
    await archive(url, folder, other)
    return here, live_table


async def refusal_of_a_load(service: Service, live_table: LiveTable) -> str:
    with pytest.raises(TableArchived) as raised:
        await service.lifecycle.load(live_table.table_id)
    return str(raised.value)


@pytest.mark.parametrize("when", ["before it is read", "once it is read"])
async def test_a_cosignature_during_the_archiving_is_refused(
    service: Service, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    live_table = await closed_table(service)
    _, note = await service.checkpoints.checkpoint(live_table)
    line = COSIGNER.cosign(note, time=1_800_000_000)
    find_cosignable = service.checkpoints.find_cosignable

    async def archive_meanwhile(live_table: LiveTable, line: str) -> Any:
        if when == "before it is read":
            await archive(url, tmp_path, live_table)
            return await find_cosignable(live_table, line)
        checkpoint = await find_cosignable(live_table, line)
        await archive(url, tmp_path, live_table)
        return checkpoint

    monkeypatch.setattr(service.checkpoints, "find_cosignable", archive_meanwhile)
    with pytest.raises(TableArchived) as raised:
        await service.checkpoints.cosign(live_table, line)
    assert str(raised.value) == await refusal_of_a_load(service, live_table)
    assert await service.log.checkpoints(live_table.id) == []


async def test_no_projector_looks_for_the_deleted_events_of_a_table(
    service: Service, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archiving process dies when it has deleted them; they were not projected."""
    live_table = await closed_table(service)
    await service.log.run_in_transaction(
        lambda connection: connection.exec_driver_sql("UPDATE stream SET projected = 0")
    )
    delete_slice = archiver.delete_slice

    async def delete_and_die(log: Log, table: bytes) -> bool:
        await delete_slice(log, table)
        raise RuntimeError("killed")

    monkeypatch.setattr(archiver, "delete_slice", delete_and_die)
    with pytest.raises(RuntimeError, match="killed"):
        await archive(url, tmp_path, live_table)
    assert await service.log.fetch("SELECT 1 FROM event") == []
    assert await service.log.fetch("SELECT 1 FROM stream WHERE projected < version") == []


async def test_callers_of_a_table_archived_elsewhere_get_an_error(
    open_service: OpenService, url: str, tmp_path: Path
) -> None:
    here, live_table = await archived_elsewhere(open_service, url, tmp_path)
    take_seat = partial(here.execute, live_table, TakeSeat("Eve"))
    async with asyncio.timeout(20):
        with pytest.raises(TableArchived):
            await take_seat()
        for call in (
            partial(here.lifecycle.load, live_table.table_id),
            partial(here.checkpoints.snapshot, live_table, SPECTATOR),
            take_seat,
        ):
            with pytest.raises(TableArchived):
                await call()


async def test_a_table_archived_elsewhere_is_not_woken_again(
    open_service: OpenService, url: str, tmp_path: Path
) -> None:
    """Its shuffle has ended elsewhere, and this node still has the timer."""
    here, live_table = await archived_elsewhere(open_service, url, tmp_path)
    live_table.timer = asyncio.get_running_loop().call_later(3600, lambda: None)
    with pytest.raises(TableArchived):
        await here.lifecycle.load(live_table.table_id)
    assert live_table.idle()


async def test_a_bundle_request_does_not_leave_a_checkpoint(
    service: Service, url: str, tmp_path: Path
) -> None:
    live_table = await closed_table(service)
    await archive(url, tmp_path, live_table)
    with pytest.raises(TableArchived) as raised:
        await bundle_of(service, live_table)
    assert str(raised.value) == await refusal_of_a_load(service, live_table)
    assert await service.log.checkpoints(live_table.id) == []


async def test_a_table_archived_while_asleep_leaves_no_wait(
    open_service: OpenService, url: str, tmp_path: Path
) -> None:
    here, live_table = await archived_elsewhere(open_service, url, tmp_path)
    waits = here.lifecycle.deadlines._waits
    timer = asyncio.get_running_loop().call_later(3600, lambda: None)
    waits[live_table.id] = Wait((1, 1, False, 0), 0.0, timer)
    here.tables._tables.clear()
    await here.lifecycle._wake(live_table.id)
    assert waits == {}
    assert timer.cancelled()


async def test_two_that_find_a_table_archived_both_get_the_refusal(
    open_service: OpenService, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second had asked for the head before the first made the table archived."""
    here, live_table = await archived_elsewhere(open_service, url, tmp_path)
    head, asked, go_on = here.log.head, asyncio.Event(), asyncio.Event()

    async def head_later(table: bytes) -> int | None:
        found = await head(table)
        asked.set()
        await go_on.wait()
        return found

    with monkeypatch.context() as patch:
        patch.setattr(here.log, "head", head_later)
        second = asyncio.create_task(here.lifecycle.catch_up(live_table))
        await asked.wait()
    with pytest.raises(TableArchived):
        await here.lifecycle.catch_up(live_table)
    go_on.set()
    with pytest.raises(TableArchived):
        await second


@pytest.mark.parametrize(
    "change",
    ["size = size - 1", "length = length + 1", "root = house_key", "house_key = root",
     "closed_at = closed_at - 1", None],
)  # fmt: skip
async def test_a_row_that_says_another_thing_than_its_bundle_is_damage(
    service: Service, url: str, tmp_path: Path, change: str | None
) -> None:
    live_table = await closed_table(service)
    await archive(url, tmp_path, live_table)
    if change is not None:
        await change_log(service.log, f"UPDATE archived SET {change}")
    record = await find(service.log, live_table.id)
    assert record is not None
    folder = ArchiveFolder(tmp_path)
    if change is None:
        (await folder.open(record)).close()
        return
    with pytest.raises(DatabaseDamaged, match=r"`archived` .* was altered"):
        await folder.open(record)


@pytest.mark.parametrize("how", ["archive", "forget"])
async def test_a_table_stays_in_the_log_until_its_broadcast_is_over(
    service: Service, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Until then links to it show events that are still in the log; nothing else removes them."""
    live_table, _ = await service.open_table({"preset": "free", "broadcast": 300})
    await service.execute(live_table, TakeSeat("Ann"))
    await service.execute(live_table, CloseTable(HOST))
    link = await service.broadcasts.link(live_table, HOST_LINK)
    async with await Log.open(url) as log:
        archiving = archiver.Archiver(log, url, tmp_path, who="test", why="")
        over = live_table.table.at + 300_000
        given = (live_table.id, "Ann") if how == "forget" else (live_table.id,)
        remove = partial(getattr(archiving, how), *given)
        monkeypatch.setattr(archiver, "utc_ms", lambda: over - 1)
        with pytest.raises(TableArchived, match=r"^The broadcast of this table is not over; "):
            await remove()
        assert not await asyncio.to_thread(archiving.file_of(live_table.id).exists)
        await service.broadcasts.find(live_table.table_id, link)
        monkeypatch.setattr(archiver, "utc_ms", lambda: over)
        await remove()
    with pytest.raises(TableArchived):
        await service.broadcasts.find(live_table.table_id, link)
