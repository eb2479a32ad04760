"""A cluster while twenty tables play: nothing is lost or doubled, whatever its servers do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import pytest

from dealer.errors import DatabaseError
from dealer.eventlog import Appended, Conflict, Duplicate, Log
from dealer.eventlog.postgres.cluster import Server
from dealer.eventlog.postgres.database import PostgresDatabase
from tests.eventlog.requests import append
from tests.eventlog.test_cluster import ids, worker_of
from tests.harness.cluster import Cluster, own_cluster, standby_of
from tests.harness.database_link import DatabaseLink
from tests.harness.nodes import SOCKET
from tests.harness.postgres import OwnServer

pytestmark = pytest.mark.slow

TABLES = 20
MORE = 200
"""Appends that are waited for before and after a fault."""

_SHARDS = """
SELECT s.shardid, n.nodename FROM pg_dist_shard s JOIN pg_dist_placement p USING (shardid)
JOIN pg_dist_node n USING (groupid) WHERE s.logicalrelid = CAST('stream' AS regclass)
ORDER BY 1"""
_MOVE = "SELECT citus_move_shard_placement($1, $2, 5432, $3, 5432, $4)"


@pytest.fixture
def database(cluster: Cluster) -> Iterator[str]:
    name = cluster.database()
    yield name
    cluster.drop(name)


class Playing:
    """Tables at each of which one append follows the other; `refused` are errors of any of them."""

    def __init__(self, log: Log) -> None:
        self.refused: list[DatabaseError] = []
        self._log = log
        self._acknowledged: dict[bytes, list[str]] = {table: [] for table in ids(TABLES)}
        self._more = asyncio.Event()
        self._over = False

    async def play(self, table: bytes) -> None:
        """Append until it is over; what is refused is sent again."""
        version, acknowledged = 0, self._acknowledged[table]
        while not self._over:
            command = f"{len(acknowledged)}"
            try:
                result = await self._log.append(append(table, version, command, command=command))
            except DatabaseError as error:
                self.refused.append(error)
                await asyncio.sleep(0.01)
                continue
            if isinstance(result, Conflict):
                version = result.version
                continue
            assert isinstance(result, Appended | Duplicate)
            version = max(version, result.version)
            acknowledged.append(command)
            self._more.set()

    async def more(self) -> None:
        """Wait for MORE appends, and until each table has one."""
        async with asyncio.timeout(60):
            count = self._count() + MORE
            while self._count() < count or not all(self._acknowledged.values()):
                self._more.clear()
                await self._more.wait()

    def _count(self) -> int:
        return sum(map(len, self._acknowledged.values()))

    @asynccontextmanager
    async def every_table(self) -> AsyncIterator[None]:
        """All tables play in the block; then the log has what was acknowledged, each once."""
        tables = [asyncio.create_task(self.play(table)) for table in self._acknowledged]
        try:
            await self.more()
            yield
            await self.more()
        finally:
            self._over = True
            await asyncio.gather(*tables)
        for table, commands in self._acknowledged.items():
            rows = [row async for part in self._log.stream(table) for row in part]
            assert [row.version for row in rows] == [*range(1, len(rows) + 1)]
            assert [row.command for row in rows] == commands


def move_each(cluster: Cluster, database: str, mode: str) -> None:
    """Move each shard to the other worker, one after the other."""
    first, second = (str(worker.folder) for worker in cluster.workers)
    for shard, place in cluster.ask(database, _SHARDS):
        to = second if place == first else first
        cluster.ask(database, _MOVE, shard, place, to, mode)


def move_by_replication(cluster: Cluster, database: str) -> None:
    move_each(cluster, database, "force_logical")


def move_without_writes(cluster: Cluster, database: str) -> None:
    move_each(cluster, database, "block_writes")


def rebalance(cluster: Cluster, database: str) -> None:
    """Move all shards to one worker, and let Citus distribute them again."""
    first, second = (str(worker.folder) for worker in cluster.workers)
    for shard, place in cluster.ask(database, _SHARDS):
        if place != first:
            cluster.ask(database, _MOVE, shard, second, first, "block_writes")
    assert {place for _, place in cluster.ask(database, _SHARDS)} == {first}
    cluster.ask(database, "SELECT citus_rebalance_start()")
    cluster.ask(database, "SELECT citus_rebalance_wait()")
    assert {place for _, place in cluster.ask(database, _SHARDS)} == {first, second}


def restart_coordinator(cluster: Cluster, database: str) -> None:
    for _ in range(3):
        OwnServer.stop(cluster)
        OwnServer.start(cluster)


@pytest.mark.parametrize(
    "fault", [move_by_replication, move_without_writes, rebalance, restart_coordinator]
)
async def test_while_twenty_tables_play_none_is_refused(
    cluster: Cluster, database: str, fault: Callable[[Cluster, str], None]
) -> None:
    async with await Log.open(cluster.url(database), busy_seconds=20.0) as log:
        playing = Playing(log)
        async with playing.every_table():
            await asyncio.to_thread(fault, cluster, database)
        assert playing.refused == []


async def test_while_twenty_tables_play_all_servers_restart(
    cluster: Cluster, database: str
) -> None:
    async with await Log.open(cluster.url(database), busy_seconds=0.5) as log:
        playing = Playing(log)
        async with playing.every_table():
            await asyncio.to_thread(cluster.stop)
            async with asyncio.timeout(60):
                while not playing.refused:  # noqa: ASYNC110  the writer's thread
                    await asyncio.sleep(0.01)
            await asyncio.to_thread(cluster.start)


def replace(coordinator: OwnServer, database: str, server: OwnServer, by: OwnServer) -> None:
    """Put a server of a cluster in another one's place."""
    known = "SELECT nodeid FROM pg_dist_node WHERE nodename = $1"
    ((node,),) = coordinator.ask(database, known, str(server.folder))
    sql = "SELECT citus_update_node($1, $2, 5432)"
    until = time.monotonic() + 60
    while time.monotonic() < until:
        # Citus 13.2.0 ends in it at times, and its server recovers.
        with suppress(asyncpg.PostgresConnectionError, asyncpg.CannotConnectNowError, OSError):
            coordinator.ask(database, sql, node, str(by.folder))
            return
    raise AssertionError(f"{by.folder} did not take the place of {server.folder}")


