"""A copy made while a game runs opens again, and whoever saw more than it holds is told so."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dealer.errors import HouseCheated
from dealer.proof.bundle import read
from dealer.proof.verify import verify
from tests.gateway.guest import Guest
from tests.whole.house import HouseProcess
from tests.whole.party import guest, party, play_everything, play_to_the_end


def back_up(house: HouseProcess, folder: Path) -> Path:
    """The online copy of an open house's database, and the house's keys."""
    folder.mkdir()
    copy = folder / "dealer.db"
    with closing(sqlite3.connect(house.database)) as live, closing(sqlite3.connect(copy)) as made:
        live.backup(made)
    for key in house.database.parent.glob("dealer.db.key*"):
        shutil.copy2(key, folder)
    return copy


async def test_a_copy_of_a_running_house_plays_the_game_to_its_end(tmp_path: Path) -> None:
    stores = tmp_path / "stores"
    first = tmp_path / "first"
    first.mkdir()
    house = HouseProcess(first)
    await house.open()
    async with party(house.url, folder=stores) as guests:
        await guests.sit_down()
        await play_everything(guests)
        await guests.all_caught_up()
        back_up(house, tmp_path / "second")
        table, version = guests.id, guests.tables[0].version
        await house.kill()
        house.database = tmp_path / "second" / "dealer.db"
        await house.open()
        await play_to_the_end(guests)
        assert guests.tables[0].version > version
        saved, key = guests.tables[0].checkpoints, guests.tables[0].key
        report = verify(read(await house.bundle(table)), key=key, saved=saved)
    await house.close()
    assert report.ok, report.fault


async def test_who_saw_more_than_the_copy_holds_is_told_reset_and_leaves(tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.mkdir()
    house = HouseProcess(first)
    await house.open()
    async with guest(house.url, "Ada", folder=tmp_path / "stores") as ada:
        opened = await ada.house.open(seats=4)
        ada.table = await ada.house.join(opened.id)
        token = ada.table._following.host_token  # her seat is given up when she leaves
        await ada.table.round_open(entropy="house")
        await ada.table.shuffle()
        back_up(house, tmp_path / "older")
        await ada.table.draw(2)
        await ada.table.round_close()
        seen = ada.table.version
        await house.kill()
        house.database = tmp_path / "older" / "dealer.db"
        await house.open()
        # This client keeps what the house signed, and so leaves the table for good.
        with pytest.raises(HouseCheated):
            await ada.table.round_close()
        plain = await Guest.arrive(house.port)
        answer = await plain.ask("table.resume", table=opened.id, token=token, after=seen)
        assert answer["reset"] is True
        await plain.until(lambda: plain.notices("snapshot"))
        (snapshot,) = plain.notices("snapshot")
        assert snapshot["reset"] is True
        assert "proof" not in snapshot
        assert snapshot["version"] < seen
        await plain.leave()
    await house.close()
