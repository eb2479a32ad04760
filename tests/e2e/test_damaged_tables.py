"""Damaged tables on a real server: every request is answered, nothing is busy, others play on."""

from __future__ import annotations

import asyncio
import json
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from dealer.proof.bundle import read
from dealer.proof.verify import verify
from tests.gateway.rpc_client import Refusal, RpcClient
from tests.harness.damage import DAMAGE, damage_file
from tests.harness.ports import unused_port
from tests.harness.process import processor_seconds
from tests.harness.server_process import PATIENT, ServerProcess

ROUNDS = 5
"""Rounds of polls that are observed."""

ROUND_SECONDS = 0.3
"""Processor time of an idle server from one poll to the next, with the requests of this test: much
more than it takes, and much less than a loop that is always busy."""


class Table:
    """A table whose host, a player too, has one connection."""

    def __init__(self, host: RpcClient, opened: dict[str, Any], joined: dict[str, Any]) -> None:
        self.host = host
        self.id: str = opened["table"]
        self.seat_token: str = joined["token"]
        self.version = 0

    @classmethod
    async def open(cls, server: ServerProcess) -> Table:
        host = await RpcClient.connect(server.port)
        opened = await host.call("table.open")
        joined = await host.call("table.join", name="Ada")
        table = cls(host, opened, joined)
        await host.call("round.open", entropy="house")
        await host.call("deck.shuffle")
        await table.draw()
        await server.bundle(table.id)  # signs the head
        return table

    async def draw(self) -> None:
        async with asyncio.timeout(PATIENT):
            self.version = (await self.host.call("deck.draw"))["version"]


async def get(port: int, path: str, **headers: str) -> tuple[int, str]:
    """Status and body; an answer that breaks off has the status 0."""

    def ask() -> tuple[int, str]:
        connection = HTTPConnection("127.0.0.1", port, timeout=PATIENT)
        try:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        except ConnectionError:
            return 0, ""
        finally:
            connection.close()

    return await asyncio.to_thread(ask)


async def answer(server: ServerProcess, method: str, **params: Any) -> str | None:
    """The reason of a refusal on a connection of its own, None for a result, `closed` if it is."""
    client = await RpcClient.connect(server.port)
    try:
        async with asyncio.timeout(PATIENT):
            await client.call(method, **params)
        return None
    except Refusal as refusal:
        return refusal.reason
    except asyncio.CancelledError:
        return "closed"
    finally:
        await client.close()


async def require_idle(server: ServerProcess, ops: int) -> None:
    """The process takes little processor time while it polls some times."""
    polls, age, before = 0, 0.0, processor_seconds(server.pid)
    async with asyncio.timeout(PATIENT):
        while polls < ROUNDS:
            _, metrics = await get(ops, "/metrics")
            (line,) = [x for x in metrics.splitlines() if x.startswith("dealer_probe_age_seconds ")]
            polls += float(line.split()[1]) < age
            age = float(line.split()[1])
            await asyncio.sleep(0.1)
    assert processor_seconds(server.pid) - before < ROUNDS * ROUND_SECONDS


async def feed(server: ServerProcess, key: str) -> list[dict[str, Any]]:
    status, body = await get(server.port, "/feed?wait=0", Authorization=f"Bearer {key}")
    assert status == 200
    return [json.loads(line) for line in body.splitlines() if line]


@pytest.mark.parametrize("loaded", [True, False], ids=["in memory", "after a restart"])
async def test_every_request_is_answered_and_others_play_on(tmp_path: Path, loaded: bool) -> None:
    ops = unused_port()
    options: dict[str, Any] = {"ops-port": ops}
    async with ServerProcess(tmp_path, **options) as server:
        key = (await server.run_command("key", "add", "shop", "--may", "admin,read")).strip()
        tables = {kind: await Table.open(server) for kind in DAMAGE}
        intact, other = await Table.open(server), await Table.open(server)
        await server.projected()
        if not loaded:
            await server.close()
        for kind, table in tables.items():
            damage_file(server.database, kind, table=table.id, other=other.id)
        if not loaded:
            await server.open()

        status = {}
        for kind, table in tables.items():
            status[kind], _ = await get(server.port, f"/tables/{table.id}/bundle.jsonl")
            for params in ({"after": table.version}, {"after": 1}):
                reason = await answer(
                    server, "table.resume", table=table.id, token=table.seat_token, **params
                )
                answered = {None, "unavailable", "closed"} if loaded else {"unavailable"}
                assert reason in answered, kind
            reason = await answer(server, "table.join", table=table.id, name="Bob")
            assert reason in ({None, "unavailable"} if loaded else {"unavailable"}), kind
        assert set(status.values()) <= {200, 0, 503}
        if not loaded:
            assert set(status.values()) == {503}

        objects = await feed(server, key)
        if loaded:
            await intact.draw()
        versions = [each["version"] for each in objects if each["table"] == intact.id]
        assert versions[:3] == [1, 2, 3]
        assert len(versions) >= 4
        bundle = await server.bundle(intact.id)
        assert verify(read(bundle)).ok
        ready, said = await get(ops, "/readyz")
        assert ready == 200
        named = {line.split()[2].rstrip(":") for line in said.splitlines() if "damaged" in line}
        if loaded:
            assert intact.id not in named
            assert len(named) >= len(DAMAGE) - 2
        else:
            assert named == {table.id for table in tables.values()}
        await require_idle(server, ops)
        lines = [line for line in server.output.read_text().splitlines() if "table damaged" in line]
        assert len(lines) == len(named)
        assert "Traceback" not in server.output.read_text()
