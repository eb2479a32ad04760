"""Concurrent downloads of bundles and histories of a long table do not grow the server."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.chaos.floods import memory
from tests.gateway.http_client import get
from tests.gateway.rpc_client import RpcClient
from tests.harness.server_process import ServerProcess

SHUFFLES = 12
CARDS = 988
GROWTH = 1.2
"""Most MiB by which the process may grow; building one history inside it takes 1.2 or more."""


async def long_table(port: int) -> str:
    """A table of some 12,000 events."""
    host = await RpcClient.connect(port)
    table = (await host.call("table.open"))["table"]
    await host.call("round.open", entropy="house", deck={"decks": CARDS // 52})
    for _ in range(SHUFFLES):
        await host.call("deck.shuffle")
    await host.call("round.close")
    await host.close()
    return str(table)


async def stuck(port: int, path: str) -> asyncio.StreamWriter:
    """A client that requests a download and reads nothing of it."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**10)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    await reader.read(1)
    return writer


async def test_downloads_do_not_grow_the_server(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path) as server:
        path = f"/tables/{await long_table(server.port)}"
        await server.projected()
        assert (await get(server.port, "/")).status == 200
        before = memory(server.pid)
        idle = [await stuck(server.port, f"{path}/bundle.jsonl") for _ in range(40)]
        history = get(server.port, f"{path}/history.txt")
        bundles = [get(server.port, f"{path}/bundle.jsonl") for _ in range(3)]
        answers = await asyncio.gather(history, *bundles)
        assert [answer.status for answer in answers] == [200] * 4
        assert len({answer.body for answer in answers}) == 2
        assert memory(server.pid) < GROWTH * before
        for writer in idle:
            writer.close()


async def test_a_refused_history_names_the_command_that_makes_it(tmp_path: Path) -> None:
    async with ServerProcess(tmp_path, limit="history=50") as server:
        host = await RpcClient.connect(server.port)
        table = (await host.call("table.open"))["table"]
        await host.call("round.open", entropy="house")
        path = f"/tables/{table}"
        assert (await get(server.port, f"{path}/history.txt")).status == 200
        await host.call("deck.shuffle")
        refused = await get(server.port, f"{path}/history.txt")
        assert refused.status == 404
        assert "more than 50 are not made here" in refused.text
        assert "dealer history" in refused.text
        assert (await get(server.port, f"{path}/bundle.jsonl")).status == 200
        await host.close()
