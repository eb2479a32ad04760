"""Two nodes on PostgreSQL serve one table in turn, and project each other's rounds."""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg

from dealer.proof.bundle import read
from dealer.proof.verify import verify
from tests.gateway.rpc_client import RpcClient
from tests.harness.nodes import Nodes
from tests.harness.server_process import PATIENT

LAG = "SELECT version - projected FROM stream"
SWAPS = "SELECT count(*) FROM swaps WHERE card_i IS NULL"
OPEN_ROUNDS = "SELECT count(*) FROM rounds WHERE until IS NULL"


async def projected(nodes: Nodes) -> None:
    """Wait until the read models have the log's newest version, or a node has stopped them."""
    async with asyncio.timeout(PATIENT):
        while await nodes.ask(LAG) != [(0,)]:
            for node in nodes.nodes:
                assert "projection of a table stopped" not in node.output.read_text()
            await asyncio.sleep(0.02)


async def test_a_round_whose_close_the_other_node_projects(tmp_path: Path) -> None:
    """The projecting node served an earlier round itself, and has not seen its close projected."""
    async with Nodes(tmp_path, count=2) as nodes:
        first, second = nodes.nodes
        here = await RpcClient.connect(second.port)
        opened = await here.call("table.open", seats=2)
        host = {"table": opened["table"], "token": opened["host_token"]}
        joined = await here.call("table.join", table=opened["table"], name="Ada")
        seat = {"table": opened["table"], "token": joined["token"]}
        there = await RpcClient.connect(first.port)

        async def begin_round(client: RpcClient) -> None:
            await client.call("round.open", **host, entropy="house")
            await client.call("deck.shuffle", **host)
            await client.call("deck.draw", **seat, count=3)
            await projected(nodes)

        await begin_round(here)
        await there.call("round.close", **host)
        await begin_round(there)
        locking = await asyncpg.connect(nodes.address)
        async with locking.transaction():
            await locking.execute("LOCK TABLE swaps, rounds IN SHARE MODE")
            await there.call("round.close", **host)
            await first.kill()
        await locking.close()
        await projected(nodes)
        assert await nodes.ask(SWAPS) == await nodes.ask(OPEN_ROUNDS) == [(0,)]
        assert verify(read(await second.bundle(opened["table"]))).ok
        await here.close()
        await there.close()