@pytest.mark.parametrize("replaced", [0, 1])
async def test_while_twenty_tables_play_a_standby_takes_over(replaced: int) -> None:
    """0 is the coordinator, which the first server in the address, a worker, names."""
    with own_cluster(safe=True) as cluster:
        database = cluster.database()
        server = (cluster, *cluster.workers)[replaced]
        with standby_of(server) as standby:
            coordinator = cluster if replaced else standby
            address = f"{cluster.url_by_worker(database, 1)}&target_session_attrs=read-write"

            def take_over() -> None:
                OwnServer.stop(server, "fast")  # it sends what it has written first
                standby.promote()
                replace(coordinator, database, server, standby)

            async with await Log.open(address, busy_seconds=30.0) as log:
                known = await log.reader.fence(())
                playing = Playing(log)
                async with playing.every_table():
                    await asyncio.to_thread(take_over)
                assert playing.refused == []
                assert log.writer.unreachable == []
                assert (await log.reader.fence(()) == known) == bool(replaced)


@pytest.mark.parametrize("command", ["x", None])
@pytest.mark.parametrize("lost", ["request", "reply"])
async def test_an_answer_of_a_worker_that_is_lost_leaves_one_append_and_one_answer(
    cluster: Cluster,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    lost: str,
    command: str | None,
) -> None:
    """With `reply` the worker has committed before the connection is cut."""
    tables = ids()
    table = tables[0]
    place = worker_of(cluster, database, table)
    async with DatabaseLink(Path(place) / SOCKET) as link:
        connect_to = PostgresDatabase.connect_to

        async def by_link(
            self: PostgresDatabase, server: Server | None, settings: dict[str, str]
        ) -> asyncpg.Connection[Any]:
            if server is not None and server.host == place:
                server = Server("127.0.0.1", link.port)
            return await connect_to(self, server, settings)

        monkeypatch.setattr(PostgresDatabase, "connect_to", by_link)
        async with await Log.open(cluster.url(database), busy_seconds=20.0) as log:
            await asyncio.gather(*(log.append(append(each, 0)) for each in tables))
            link.lost, link.cut_at = lost, lambda data: table in data
            request = append(table, 1, "once", command=command)
            others = [append(each, 1) for each in tables[1:]]
            results = await asyncio.gather(*map(log.append, (request, *others)))
            assert link.cuts == 1
            assert results == [Appended(2)] * len(tables)
            for each in tables:
                assert [row.version for row in await log.read(each)] == [1, 2]
            if command:
                assert await log.append(request) == Duplicate(2, b"digest of x")
