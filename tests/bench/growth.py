"""Cost of the server's work as the log grows, on SQLite: `python tests/bench/growth.py [sizes]`.

The sizes are numbers of events, ascending; the log grows from one to the next. Tables that were
played at are copied with SQL, 100 events each, with their read models of the lobby. Nothing waits
for the disk (synchronous=NORMAL); the figures are those of a warm operating system's cache.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import append

from dealer.cli.commands.tables import _find
from dealer.eventlog import Append, Appended, Log
from dealer.game.cards import STANDARD
from dealer.game.commands import Actor, Draw, OpenRound, StartShuffle, TakeSeat
from dealer.projector.runner import Projector, StreamPositions
from dealer.service import Service
from dealer.service.build import open_service

SIZES = (10**5, 10**6, 10**7)
EVENTS = 100
JOINED = 40
"""Tables played at and not copied; those that are joined for the first time come from them."""

APPENDS = 3000
REPEATED = 15
STREAMS = 500
"""Tables that are copied in one statement."""

HOST = Actor(host=True)

_STREAMS = """
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
INSERT INTO stream (table_id, version, projected)
SELECT randomblob(16), ?, ? FROM n"""
_EVENTS = """
INSERT INTO event (stream, version, type, schema, at, public, commitment, hidden, command, digest)
SELECT s.id, e.version, e.type, e.schema, e.at, e.public, e.commitment, e.hidden, e.command,
       e.digest
FROM stream s CROSS JOIN event e WHERE s.id > ? AND e.stream = 1 ORDER BY s.id, e.version"""
_TABLES = """
INSERT INTO tables (stream, table_id, name, origin, house_key, rules, opened_at, closed_at, rounds,
                    events)
SELECT s.id, lower(hex(s.table_id)), t.name, t.origin, t.house_key, t.rules, t.opened_at + s.id,
       t.closed_at, t.rounds, t.events
FROM stream s CROSS JOIN tables t WHERE s.id > ? AND t.stream = 1"""
_SEATS = """
INSERT INTO seats (stream, seat, since, since_at, player, "key", until, until_at)
SELECT s.id, x.seat, x.since, x.since_at, x.player, x."key", x.until, x.until_at
FROM stream s CROSS JOIN seats x WHERE s.id > ? AND x.stream = 1"""


async def _play(service: Service) -> None:
    live, _ = await service.open_table({"preset": "free"})
    for number in range(4):
        await service.execute(live, TakeSeat(f"player {number}"))
    await service.execute(live, OpenRound(HOST, STANDARD, "house", 10_000, 10_000))
    await service.execute(live, StartShuffle(HOST))
    while live.table.version < EVENTS:
        await service.execute(live, Draw(Actor(seat=1 + live.table.version % 4)))


async def _begin(url: str) -> None:
    async with open_service(url, synchronous="NORMAL") as service:
        for _ in range(JOINED):
            await _play(service)
        assert service.projection is not None
        await service.projection.up_to_date()


def _fill(file: Path, size: int) -> None:
    """Copy the first table until the log has `size` events."""
    db = sqlite3.connect(file, isolation_level=None)
    db.execute("PRAGMA synchronous=OFF")
    db.execute("PRAGMA cache_size=-262144")
    (missing,) = db.execute("SELECT ? - coalesce(max(id), 0) FROM event", (size,)).fetchone()
    for begin in range(0, missing // EVENTS, STREAMS):
        count = min(STREAMS, missing // EVENTS - begin)
        (last,) = db.execute("SELECT max(id) FROM stream").fetchone()
        db.execute("BEGIN")
        db.execute(_STREAMS, (count, EVENTS, EVENTS))
        for statement in (_EVENTS, _TABLES, _SEATS):
            db.execute(statement, (last,))
        db.execute("COMMIT")
    db.execute("ANALYZE")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def _streams(file: Path, *, played: bool) -> list[bytes]:
    """The tables that were played at, or the copies to which nothing was appended."""
    db = sqlite3.connect(file)
    where = "id <= ?" if played else f"id > ? AND version = {EVENTS}"
    found = db.execute(f"SELECT table_id FROM stream WHERE {where}", (JOINED,)).fetchall()
    db.close()
    return [table for (table,) in found]


async def _appends(url: str, tables: list[bytes]) -> dict[str, float]:
    """One event to each of some random tables, one after the other."""
    chosen = random.sample(tables, min(APPENDS, len(tables)))
    log = await Log.open(url, synchronous="NORMAL")
    times, cpu = [], []
    for number, table in enumerate(chosen):
        begun, used = time.perf_counter(), time.process_time()
        result = await log.append(Append(table, EVENTS, append.rows(number, EVENTS, 1)))
        times.append(time.perf_counter() - begun)
        cpu.append(time.process_time() - used)
        assert isinstance(result, Appended), result
    await log.close()
    # The next size begins without lagging tables.
    db = sqlite3.connect(url.removeprefix("sqlite:///"))
    with db:
        db.execute("UPDATE stream SET projected = version")
    db.close()
    return {
        "append, CPU, mean, µs": statistics.mean(cpu) * 1e6,
        "append, CPU, p99, µs": statistics.quantiles(cpu, n=100)[98] * 1e6,
        "append, p50, µs": statistics.median(times) * 1e6,
        "append, p99, µs": statistics.quantiles(times, n=100)[98] * 1e6,
    }


async def _median(work: Callable[[], Awaitable[Any]]) -> float:
    """Milliseconds of the processor."""
    times = []
    for _ in range(REPEATED):
        begun = time.process_time()
        await work()
        times.append(time.process_time() - begun)
    return statistics.median(times) * 1000


async def _reads(url: str, tables: list[bytes], played: Iterator[bytes]) -> dict[str, float]:
    async def start() -> None:
        async with open_service(url, synchronous="NORMAL"):
            pass

    found = {"start and end of the service, ms": await _median(start)}
    found["dealer tables, 100 of all, ms"] = await _median(lambda: _find(100, url))
    async with open_service(url, synchronous="NORMAL") as service:
        found["lobby, ms"] = await _median(service.lobby._read)
        found["first join of a table of 100 events, ms"] = await _median(
            lambda: service.lifecycle.load(next(played).hex())
        )
        some = random.sample(tables, 64)
        log = service.log
        found["projector: positions of 64 tables, ms"] = await _median(
            lambda: log.run_when_idle(
                lambda connection: not StreamPositions(bound=64).of(connection, some)
            )
        )
        found["projector: search for lagging tables, ms"] = await _median(
            lambda: log.run_when_idle(Projector().slice)
        )
    return found


async def _measure(url: str, file: Path) -> dict[str, float]:
    tables = _streams(file, played=False)
    played = _streams(file, played=True)
    random.shuffle(played)
    return await _appends(url, tables) | await _reads(url, tables, iter(played))


def measure(sizes: tuple[int, ...] = SIZES) -> None:
    """Print one table: a column for each size."""
    columns = []
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        file = Path(folder) / "bench.db"
        url = f"sqlite:///{file}"
        asyncio.run(_begin(url))
        for size in sizes:
            _fill(file, size)
            columns.append(asyncio.run(_measure(url, file)))
            columns[-1]["file, MB"] = file.stat().st_size / 1e6
    print(f"{'events in the log':45}", *(f"{size:>12,}" for size in sizes))
    for name in columns[0]:
        print(f"{name:45}", *(f"{column[name]:12,.2f}" for column in columns))


if __name__ == "__main__":
    measure(tuple(map(int, sys.argv[1:])) or SIZES)
