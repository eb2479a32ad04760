"""The players of a table meet at one node: the proxy hashes on what the clients request."""

from __future__ import annotations

import asyncio
import json
import shutil
import signal
from collections import defaultdict
from contextlib import AsyncExitStack
from http import HTTPStatus
from http.client import HTTPConnection
from pathlib import Path

from dealer.client import RetryPolicy, connect
from dealer.errors import Disabled
from tests.harness.composed import Composed, Node, as_composed
from tests.harness.server_process import PATIENT
from tests.web.client.node_client import NodeClient

TABLES = 8
CONNECTIONS = 5
IN_A_ROW = 4
PAUSE = 0.3
"""Seconds between two clients of one address, for its limits."""

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
                # Seat 0 stands for the host token, whose holder has a seat, too.
                seated = [seat for seat, _ in json.loads(seats) if seat]
                connections[table] += len(seated) + watching
            if sum(connections.values()) >= TABLES * CONNECTIONS:
                return nodes, connections
            await asyncio.sleep(0.1)


async def test_clients_without_a_table_avoid_a_node_with_the_earlier_key(tmp_path: Path) -> None:
    """While no node has the key of a rotation, all of them get clients as before."""
    async with as_composed(tmp_path) as server:
        # As on three machines: the key of the rotation comes to a node when it is copied there.
        rotated = {"DEALER_HOUSE_KEY_FILE": str(tmp_path / "rotated")}
        await asyncio.to_thread(copy_keys, tmp_path, "key", "rotated")
        server.migration.environment |= rotated
        rotation = await server.migration.run("rotate-key", "--why", "yearly")
        assert await rotation.wait() == 0, server.migration.output.read_text()
        for node in server.nodes:
            async with asyncio.timeout(PATIENT):
                while await asyncio.to_thread(opens_tables, node):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        async with connect(server.url) as house:
            assert await house.tables() == []
        _, second = server.nodes
        await second.end(signal.SIGTERM)
        second.environment |= rotated
        await second.open()
        opened = 0
        async with asyncio.timeout(PATIENT):
            while opened < IN_A_ROW:
                opened = opened + 1 if await can_open(server.url) else 0
                await asyncio.sleep(PAUSE)


def copy_keys(folder: Path, name: str, other: str) -> None:
    for file in folder.glob(f"{name}*"):
        shutil.copy(file, folder / file.name.replace(name, other, 1))


async def can_open(url: str) -> bool:
    """Whether a new client can open a table; what follows would go to the table's own node."""
    async with connect(url, patience=RetryPolicy(attempts=1)) as house:
        try:
            await house._connection.ask("table.open", {}, table=None, changes=True)
        except Disabled:
            return False
        return True


def opens_tables(node: Node) -> bool:
    connection = HTTPConnection("127.0.0.1", node.ops_port, timeout=PATIENT)
    connection.request("GET", "/readyz?for=new-tables")
    status = connection.getresponse().status
    connection.close()
    return status == HTTPStatus.OK
