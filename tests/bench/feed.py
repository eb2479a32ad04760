"""CPU of a draw with the feed followed beside one without: `python tests/bench/feed.py [seconds]`.

The same load goes to a server of its own each time, in turns: without a service key, with one (so
that the feed is written), and with a follower of `GET /feed` that reads everything. Figures are the
medians of the turns, of all threads of the server, for one draw with its share of the shuffles.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import load
from server import alone

from dealer.eventlog import Log
from dealer.service.identity.admin import AdminService

TURNS = 5
TABLES, SEATS, IN_FLIGHT = 10, 4, 1

KINDS = ("no key", "a key", "a follower")


async def add_key(folder: str) -> str:
    """A key for everything, which the server finds within a second."""
    async with await Log.open(f"sqlite:///{folder}/bench.db") as log:
        text = await AdminService(log, who="bench").add_service_key("bench", ["admin"])
    await asyncio.sleep(1.5)
    return text


@asynccontextmanager
async def following(port: int, key: str) -> AsyncIterator[list[int]]:
    """Follow the feed; the list has the number of bytes that were read."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(
        b"GET /feed?after=now HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %b\r\n\r\n"
        % key.encode()
    )
    count = [0]

    async def read() -> None:
        while data := await reader.read(1 << 16):
            count[0] += len(data)

    task = asyncio.create_task(read())
    try:
        yield count
    finally:
        task.cancel()
        writer.transport.abort()


async def _turn(kind: str, seconds: float) -> float:
    with alone() as (folder, port, process):
        key = "" if kind == "no key" else await add_key(folder)

        async def play() -> float:
            figures = await load.draws(
                "127.0.0.1",
                port,
                tables=TABLES,
                seats=SEATS,
                in_flight=IN_FLIGHT,
                warmup=seconds / 4,
                seconds=seconds,
                pid=process.pid,
            )
            return float(figures["cpu"])

        if kind != "a follower":
            return await play()
        async with following(port, key) as count:
            cost = await play()
            assert count[0] > 100_000, count
            return cost


def measure(seconds: float = 4.0) -> list[dict[str, Any]]:
    """Rows of name, figure, unit and the ratio to a server without a key."""
    costs: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for _ in range(TURNS):
        for kind in KINDS:
            costs[kind].append(asyncio.run(_turn(kind, seconds)))
    medians = {kind: statistics.median(found) for kind, found in costs.items()}
    return [
        {
            "name": f"a draw, {kind}",
            "figure": medians[kind],
            "unit": "µs",
            "ratio": medians[kind] / medians["no key"],
        }
        for kind in KINDS
    ]


if __name__ == "__main__":
    for row in measure(float(sys.argv[1]) if len(sys.argv) > 1 else 4.0):
        print(f"{row['name']:30} {row['figure']:8.1f} {row['unit']}  {row['ratio']:.3f}")
