"""A person who was forgotten is nowhere in the folder any more."""

from __future__ import annotations

from pathlib import Path

from dealer.eventlog import Log
from dealer.game.commands import Actor, AddNote, CloseTable, TakeSeat, VacateSeat
from dealer.proof.bundle import read
from dealer.proof.verify import verify
from dealer.service.build import open_service
from dealer.service.operations.archiver import Archiver

NAME = "Zephyrine"
HOST = Actor(host=True)


def files_with_the_name(folder: Path) -> list[str]:
    files = [file for file in folder.rglob("*") if file.is_file()]
    return [file.name for file in files if NAME.encode() in file.read_bytes()]


async def test_the_name_is_in_no_file(tmp_path: Path) -> None:
    address, folder = f"sqlite:///{tmp_path / 'dealer.db'}", tmp_path / "archive"
    folder.mkdir()
    async with open_service(address) as service:
        live_table, _ = await service.open_table({"name": f"{NAME}'s table"})
        for seat, name in ((1, NAME), (2, "Bob")):
            await service.execute(live_table, TakeSeat(name, seat=seat))
        await service.execute(live_table, AddNote(Actor(seat=2), "chat", f"hello, {NAME}"))
        await service.execute(live_table, VacateSeat(HOST, 1, f"{NAME} is gone"))
        await service.execute(live_table, CloseTable(HOST))
    assert files_with_the_name(tmp_path) == ["dealer.db"]
    async with await Log.open_existing(address) as log:
        archiver = Archiver(log, address, folder, who="operator", why="asked")
        found = await archiver.forget(live_table.id, NAME)
    assert (found.versions, found.standing) == ([1, 2, 4, 5], {})
    assert files_with_the_name(tmp_path) == []
    report = verify(read((folder / f"{live_table.table_id}.jsonl").read_bytes()))
    assert (report.fault, report.withheld_parts) == (None, found.versions)
