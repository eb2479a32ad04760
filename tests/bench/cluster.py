"""Draws on one PostgreSQL and on Citus clusters: `python tests/bench/cluster.py [seconds [turns]]`.

20 tables of four seats at one node; one draw is in flight at each table, which is shuffled after 52
draws. Each row is a database server alone, or a cluster of a coordinator and so many workers, in
turns, on the same processors: compare CPU, and rates only within a turn. CPU and bytes are those of
a draw: the node's, all database servers' together, and of the servers the least and the most loaded
worker's share of rows of `event`, of the write-ahead log and of CPU, in percent of all servers'.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import load
from nodes import _family
from server import started

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.harness.cluster import Cluster, own_cluster
from tests.harness.postgres import OwnServer, own_server

TABLES, SEATS = 20, 4
WORKERS = (1, 2, 4)
_WAL = "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn"
_ROWS = "SELECT pg_stat_get_tuples_inserted(CAST('event' AS regclass))"
_ROWS_IN_SHARDS = """
SELECT coalesce(sum(pg_stat_get_tuples_inserted(
    CAST(shard_name(s.logicalrelid, s.shardid) AS regclass))), 0)
FROM pg_dist_shard s JOIN pg_dist_placement p ON p.shardid = s.shardid
JOIN pg_dist_local_group l ON l.groupid = p.groupid
WHERE s.logicalrelid = CAST('event' AS regclass)"""


def _used(servers: list[OwnServer], database: str) -> list[tuple[float, float, float]]:
    """µs of CPU, bytes of the write-ahead log and rows of events of each server so far."""
    found = []
    for server in servers:
        cpu = sum(load.cpu_times(pid)[1] for pid in _family(server.pid)) * 1e6
        rows_of = _ROWS if len(servers) == 1 else _ROWS_IN_SHARDS
        ((wal,),), ((rows,),) = server.ask(database, _WAL), server.ask(database, rows_of)
        found.append((cpu, float(wal), float(rows)))
    return found


async def measure(
    port: int, pid: int, servers: list[OwnServer], database: str, seconds: float
) -> dict[str, float]:
    clock, playing = load.Clock(warmup=0, seconds=0), []
    for _ in range(TABLES):
        table = load.Table(SEATS, 1, clock)
        await table.sit_down("127.0.0.1", port)
        playing.append(table)
    clock.__init__(warmup=seconds / 4, seconds=seconds)  # type: ignore[misc]
    for table in playing:
        table.play()
    await asyncio.sleep(seconds / 4)
    node, before = load.cpu_times(pid)[1], await asyncio.to_thread(_used, servers, database)
    await asyncio.sleep(seconds)
    node = (load.cpu_times(pid)[1] - node) * 1e6
    await asyncio.sleep(1.5)  # statistics of tables are sent once a second
    after = await asyncio.to_thread(_used, servers, database)
    draws = len(clock.latencies)
    used = [
        [now - then for now, then in zip(*each, strict=True)]
        for each in zip(after, before, strict=True)
    ]
    workers = used[:-1] or used
    figures = clock.figures() | {
        "node": node / draws,
        "servers": sum(each[0] for each in used) / draws,
        "wal": sum(each[1] for each in used) / draws,
    }
    for name, place in (("cpu", 0), ("wal", 1), ("rows", 2)):
        whole = sum(each[place] for each in used) or 1
        parts = [each[place] / whole * 100 for each in workers]
        figures |= {f"{name} least": min(parts), f"{name} most": max(parts)}
    return figures


def run(server: OwnServer, seconds: float) -> dict[str, float]:
    servers = server.servers if isinstance(server, Cluster) else [server]
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, ExitStack() as stack:
        database = server.database()
        node = stack.enter_context(started(folder, server.url(database)))
        figures = asyncio.run(measure(node.port, node.process.pid, servers, database, seconds))
        node.process.terminate()
        node.process.communicate()
        return figures


def main(seconds: float, turns: int) -> None:
    print(
        f"{'':24}{'draws/s':>9}{'node µs':>9}{'servers µs':>12}{'WAL B':>8}   share of each worker"
    )
    with ExitStack() as stack:
        alone = stack.enter_context(own_server(safe=True))
        clusters = [stack.enter_context(own_cluster(workers=count, safe=True)) for count in WORKERS]
        for _ in range(turns):
            for server in (alone, *clusters):
                count = len(server.workers) if isinstance(server, Cluster) else 0
                name = f"{count} worker{'s' * (count > 1)}" if count else "one PostgreSQL"
                found = run(server, seconds)
                shares = ", ".join(
                    f"{found[f'{each} least']:.0f}–{found[f'{each} most']:.0f} %"
                    for each in ("rows", "wal", "cpu")
                )
                print(
                    f"{name:24}{found['rate']:9,.0f}{found['node']:9.0f}{found['servers']:12.0f}"
                    f"{found['wal']:8,.0f}   {shares}",
                    flush=True,
                )


if __name__ == "__main__":
    main(
        float(sys.argv[1]) if len(sys.argv) > 1 else 5.0,
        int(sys.argv[2]) if len(sys.argv) > 2 else 1,
    )
