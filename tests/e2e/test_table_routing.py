"""The players of a table meet at one node: the proxy hashes on what the clients request."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from contextlib import AsyncExitStack
from pathlib import Path

from dealer.client import connect
from tests.harness.composed import Composed, as_composed
from tests.harness.server_process import PATIENT
from tests.web.client.node_client import NodeClient

TABLES = 8
CONNECTIONS = 5

PRESENT = "SELECT encode(table_id, 'hex'), node, seats, watching FROM presence"

JOIN = """
    const house = await client.connect(args.url, { name: "Cleo" });
    (its.houses ??= []).push(house);
    await house.join(args.table);
"""


async def test_every_client_follows_its_table_to_one_node(tmp_path: Path) -> None:
    """The host connects before the table exists, others before or after they know it."""
    async with as_composed(tmp_path) as server, AsyncExitStack() as stack:
        clients = await stack.enter_async_context(NodeClient())
        tables = await asyncio.gather(*(fill(server, stack, clients) for _ in range(TABLES)))
        nodes, connections = await present(server)
        assert set(nodes) == set(tables)
        assert {len(at) for at in nodes.values()} == {1}
        assert len({node for at in nodes.values() for node in at}) == 2, "one node has all tables"
        assert set(connections.values()) == {CONNECTIONS}


async def fill(server: Composed, stack: AsyncExitStack, clients: NodeClient) -> str:
    """Open a table, and let four players and a spectator meet there; its id."""
    ada, bob, eve = [
        await stack.enter_async_context(connect(server.url, name=name))
        for name in ("Ada", "Bob", "Eve")
    ]
    opened = await ada.open(seats=4)
    dan = await stack.enter_async_context(connect(server.url, name="Dan", table=opened.id))
    for player in (ada, bob, dan):
        await player.join(opened.id)
    await eve.watch(opened.id)
    await clients.run(JOIN, url=server.url, table=opened.id)
    return opened.id


async def present(server: Composed) -> tuple[dict[str, set[bytes]], dict[str, int]]:
    """The nodes and the connections of each table, when the nodes have written all of them."""
    database = server.database
    async with asyncio.timeout(PATIENT):
        while True:
            nodes: dict[str, set[bytes]] = defaultdict(set)
            connections: dict[str, int] = defaultdict(int)
            rows = await asyncio.to_thread(database.server.ask, database.name, PRESENT)
            for table, node_id, seats, watching in rows:
                nodes[table].add(node_id)
                connections[table] += len(json.loads(seats)) + watching
            if sum(connections.values()) >= TABLES * CONNECTIONS:
                return nodes, connections
            await asyncio.sleep(0.1)
