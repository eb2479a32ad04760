"""A whole game over real sockets, and then every question that an auditor may ask about it."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from pathlib import Path

from dealer.client import RemoteTable
from dealer.proof.bundle import read
from dealer.proof.verify import CHECKS, verify
from tests.whole.house import ROOT, HouseProcess
from tests.whole.party import NAMES, party, play_everything, play_to_the_end


async def test_a_whole_game_from_socket_to_audit(house: HouseProcess, tmp_path: Path) -> None:
    async with party(house.url, folder=tmp_path) as guests:
        await guests.sit_down(seats=4)
        await play_everything(guests)
        await guests.all_caught_up()
        before = [cards_of(guest.table) for guest in guests.guests]
        table = guests.id
    await house.kill()
    await house.open()
    # Clients that hold nothing of the table, so that they are told all of it by a fresh process.
    async with party(house.url, folder=tmp_path, names=NAMES[:3]) as guests:
        await guests.come_back(table)
        await guests.all_caught_up()
        assert [cards_of(guest.table) for guest in guests.guests] == before
        await play_to_the_end(guests)
        saved = [note for guest in guests.guests for note in guest.table.checkpoints]
        doubts = [doubt for one in guests.tables for doubt in one.doubts]
        key, version = guests.tables[0].key, guests.tables[0].version
        bundle = await house.bundle(table)
    assert key is not None
    assert doubts == []
    assert len(saved) > 20
    report = verify(read(bundle), key=key, saved=saved)
    assert report.fault is None
    answers = dict(line.split(": ", 1) for line in report.verdicts()[: len(CHECKS)])
    assert tuple(answers) == CHECKS
    assert all(answer.startswith("yes, ") for answer in answers.values())
    assert answers["saved"] == "yes, the log agrees with the checkpoints you saved"
    assert report.remarks.pinned
    assert report.remarks.rounds == 2
    assert report.remarks.open_rounds == 0
    assert report.remarks.voided == 0
    assert report.remarks.left_out == 0
    assert report.remarks.house_only == 2
    assert report.remarks.cosigned > 0
    assert len(read(bundle)) > version
    await house.close()
    await rebuild(house)


def cards_of(table: RemoteTable) -> dict[str, list[str]]:
    """Every stack as this viewer sees it."""
    assert table.state.round is not None
    return {stack: table.stack(stack) for stack in sorted(table.state.round.stacks)}


async def rebuild(house: HouseProcess) -> None:
    """The read models, made again from the log, are what stood there."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "dealer.cli", "rebuild", "--database", house.address, "--json",
        cwd=ROOT, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    told = json.loads(output)
    with sqlite3.connect(house.database) as database:
        (events,) = database.execute("SELECT count(*) FROM event").fetchone()
        (behind,) = database.execute(
            "SELECT count(*) FROM stream WHERE projected < version"
        ).fetchone()
    assert told == {"events": events, "different": 0, "differences": [], "stopped": []}
    assert process.returncode == 0
    assert behind == 0
