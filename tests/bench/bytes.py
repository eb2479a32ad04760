"""Bytes of the log for a draw and for a shuffle, on SQLite and PostgreSQL, table and indexes apart.

The rows are those of a real round, appended to many tables in turn, each draw with a command id of
its own. SQLite's figures are the growth of the file; PostgreSQL's `pg_total_relation_size`. Read
models and checkpoints are not part of them.
"""

from __future__ import annotations

import asyncio
import secrets
import sqlite3
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from dealer.eventlog import Append, EventRecord, Log
from dealer.game.cards import STANDARD
from dealer.game.commands import Actor, Draw, OpenRound, StartShuffle, TakeSeat
from dealer.service.build import open_service
from dealer.service.tables.execution import IdempotencyKey
from tests.harness.postgres import own_server, query

TABLES = 64
SHUFFLES, DRAWS = 40, 200
"""For each table."""

_HOST = Actor(host=True)
_OPEN = OpenRound(_HOST, STANDARD, "house", 10_000, 10_000)

Sizes = dict[str, int]
"""Bytes of the table `event` and of each of its indexes; `all` is their sum."""


async def _record() -> tuple[list[EventRecord], list[EventRecord]]:
    """The rows of one shuffle of 52 cards, and those of its draws."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        async with open_service(f"sqlite:///{Path(folder) / 'bench.db'}") as service:
            live, _ = await service.open_table({})
            await service.execute(live, TakeSeat("bench"))
            await service.execute(live, _OPEN)
            start = live.committed
            await service.execute(live, StartShuffle(_HOST), key=_key())
            sealed = live.committed
            for _ in STANDARD:
                await service.execute(live, Draw(Actor(seat=1)), key=_key())
            rows = await service.log.read(live.id)
            return rows[start:sealed], rows[sealed:]


def _key() -> IdempotencyKey:
    return IdempotencyKey("seat:1:2", str(uuid.uuid4()), b"draw")


def _appends(rows: list[EventRecord], versions: dict[bytes, int]) -> Iterator[Append]:
    """One append of these rows to each table, as new events of it."""
    for table, version in versions.items():
        numbered = [
            row._replace(
                version=version + offset,
                command=row.command and f"seat:1:2/{uuid.uuid4()}",
                digest=row.digest and secrets.token_bytes(32) + row.digest[-4:],
                hidden=row.hidden and secrets.token_bytes(len(row.hidden)),
                commitment=row.commitment and secrets.token_bytes(32),
            )
            for offset, row in enumerate(rows, 1)
        ]
        versions[table] += len(rows)
        yield Append(table, version, numbered)


async def _fill(url: str, sizes: Callable[[], Sizes]) -> list[tuple[str, Sizes, int]]:
    """(name, growth, count) of the shuffles and the draws that are written to the database."""
    shuffle, draws = await _record()
    versions = {secrets.token_bytes(16): 0 for _ in range(TABLES)}
    found = []
    async with await Log.open(url, synchronous="NORMAL") as log:
        await asyncio.gather(*map(log.append, _appends(shuffle, versions)))
        for name, count, rows in (("shuffle", SHUFFLES, [shuffle]), ("draw", DRAWS, draws)):
            before = sizes()
            for turn in range(count):
                part = rows[turn % len(rows)]
                part = part if isinstance(part, list) else [part]
                await asyncio.gather(*map(log.append, _appends(part, versions)))
            after = sizes()
            grown = {each: after[each] - before.get(each, 0) for each in after}
            found.append((name, grown, count * TABLES))
    return found


@contextmanager
def _sqlite() -> Iterator[tuple[str, Callable[[], Sizes]]]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        file = Path(folder) / "bench.db"

        def sizes() -> Sizes:
            with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
                (pages,) = database.execute("PRAGMA page_count").fetchone()
                (page,) = database.execute("PRAGMA page_size").fetchone()
                found = {"all": pages * page}
                # An SQLite without dbstat has only the sum.
                with suppress(sqlite3.OperationalError):
                    found |= database.execute(
                        "SELECT m.name, sum(d.pgsize) FROM dbstat d JOIN sqlite_master m"
                        " ON m.name = d.name WHERE m.tbl_name = 'event' GROUP BY m.name"
                    ).fetchall()
                return found

        yield f"sqlite:///{file}", sizes


@contextmanager
def _postgres() -> Iterator[tuple[str, Callable[[], Sizes]]]:
    with own_server() as server:
        url = server.url(server.database())

        def sizes() -> Sizes:
            parts = query(
                url,
                "SELECT relname, pg_relation_size(oid) FROM pg_class WHERE oid ="
                " 'event'::regclass OR oid IN (SELECT indexrelid FROM pg_index"
                " WHERE indrelid = 'event'::regclass)",
            )
            total = query(url, "SELECT pg_total_relation_size('event')")
            return {"all": total[0][0]} | dict(map(tuple, parts))

        yield url, sizes


def measure() -> list[dict[str, Any]]:
    """Rows of name, figure and unit."""
    table = []
    for title, database in (("SQLite", _sqlite), ("PostgreSQL", _postgres)):
        with database() as (url, sizes):
            for name, grown, count in asyncio.run(_fill(url, sizes)):
                for part, size in grown.items():
                    of = "" if part == "all" else f", {part}"
                    table.append(
                        {"name": f"{title}: a {name}{of}", "figure": size / count, "unit": "B"}
                    )
    return table


if __name__ == "__main__":
    for row in measure():
        print(f"{row['name']:46} {row['figure']:>10,.1f} {row['unit']}")
