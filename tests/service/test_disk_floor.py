"""Below a floor of free disk nothing new begins, and what runs ends."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from dealer.errors import Disabled
from dealer.game.cards import STANDARD
from dealer.game.commands import Actor, CloseRound, Draw, OpenRound, StartShuffle, TakeSeat
from dealer.gateway import serve
from dealer.service import Service, closures
from dealer.service.opening import open_service
from tests.gateway.asking import get

HOST = Actor(host=True)
OPENING = OpenRound(HOST, STANDARD, "house", 1000, 1000)
MIB = 2**20


async def free(service: Service, monkeypatch: pytest.MonkeyPatch, mib: float) -> None:
    """Let the disk have so much free space, and the service notice."""

    class Usage:
        def __init__(self, folder: Path) -> None:
            self.free = int(mib * MIB)

    monkeypatch.setattr(closures, "disk_usage", Usage)
    await service.closures.look_at_disk()
    await service.closures.look(service.log)


async def test_on_a_full_disk_rounds_end_and_none_begins(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.closures.watch_disk(tmp_path, floor=100 * MIB)
    resident, _ = await service.open_table({})
    await service.call(resident, OPENING)
    await free(service, monkeypatch, 99)
    for _ in range(2):
        with pytest.raises(Disabled, match="nearly full") as caught:
            await service.open_table({})
        assert caught.value.temporary
    await service.call(resident, TakeSeat("a player"))
    await service.call(resident, StartShuffle(HOST))
    await service.call(resident, Draw(Actor(seat=1)))
    await service.call(resident, CloseRound(HOST))
    with pytest.raises(Disabled, match="nearly full"):
        await service.call(resident, OPENING)
    await free(service, monkeypatch, 105)  # not yet: else it would come and go
    with pytest.raises(Disabled):
        await service.call(resident, OPENING)
    await free(service, monkeypatch, 111)
    await service.call(resident, OPENING)


async def test_the_operator_hears_of_it_and_the_house_stays_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    url = f"sqlite:///{tmp_path / 'dealer.db'}"
    async with (
        open_service(url, disk_floor=100 * MIB) as service,
        serve(service, port=0, ops_port=0) as gateway,
    ):
        assert service.closures.free > 0
        await free(service, monkeypatch, 99)
        ready = await get(gateway.ops_port, "/readyz")
        assert ready.status == 200
        assert "nearly full: 99 MiB are free, and below 100 MiB" in ready.text
        page = (await get(gateway.ops_port, "/metrics")).text
        assert f"dealer_disk_free_bytes {99 * MIB:.1e}".split("e")[0][:25] in page
        await free(service, monkeypatch, 200)
        assert "nearly full" not in (await get(gateway.ops_port, "/readyz")).text
    said = [record.message for record in caplog.records]
    assert said.count("disk nearly full") == said.count("disk has room again") == 1


async def test_a_disk_that_cannot_be_measured_refuses_nothing(
    service: Service, tmp_path: Path
) -> None:
    service.closures.watch_disk(tmp_path / "nowhere", floor=2**60)
    await service.closures.look_at_disk()
    await service.open_table({})
