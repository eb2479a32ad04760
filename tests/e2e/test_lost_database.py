"""The database file of a running server is deleted or replaced, or is missing or older at start."""

from __future__ import annotations

import asyncio
import os
import shutil
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing, suppress
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from tests.gateway.rpc_client import RpcClient, reason_of
from tests.harness.nodes import Node
from tests.harness.postgres import Postgres
from tests.harness.server_process import PATIENT, ServerProcess


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[Node]:
    (tmp_path / "server").mkdir()
    database = tmp_path / "server" / "dealer.db"
    node = Node(tmp_path / "server", name="node", address=f"sqlite:///{database}")
    node.database = database
    del node.options["house-key"]
    await node.open()
    yield node
    with suppress(AssertionError):
        await node.close()


class Seated:
    """A host and a player at a table with an open, shuffled round."""

    def __init__(self, host: RpcClient, player: RpcClient, table: str, token: str) -> None:
        self.host, self.player, self.table, self.token = host, player, table, token

    @classmethod
    async def at_a_table(cls, server: ServerProcess) -> Seated:
        host, player = [await RpcClient.connect(server.port) for _ in range(2)]
        opened = await host.call("table.open")
        await player.call("table.join", table=opened["table"], name="Ada")
        await host.call("round.open", entropy="house")
        await host.call("deck.shuffle")
        return cls(host, player, opened["table"], opened["host_token"])

    async def leave(self) -> None:
        for client in (self.host, self.player):
            await client.close()


def readyz(server: Node) -> tuple[int, str]:
    try:
        with urlopen(f"http://127.0.0.1:{server.ops_port}/readyz", timeout=PATIENT) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


async def wait_for_log_line(server: ServerProcess, event: str) -> None:
    async with asyncio.timeout(PATIENT):
        while event not in server.output.read_text():  # noqa: ASYNC110  another process
            await asyncio.sleep(0.02)


def back_up(file: Path, to: Path) -> Path:
    with closing(sqlite3.connect(file)) as live, closing(sqlite3.connect(to)) as made:
        live.backup(made)
    return to


def restore(copy: Path, file: Path) -> None:
    for end in ("", "-wal", "-shm"):
        Path(f"{file}{end}").unlink(missing_ok=True)
    shutil.copyfile(copy, file)


async def stop(server: Node) -> int:
    server.terminate()
    return await server.ended()


@pytest.mark.parametrize("replaced", [False, True])
async def test_nothing_is_acknowledged_without_the_database_file(
    server: Node, tmp_path: Path, replaced: bool
) -> None:
    seated = await Seated.at_a_table(server)
    if replaced:
        os.replace(back_up(server.database, tmp_path / "copy.db"), server.database)
        before = server.database.read_bytes()
    else:
        server.database.unlink()
    version = max(seated.player.versions)
    assert await reason_of(seated.player.call("deck.draw")) == "unavailable"
    status, body = await asyncio.to_thread(readyz, server)
    assert (status, "while the server had it open" in body) == (503, True)
    assert max(seated.player.versions) == version
    await seated.leave()
    assert await stop(server) == 1
    assert "while the server had it open" in server.output.read_text()
    if replaced:
        assert server.database.read_bytes() == before
    else:
        assert not server.database.exists()


async def test_an_idle_server_detects_the_loss(server: Node) -> None:
    server.database.unlink()
    await wait_for_log_line(server, "database file lost")
    assert await stop(server) == 1


async def test_acknowledged_events_can_be_rescued_from_the_process(
    server: Node, tmp_path: Path
) -> None:
    """As OPERATING.md says: copy the deleted files, stop, restore them, start."""
    seated = await Seated.at_a_table(server)
    drawn = await seated.player.call("deck.draw")
    for file in server.database.parent.glob("dealer.db*"):
        if file.name in ("dealer.db", "dealer.db-wal", "dealer.db-shm"):
            file.unlink()
    await wait_for_log_line(server, "database file lost")
    handles = f"/proc/{server.pid}/fd"
    for number in os.listdir(handles):
        for end in ("", "-wal"):
            if os.readlink(f"{handles}/{number}") == f"{server.database}{end} (deleted)":
                shutil.copyfile(f"{handles}/{number}", tmp_path / f"rescued{end}")
    await seated.leave()
    assert await stop(server) == 1
    for file in server.database.parent.glob("dealer.db-*"):
        file.unlink()
    for end in ("", "-wal"):
        shutil.copyfile(tmp_path / f"rescued{end}", f"{server.database}{end}")
    await server.open()
    client = await RpcClient.connect(server.port)
    watched = await client.call("table.watch", table=seated.table)
    assert watched["version"] == drawn["version"]
    assert "database older than its mark" not in server.output.read_text()
    await client.close()


@pytest.mark.parametrize("empty", [False, True])
async def test_a_key_without_its_database_does_not_start_a_new_log(
    server: Node, empty: bool
) -> None:
    seated = await Seated.at_a_table(server)
    await seated.leave()
    await server.close()
    server.database.unlink()
    if empty:
        server.database.touch()
    await server.start()
    assert await server.ended() == 1
    output = server.output.read_text()
    assert ("is empty, but the key" if empty else "is missing. Restore the database") in output
    assert server.database.exists() == empty
    for file in server.database.parent.glob("dealer.db*"):
        file.unlink()  # moved elsewhere, as the message says
    await server.open()


@pytest.mark.parametrize("killed", [False, True])
async def test_an_older_copy_at_the_next_start_closes_its_open_tables(
    server: Node, tmp_path: Path, killed: bool
) -> None:
    seated = await Seated.at_a_table(server)
    copy = back_up(server.database, tmp_path / "copy.db")
    await seated.player.call("deck.draw")
    await seated.leave()
    await (server.kill() if killed else server.close())
    restore(copy, server.database)
    await server.open()
    client = await RpcClient.connect(server.port)
    state = (await client.call("table.watch", table=seated.table))["state"]
    assert state["closed"]
    refused = client.call("deck.shuffle", table=seated.table, token=seated.token)
    assert await reason_of(refused) == "table_closed"
    assert (await client.call("table.open"))["table"]
    await client.close()


async def test_an_older_copy_of_a_postgres_database_closes_its_open_tables(
    postgres: Postgres, tmp_path: Path
) -> None:
    name = postgres.database()
    node = Node(tmp_path, name="node", address=postgres.url(name))
    await node.open()
    seated = await Seated.at_a_table(node)
    await seated.leave()
    await node.close()
    postgres.copy(name, f"{name}_copy")
    await node.open()
    client = await RpcClient.connect(node.port)
    await client.call("deck.cut", table=seated.table, token=seated.token, at=3)
    await client.close()
    await node.kill()
    postgres.copy(f"{name}_copy", name)
    await node.open()
    client = await RpcClient.connect(node.port)
    assert (await client.call("table.watch", table=seated.table))["state"]["closed"]
    await client.close()
    await node.close()
    for one in (name, f"{name}_copy"):
        postgres.drop(one)
