"""Events per CPU second of the projector's catch-up and of a rebuild, on SQLite and PostgreSQL.

Both databases have the same log of closed rounds: 52 cards shuffled, drawn by four seats. CPU is
that of the node; on PostgreSQL the server's own CPU is given as well. The projector's slices are
those of a node.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import asyncpg
from sqlalchemy import Connection, create_engine
from sqlalchemy.pool import NullPool

sys.path.insert(0, str(Path(__file__).parents[2]))

from dealer.eventlog.postgres.batch import COLUMNS
from dealer.game.cards import STANDARD
from dealer.game.commands import Actor, CloseRound, Draw, OpenRound, StartShuffle, TakeSeat
from dealer.projector.models import MODELS
from dealer.projector.rebuild import Rebuild
from dealer.projector.runner import Projector, events_per_slice
from dealer.service import Service
from dealer.service.build import open_service
from dealer.service.service import ServiceOptions
from tests.harness.postgres import Blocking, OwnServer, own_server

TABLES = 16
ROUNDS = 40
SEATS = 4
HOST = Actor(host=True)
OPEN = OpenRound(HOST, STANDARD, "house", 10_000, 10_000)
# What the log's writer sets.
PRAGMAS = ("journal_mode=WAL", "synchronous=FULL", "cache_size=-65536", "temp_store=MEMORY")

Slice = Callable[[Connection], bool]
Cost = Callable[[], float]


async def _play(service: Service) -> None:
    live, _ = await service.open_table({})
    for seat in range(SEATS):
        await service.execute(live, TakeSeat(f"player {seat}"))
    for _ in range(ROUNDS):
        await service.execute(live, OPEN)
        await service.execute(live, StartShuffle(HOST))
        draws = (Draw(Actor(seat=1 + card % SEATS)) for card in range(len(STANDARD)))
        await asyncio.gather(*(service.execute(live, draw) for draw in draws))
        await service.execute(live, CloseRound(HOST))


async def _make(file: Path) -> None:
    async with open_service(
        f"sqlite:///{file}",
        ServiceOptions(per_network=TABLES),
        synchronous="NORMAL",
    ) as service:
        await asyncio.gather(*(_play(service) for _ in range(TABLES)))


async def _copy(file: Path, url: str) -> None:
    """Copy the log, of which nothing is projected there, to the PostgreSQL database at `url`."""
    with sqlite3.connect(file) as log:
        streams = log.execute("SELECT table_id, version, 0 FROM stream").fetchall()
        events = log.execute(
            f"SELECT s.table_id, {', '.join(f'e.{name}' for name in COLUMNS[1:])}"
            " FROM event e JOIN stream s ON s.id = e.stream"
        ).fetchall()
    raw = await asyncpg.connect(url)
    await raw.copy_records_to_table(
        "stream", records=streams, columns=["id", "version", "projected"]
    )
    await raw.copy_records_to_table("event", records=events, columns=COLUMNS)
    await raw.close()


def _drain(connection: Connection | Blocking, work: Slice, begin: str) -> None:
    more = True
    while more:
        connection.exec_driver_sql(begin)
        more = connection.run(work) if isinstance(connection, Blocking) else work(connection)
        connection.exec_driver_sql("COMMIT")


def _measure(name: str, connection: Connection | Blocking, begin: str, server: Cost) -> list[Any]:
    """Catch up from nothing, then rebuild; rates by the node's CPU, and by all CPU."""
    on_postgres = isinstance(connection, Blocking)
    projector = Projector(events=events_per_slice("postgresql" if on_postgres else "sqlite"))
    rows = []
    for what, work in (("catch-up", projector), ("rebuild", Rebuild())):
        node, of_server = time.process_time(), server()
        _drain(connection, work.slice, begin)
        node, of_server = time.process_time() - node, server() - of_server
        unit = "events/CPU s"
        row = {"name": f"{what} on {name}, the node's CPU", "figure": work.done / node}
        rows.append(row | {"unit": unit})
        if on_postgres:
            row = {"name": f"{what} on {name}, with the server's"}
            rows.append(row | {"figure": work.done / (node + of_server), "unit": unit})
    return rows


def _on_sqlite(file: Path) -> list[Any]:
    engine = create_engine(f"sqlite:///{file}", poolclass=NullPool)
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        for pragma in PRAGMAS:
            connection.exec_driver_sql(f"PRAGMA {pragma}")
        connection.exec_driver_sql("UPDATE stream SET projected = 0")
        for model in MODELS:
            connection.exec_driver_sql(f"DELETE FROM {model.name}")
        return _measure("SQLite", connection, "BEGIN IMMEDIATE", lambda: 0.0)


def _on_postgres(file: Path) -> list[Any]:
    with own_server(safe=True) as server:
        url = server.url(server.database())
        asyncio.run(_copy(file, url))
        connection = Blocking(url, {})
        try:
            return _measure("PostgreSQL", connection, "BEGIN", lambda: _cpu_of(server))
        finally:
            connection.close()


def _cpu_of(server: OwnServer) -> float:
    """CPU seconds of the server's processes, those that ended not counted."""
    parent, ticks = (server.folder / "data/postmaster.pid").read_text().split("\n")[0], 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if parent in (folder.name, fields[1]):
            ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


def measure() -> list[dict[str, Any]]:
    """Rows of name, figure and unit; on PostgreSQL with the ratio to the figure on SQLite."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        file = Path(folder) / "bench.db"
        asyncio.run(_make(file))
        rows: list[dict[str, Any]] = _on_sqlite(file)
        floor = {row["name"].split()[0]: row["figure"] for row in rows}
        for row in _on_postgres(file):
            rows.append(row | {"ratio": row["figure"] / floor[row["name"].split()[0]]})
    return rows


if __name__ == "__main__":
    for row in measure():
        ratio = f"{row['ratio']:.2f} of SQLite" if "ratio" in row else ""
        print(f"{row['name']:45} {row['figure']:>10,.0f} {row['unit']}  {ratio}")
