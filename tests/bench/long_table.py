"""Long tables: the first join on a server that has just started, with and without savepoint.

`python tests/bench/long_table.py [events …]`, by default 100,000 and 1,000,000. The events are
decided and encoded by the service's own executor, and written with the writer's large batches.
"""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import sys
import tempfile
import time
from contextlib import closing
from pathlib import Path

from dealer.game.cards import STANDARD
from dealer.game.commands import Actor, CloseRound, Command, Draw, OpenRound, StartShuffle, TakeSeat
from dealer.game.view import SPECTATOR
from dealer.service import LiveTable, Service
from dealer.service.build import open_service

HOST = Actor(host=True)
OPEN = OpenRound(HOST, STANDARD, "house", 10_000, 10_000)
ROUND: tuple[Command, ...] = (
    OPEN,
    StartShuffle(HOST),
    *(Draw(Actor(seat=1)) for _ in range(52)),
    CloseRound(HOST),
)
APPENDS = 4096
"""Appends that are queued at a time."""

JOINS = 5


async def _append(service: Service, live_table: LiveTable, commands: list[Command]) -> None:
    done = asyncio.Event()
    left = len(commands)

    def count(outcome: object) -> None:
        nonlocal left
        if isinstance(outcome, Exception):
            raise outcome
        left -= 1
        if not left:
            done.set()

    for command in commands:
        service.submit(live_table, command, count)
    await done.wait()


async def build(url: str, events: int, *, house_key: Path | None = None) -> str:
    """A table with about so many events and an open round; its id."""
    options = {"synchronous": "NORMAL", "commit": "thread"} if "sqlite" in url else {}
    async with open_service(url, house_key=house_key, **options) as service:
        live_table, _ = await service.open_table({})
        await service.execute(live_table, TakeSeat("bench"))
        while live_table.committed < events:
            await _append(service, live_table, list(ROUND) * (APPENDS // len(ROUND)))
        await _append(service, live_table, list(ROUND[:12]))
        return live_table.table_id


async def _join(url: str, table: str) -> tuple[float, float, int]:
    """Seconds, seconds of CPU, and version, of the first join at a new service."""
    async with open_service(url) as service:
        cpu, begun = time.process_time(), time.perf_counter()
        live_table = await service.lifecycle.load(table)
        snapshot = await service.checkpoints.snapshot(live_table, SPECTATOR)
        return time.perf_counter() - begun, time.process_time() - cpu, snapshot.version


def _medians(url: str, table: str, *, runs: int) -> tuple[float, float, int]:
    found = [asyncio.run(_join(url, table)) for _ in range(runs)]
    return (
        statistics.median(seconds for seconds, _, _ in found),
        statistics.median(cpu for _, cpu, _ in found),
        found[0][2],
    )


def _drop_savepoint(file: Path) -> int:
    with closing(sqlite3.connect(file, isolation_level=None)) as raw:
        (size,) = raw.execute(
            "SELECT coalesce(sum(length(sealed)), 0) FROM table_savepoint"
        ).fetchone()
        raw.execute("DELETE FROM table_savepoint")
        return int(size)


def measure(events: int) -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        file = Path(folder) / "bench.db"
        url = f"sqlite:///{file}"
        begun = time.perf_counter()
        table = asyncio.run(build(url, events))
        print(f"{events:,} events, built in {time.perf_counter() - begun:.0f} s", flush=True)
        seconds, cpu, version = _medians(url, table, runs=JOINS)
        print(f"  with savepoint     {seconds * 1000:8.1f} ms  {cpu * 1000:8.1f} ms of CPU")
        size = _drop_savepoint(file)
        whole, whole_cpu, same = _medians(url, table, runs=1)
        assert version == same
        print(f"  without savepoint  {whole * 1000:8.1f} ms  {whole_cpu * 1000:8.1f} ms of CPU")
        print(f"  savepoint of {size:,} bytes; version {version:,}", flush=True)


if __name__ == "__main__":
    for number in [int(each) for each in sys.argv[1:]] or [100_000, 1_000_000]:
        measure(number)
