"""Disk floor: below it no table and no round is opened, and open rounds can be finished."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from dealer.errors import Disabled
from dealer.game.commands import Actor, CloseRound, Draw, StartShuffle, TakeSeat
from dealer.gateway import serve
from dealer.service import Service
from dealer.service.build import open_service
from dealer.service.commands import maintenance
from tests.gateway.http_client import get
from tests.service.tables import HOST, OPEN_ROUND

MIB = 2**20


def watch(service: Service, folder: Path, *, floor: int) -> None:
    """Let the service measure the disk of this folder."""
    service.maintenance._folder, service.maintenance._floor = folder, floor


async def set_free_space(service: Service, monkeypatch: pytest.MonkeyPatch, mib: float) -> None:
    """Change the free space of the disk, and let the service measure it."""

    class Usage:
        def __init__(self, folder: Path) -> None:
            self.free = int(mib * MIB)

    monkeypatch.setattr(maintenance, "disk_usage", Usage)
    await service.maintenance.measure_disk()
    await service.maintenance.refresh(service.log)


async def test_on_a_full_disk_rounds_end_and_none_begins(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watch(service, tmp_path, floor=100 * MIB)
    live_table, _ = await service.open_table({})
    await service.execute(live_table, OPEN_ROUND)
    await set_free_space(service, monkeypatch, 99)
    for _ in range(2):
        with pytest.raises(Disabled, match="nearly full") as caught:
            await service.open_table({})
        assert caught.value.temporary
    await service.execute(live_table, TakeSeat("a player"))
    await service.execute(live_table, StartShuffle(HOST))
    await service.execute(live_table, Draw(Actor(seat=1)))
    await service.execute(live_table, CloseRound(HOST))
    with pytest.raises(Disabled, match="nearly full"):
        await service.execute(live_table, OPEN_ROUND)
    await set_free_space(service, monkeypatch, 105)  # above the floor, below the mark that reopens
    with pytest.raises(Disabled):
        await service.execute(live_table, OPEN_ROUND)
    await set_free_space(service, monkeypatch, 111)
    await service.execute(live_table, OPEN_ROUND)


async def test_a_full_disk_is_logged_and_the_server_stays_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    async with (
        open_service(url, disk_floor=100 * MIB) as service,
        serve(service, port=0, ops_port=0) as gateway,
    ):
        assert service.maintenance.free > 0
        await set_free_space(service, monkeypatch, 99)
        ready = await get(gateway.ops_port, "/readyz")
        assert ready.status == 200
        assert "nearly full: 99 MiB are free, and below 100 MiB" in ready.text
        page = (await get(gateway.ops_port, "/metrics")).text
        assert f"dealer_disk_free_bytes {99 * MIB:.1e}".split("e")[0][:25] in page
        await set_free_space(service, monkeypatch, 200)
        assert "nearly full" not in (await get(gateway.ops_port, "/readyz")).text
    messages = [record.message for record in caplog.records]
    assert messages.count("disk nearly full") == messages.count("disk has room again") == 1


async def test_a_disk_that_cannot_be_measured_refuses_nothing(
    service: Service, tmp_path: Path
) -> None:
    watch(service, tmp_path / "nowhere", floor=2**60)
    await service.maintenance.measure_disk()
    await service.open_table({})
