"""CPU cost of the server's own work: a shuffle with all its proofs, and replays of a log."""

from __future__ import annotations

import asyncio
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from dealer.game.cards import STANDARD
from dealer.game.commands import Actor, CloseRound, Draw, OpenRound, StartShuffle, TakeSeat
from dealer.game.decide import NoRoundSecrets
from dealer.game.state import Table, evolve
from dealer.proof.verify import verify
from dealer.service import Service
from dealer.service.build import open_service
from dealer.service.tables.execution import CommandExecution
from dealer.service.tables.round_secret import event_of

HOST = Actor(host=True)
OPEN = OpenRound(HOST, STANDARD, "house", 10_000, 10_000)
ROUNDS = 200


def _row(name: str, figure: float, unit: str, ratio: float | None = None) -> dict[str, Any]:
    return {"name": name, "figure": figure, "unit": unit, "ratio": ratio}


async def _shuffle(service: Service) -> dict[str, Any]:
    """CPU of one 52-card shuffle, from the command to the append that is ready to be written.

    Tape, 51 swaps, 52 slots, 54 leaves, tree, two signed checkpoints, encryption, rows.
    """
    live, _ = await service.open_table({})
    await service.execute(live, OPEN)
    costs = []
    for _ in range(60):
        execution = CommandExecution(command=StartShuffle(HOST))
        begun = time.process_time()
        assert service.executor.apply(live, execution)
        costs.append(time.process_time() - begun)
    return _row("shuffle of 52 with all proofs, CPU", statistics.median(costs) * 1000, "ms")


async def _long_table(service: Service) -> bytes:
    live, _ = await service.open_table({})
    await service.execute(live, TakeSeat("bench"))
    for _ in range(ROUNDS):
        await service.execute(live, OPEN)
        await service.execute(live, StartShuffle(HOST))
        draws = [service.execute(live, Draw(Actor(seat=1))) for _ in range(52)]
        await asyncio.gather(*draws)
        await service.execute(live, CloseRound(HOST))
    return live.id


async def _replay(service: Service, table: bytes, file: Path) -> list[dict[str, Any]]:
    with sqlite3.connect(file) as raw:
        select = "SELECT * FROM event WHERE stream = (SELECT id FROM stream WHERE table_id = ?)"
        begun = time.perf_counter()
        count = len(raw.execute(f"{select} ORDER BY version", (table,)).fetchall())
        floor = count / (time.perf_counter() - begun)
    state, public = Table(), NoRoundSecrets()
    begun = time.perf_counter()
    async for rows in service.log.stream(table):
        for row in rows:
            evolve(state, event_of(row, public), row.at)
    folded = count / (time.perf_counter() - begun)
    begun = time.perf_counter()
    live = await service.loader.load(table)
    loaded = count / (time.perf_counter() - begun)
    assert live.committed == count == state.version
    lines = [line async for line in service.bundle(live)]
    begun = time.perf_counter()
    report = verify(lines)
    audited = count / (time.perf_counter() - begun)
    assert report.fault is None
    return [
        _row("a bare SELECT of a long table", floor, "events/s", 1.0),
        _row("replay: read and fold", folded, "events/s", folded / floor),
        _row("replay with every leaf and the root", loaded, "events/s", loaded / floor),
        _row("audit of its bundle, every proof", audited, "events/s", audited / floor),
    ]


async def _measure() -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        file = Path(folder) / "bench.db"
        async with open_service(f"sqlite:///{file}", synchronous="NORMAL") as service:
            rows = [await _shuffle(service)]
        async with open_service(f"sqlite:///{file}", synchronous="NORMAL") as service:
            table = await _long_table(service)
            return rows + await _replay(service, table, file)


def measure() -> list[dict[str, Any]]:
    """Rows of name, figure, unit and the ratio to the floor of the same run."""
    return asyncio.run(_measure())
