"""A whole game over sockets, then every check that an auditor can make."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import sys
from pathlib import Path

from dealer.client import RemoteTable
from dealer.proof.bundle import read
from dealer.proof.verify import CHECKS, verify
from tests.harness.server_process import ROOT, ServerProcess
from tests.harness.table_of_clients import NAMES, connect_clients, play_everything, play_to_the_end


async def test_a_whole_game_from_socket_to_audit(server: ServerProcess, tmp_path: Path) -> None:
    async with connect_clients(server.url, folder=tmp_path) as clients:
        await clients.sit_down(seats=4)
        await play_everything(clients)
        await clients.all_caught_up()
        before = [cards_of(client.table) for client in clients.clients]
        table = clients.id
    await server.kill()
    await server.open()
    # Clients without stored state, so that the new process sends them everything.
    async with connect_clients(server.url, folder=tmp_path, names=NAMES[:3]) as clients:
        await clients.rejoin(table)
        await clients.all_caught_up()
        assert [cards_of(client.table) for client in clients.clients] == before
        await play_to_the_end(clients)
        saved = [note for client in clients.clients for note in client.table.checkpoints]
        doubts = [doubt for one in clients.tables for doubt in one.doubts]
        key, version = clients.tables[0].key, clients.tables[0].version
        bundle = await server.bundle(table)
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
    await server.close()
    await rebuild(server)


def cards_of(table: RemoteTable) -> dict[str, list[str]]:
    """Every stack as this viewer sees it."""
    assert table.state.round is not None
    return {stack: table.stack(stack) for stack in sorted(table.state.round.stacks)}


async def rebuild(server: ServerProcess) -> None:
    """The read models, rebuilt from the log, equal the existing ones."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "dealer", "rebuild", "--database", server.address, "--json",
        cwd=ROOT, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    result = json.loads(output)
    assert result.pop("cpu_seconds").keys() == {"projection", "check"}
    with sqlite3.connect(server.database) as database:
        (events,) = database.execute("SELECT count(*) FROM event").fetchone()
        (lagging,) = database.execute(
            "SELECT count(*) FROM stream WHERE projected < version"
        ).fetchone()
    assert result == {
        "events": events, "different": 0, "differences": [], "stopped": [], "damaged": [],
    }  # fmt: skip
    assert process.returncode == 0
    assert lagging == 0
