"""Services of another server: real processes, from `dealer key add` to a killed server."""

from __future__ import annotations

import asyncio
import json
import signal
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus

from tests.gateway.rpc_client import Refusal, RpcClient, reason_of
from tests.harness.server_process import PATIENT, ServerProcess
from tests.harness.service_keys import with_key


async def connected(server: ServerProcess, key: str, port: int = 0) -> RpcClient:
    """A service's connection, as soon as the server knows the key."""
    async with asyncio.timeout(PATIENT):
        while True:
            try:
                return await RpcClient.connect(port or server.port, **with_key(key))
            except InvalidStatus:
                await asyncio.sleep(0.05)


def post(server: ServerProcess, key: str, body: object) -> tuple[int, str]:
    url = f"http://127.0.0.1:{server.port}/rpc"
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    try:
        request = Request(url, json.dumps(body).encode(), headers)
        with urlopen(request, timeout=PATIENT) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def request(method: str, **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


async def test_a_key_from_the_command_line_to_its_end(tmp_path: Path) -> None:
    """And no line of any log has a key, not even at the lowest level."""
    async with ServerProcess(tmp_path, **{"log-level": "DEBUG"}) as server:
        key = (await server.run_command("key", "add", "shop", "--may", "open,read")).strip()
        client = await connected(server, key)
        opened = await client.call("table.open", ref="m1")
        said_hello = await RpcClient.connect(server.port)
        await said_hello.call("session.hello", key=key)
        for misplaced in ({"table": key}, {"token": key, "table": opened["table"]}, {key: 1}):
            with pytest.raises(Refusal):
                await client.call("table.state", **misplaced)
        status, text = await asyncio.to_thread(post, server, key, request("table.list"))
        assert status == 200
        assert opened["table"] in text
        await asyncio.to_thread(post, server, key, {"jsonrpc": "2.0", "key": key})
        await server.run_command("key", "revoke", "shop", "--why", "a test")
        for one in (client, said_hello):
            assert await one.wait_closed() == 4401
        status, text = await asyncio.to_thread(post, server, key, request("ping"))
        assert status == 401
        assert "key" in text
    log = server.output.read_text()
    assert "client suspect" in log
    assert "connection closed" in log
    assert "dk_" not in log


async def test_a_server_that_is_killed_between_a_claim_and_its_table(tmp_path: Path) -> None:
    """The same `ref` opens the table that was claimed, with the next server."""
    server = ServerProcess(tmp_path)
    async with server:
        key = (await server.run_command("key", "add", "shop", "--may", "open,read")).strip()
        await (await connected(server, key)).close()
    point = ("dealer.service.commands.table_lifecycle:TableLifecycle.load_or_create", "begin", "1")
    server.program = ("tests/harness/dies_at.py", *point)
    await server.open()
    client = await connected(server, key)
    with pytest.raises((ConnectionClosed, asyncio.CancelledError)):
        await client.call("table.open", ref="m1", name="first")
    assert await server.ended() == -signal.SIGKILL
    server.program = ("-m", "dealer")
    async with server:
        client = await connected(server, key)
        assert (await client.call("table.list"))["tables"] == []
        opened = await client.call("table.open", ref="m1", name="first")
        assert await client.call("table.open", ref="m1", name="first") == opened
        (listed,) = (await client.call("table.list", ref="m1"))["tables"]
        assert listed["table"] == opened["table"]
        await client.close()


async def test_a_port_for_services_and_players_who_open_no_tables(tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "service-port": 0,
        "open-tables": "service",
        "lobby": "service",
    }
    async with ServerProcess(tmp_path, **options) as server:
        key = (await server.run_command("key", "add", "shop", "--may", "open")).strip()
        (line,) = [one for one in server.output.read_text().splitlines() if "  ready  " in one]
        port = int(line.partition("services=127.0.0.1:")[2].split()[0])
        client = await connected(server, key, port)
        table = (await client.call("table.open"))["table"]
        player = await RpcClient.connect(server.port)
        for method in ("table.open", "table.list"):
            assert await reason_of(player.call(method)) == "not_entitled"
        assert (await player.call("table.join", table=table, name="ann"))["seat"] == 1
        page = await server.fetch("/")
        assert b"<html" in page
        await client.close()
        await player.close()
