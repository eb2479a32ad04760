"""CPU of a draw, several nodes on one PostgreSQL: `python tests/bench/nodes.py [seconds]`.

Each node is a process and serves tables of its own, as behind a balancer that hashes on the table;
one draw is in flight at each table, and each table is shuffled after 52 draws. The first row is the
same load at one node on an SQLite file. All processes share this machine: compare CPU, not rates.
CPU and bytes are those of a draw: of the event loop and the whole node, of PostgreSQL, its WAL
and the growth of the database with the read models. `hints` are those that one node received.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import load
from server import Running, started

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.harness.postgres import OwnServer, own_server

TABLES = 24  # of each node: as many draws may share a commit
SEATS = 4
NODES = (1, 2, 4)
_BYTES = "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn, pg_database_size($1::text)"


async def measure(
    nodes: list[Running], server: OwnServer | None, database: str, seconds: float
) -> dict[str, float]:
    """The figures of one load; `database` is the name of the nodes' database on `server`."""
    clock, playing = load.Clock(warmup=0, seconds=0), []
    for number in range(TABLES * len(nodes)):
        table = load.Table(SEATS, 1, clock)
        await table.sit_down("127.0.0.1", nodes[number % len(nodes)].port)
        playing.append(table)
    clock.__init__(warmup=seconds / 4, seconds=seconds)  # type: ignore[misc]
    for table in playing:
        table.play()
    await asyncio.sleep(seconds / 4)
    before = _used(nodes, server) + await asyncio.to_thread(_written, server, database)
    await asyncio.sleep(seconds)
    after = _used(nodes, server) + await asyncio.to_thread(_written, server, database)
    draws = len(clock.latencies)
    names = ("loop", "node", "postgres", "wal", "stored")
    used = ((now - then) / draws for now, then in zip(after, before, strict=True))
    return clock.figures() | dict(zip(names, used, strict=True))


def _used(nodes: list[Running], server: OwnServer | None) -> tuple[float, ...]:
    """µs of CPU: the nodes' event loops, the nodes, and PostgreSQL with its backends."""
    used = [load.cpu_times(each.process.pid) for each in nodes]
    backends = [] if server is None else [load.cpu_times(pid)[1] for pid in _family(server.pid)]
    sums = sum(loop for loop, _ in used), sum(whole for _, whole in used), sum(backends)
    return tuple(seconds * 1e6 for seconds in sums)


def _written(server: OwnServer | None, database: str) -> tuple[float, ...]:
    """Bytes of PostgreSQL's write-ahead log so far, and of the database."""
    if server is None:
        return 0.0, 0.0
    (found,) = server.ask(database, _BYTES, database)
    return tuple(map(float, found))


def _family(postmaster: int) -> list[int]:
    children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text().split()
    return [postmaster, *map(int, children)]


def run(count: int, server: OwnServer | None, seconds: float) -> dict[str, float]:
    """The figures of `count` nodes on a new database, or of one on a new SQLite file."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder, ExitStack() as stack:
        database = "" if server is None else server.database()
        url = "" if server is None else server.url(database)
        running = [stack.enter_context(started(folder, url)) for _ in range(count)]
        figures = asyncio.run(measure(running, server, database, seconds))
        for each in running:
            each.process.terminate()
        ends = [each.process.communicate()[0].split() for each in running]
        return figures | {"hints": max(float(received) for _, received in ends)}


def main(seconds: float) -> None:
    heads = (
        f"{'loop µs':>9}{'node µs':>9}{'PostgreSQL µs':>15}{'WAL B':>8}{'stored B':>10}{'hints':>7}"
    )
    print(f"{'':22}{'draws/s':>9}{'p50 ms':>8}{heads}")

    def show(name: str, found: dict[str, float]) -> None:
        print(
            f"{name:22}{found['rate']:9,.0f}{found['p50']:8.1f}{found['loop']:9.0f}"
            f"{found['node']:9.0f}{found['postgres']:15.0f}{found['wal']:8,.0f}"
            f"{found['stored']:10,.0f}{found['hints']:7.0f}",
            flush=True,
        )

    show("SQLite, 1 node", run(1, None, seconds))
    with own_server(safe=True) as server:
        for count in NODES:
            show(f"PostgreSQL, {count} node{'s' * (count > 1)}", run(count, server, seconds))


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 5.0)
