"""A table that is put away between two steps of what is done to it."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dealer.cli.archive import archive_tables
from dealer.errors import TableArchived
from dealer.game.commands import CloseTable, TakeSeat
from dealer.game.view import SPECTATOR
from dealer.proof.checkpoint import Cosigner
from dealer.service import Resident, Service
from tests.service.conftest import OpenService
from tests.service.test_service import HOST, bundle_of

PEN = Cosigner(bytes(32))


async def closed(service: Service) -> Resident:
    resident, _ = await service.open_table({"preset": "free"})
    await service.call(resident, TakeSeat("Ann", key=PEN.public_key))
    await service.call(resident, CloseTable(HOST))
    return resident


async def put_away(url: str, folder: Path, resident: Resident) -> None:
    assert await archive_tables(url, folder, resident.table_id, None, "", "test") == (1, [])


async def sentence(service: Service, resident: Resident) -> str:
    with pytest.raises(TableArchived) as told:
        await service.load(resident.table_id)
    return str(told.value)


@pytest.mark.parametrize("when", ["before it is read", "once it is read"])
async def test_who_cosigns_in_that_very_moment_is_told_so(
    service: Service, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    resident = await closed(service)
    _, note = await service.checkpoint(resident)
    line = PEN.cosign(note, time=1_800_000_000)
    cosigned = service.signing.cosigned

    async def meanwhile(resident: Resident, line: str) -> Any:
        if when == "before it is read":
            await put_away(url, tmp_path, resident)
            return await cosigned(resident, line)
        found = await cosigned(resident, line)
        await put_away(url, tmp_path, resident)
        return found

    monkeypatch.setattr(service.signing, "cosigned", meanwhile)
    with pytest.raises(TableArchived) as told:
        await service.cosign(resident, line)
    assert str(told.value) == await sentence(service, resident)
    assert await service.log.checkpoints(resident.id) == []


async def test_a_table_that_others_closed_and_put_away_is_not_waited_for(
    open_service: OpenService, url: str, tmp_path: Path
) -> None:
    here, there = await open_service(), await open_service()
    resident, _ = await here.open_table({"preset": "free"})
    other = await there.load(resident.table_id)
    await there.call(other, CloseTable(HOST))
    await put_away(url, tmp_path, other)
    wish = partial(here.call, resident, TakeSeat("Eve"))
    async with asyncio.timeout(20):
        with pytest.raises(TableArchived):
            await wish()
        for ask in (
            partial(here.load, resident.table_id),
            partial(here.snapshot, resident, SPECTATOR),
            wish,
        ):
            with pytest.raises(TableArchived):
                await ask()


async def test_a_table_that_others_put_away_wakes_nobody_any_more(
    open_service: OpenService, url: str, tmp_path: Path
) -> None:
    """As where a shuffle waited here whose end was not seen any more."""
    here, there = await open_service(), await open_service()
    resident, _ = await here.open_table({"preset": "free"})
    other = await there.load(resident.table_id)
    await there.call(other, CloseTable(HOST))
    await put_away(url, tmp_path, other)
    resident.timer = asyncio.get_running_loop().call_later(3600, lambda: None)
    with pytest.raises(TableArchived):
        await here.load(resident.table_id)
    assert resident.idle()


async def test_who_asks_for_a_bundle_leaves_no_checkpoint_behind(
    service: Service, url: str, tmp_path: Path
) -> None:
    resident = await closed(service)
    await put_away(url, tmp_path, resident)
    with pytest.raises(TableArchived) as told:
        await bundle_of(service, resident)
    assert str(told.value) == await sentence(service, resident)
    assert await service.log.checkpoints(resident.id) == []
