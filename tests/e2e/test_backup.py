"""A copy made during a game can be opened; a client with newer events gets `reset` and leaves."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from dealer.errors import HouseCheated
from dealer.proof.bundle import read
from dealer.proof.verify import verify
from tests.gateway.rpc_client import RpcClient
from tests.harness.server_process import ServerProcess
from tests.harness.table_of_clients import client, connect_clients, play_everything, play_to_the_end


def back_up(server: ServerProcess, folder: Path) -> Path:
    """The online copy of an open database, and the house key."""
    folder.mkdir()
    copy = folder / "dealer.db"
    with closing(sqlite3.connect(server.database)) as live, closing(sqlite3.connect(copy)) as made:
        live.backup(made)
    for key in server.database.parent.glob("dealer.db.key*"):
        shutil.copy2(key, folder)
    return copy


async def test_a_game_continues_on_a_copy_of_a_running_server(tmp_path: Path) -> None:
    stores = tmp_path / "stores"
    first = tmp_path / "first"
    first.mkdir()
    server = ServerProcess(first)
    await server.open()
    async with connect_clients(server.url, folder=stores) as clients:
        await clients.sit_down()
        await play_everything(clients)
        await clients.all_caught_up()
        back_up(server, tmp_path / "second")
        table, version = clients.id, clients.tables[0].version
        await server.kill()
        server.database = tmp_path / "second" / "dealer.db"
        await server.open()
        await play_to_the_end(clients)
        assert clients.tables[0].version > version
        saved, key = clients.tables[0].checkpoints, clients.tables[0].key
        report = verify(read(await server.bundle(table)), key=key, saved=saved)
    await server.close()
    assert report.ok, report.fault


async def test_a_client_with_newer_events_than_the_copy_gets_reset_and_leaves(
    tmp_path: Path,
) -> None:
    first = tmp_path / "first"
    first.mkdir()
    server = ServerProcess(first)
    await server.open()
    async with client(server.url, "Ada", folder=tmp_path / "stores") as ada:
        opened = await ada.house.open(seats=4)
        ada.table = await ada.house.join(opened.id)
        token = ada.table._session.host_token  # the seat's token becomes invalid when she leaves
        await ada.table.round_open(entropy="house")
        await ada.table.shuffle()
        back_up(server, tmp_path / "older")
        await ada.table.draw(2)
        await ada.table.round_close()
        seen = ada.table.version
        await server.kill()
        server.database = tmp_path / "older" / "dealer.db"
        await server.open()
        # This client has stored newer signed checkpoints, so it leaves the table permanently.
        with pytest.raises(HouseCheated):
            await ada.table.round_close()
        plain = await RpcClient.connect(server.port)
        answer = await plain.call("table.resume", table=opened.id, token=token, after=seen)
        assert answer["reset"] is True
        await plain.until(lambda: plain.notices("snapshot"))
        (snapshot,) = plain.notices("snapshot")
        assert snapshot["reset"] is True
        assert "proof" not in snapshot
        assert snapshot["version"] < seen
        await plain.close()
    await server.close()
