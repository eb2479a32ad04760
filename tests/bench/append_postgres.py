"""Append rates on PostgreSQL, compared with bare asyncpg with the same rows and batches.

The bare driver moves the heads in one statement and inserts the rows in another, or by COPY where
there are many, in one transaction, without checks. The server is a temporary one with fsync on.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import asyncpg
from append import TABLES, _ours, appends

sys.path.insert(0, str(Path(__file__).parents[2]))

from dealer.eventlog import Log
from dealer.eventlog.postgres.batch import COLUMNS, COPY_FROM
from tests.harness.postgres import own_server

Inserts = list[tuple[int, int, list[Any]]]

_MOVE = (
    "UPDATE stream s SET version = w.version FROM unnest($1::bytea[], $2::bigint[]) AS w"
    " (id, version) WHERE s.id = w.id"
)
_ADD = (
    f"INSERT INTO event ({', '.join(COLUMNS)}) SELECT * FROM unnest($1::bytea[], $2::bigint[],"
    " $3::text[], $4::integer[], $5::bigint[], $6::text[], $7::bytea[], $8::bytea[], $9::text[],"
    " $10::bytea[])"
)


async def _bare(raw: asyncpg.Connection, inserts: Inserts) -> None:
    found = [(t.to_bytes(16, "big"), *row) for t, _, rs in inserts for row in rs]
    await raw.execute("BEGIN")
    await raw.execute(
        _MOVE, [t.to_bytes(16, "big") for t, _, _ in inserts], [v + len(rs) for _, v, rs in inserts]
    )
    if len(found) <= COPY_FROM:
        await raw.execute(_ADD, *map(list, zip(*found, strict=True)))
    else:
        await raw.copy_records_to_table("event", records=found, columns=COLUMNS)
    await raw.execute("COMMIT")


async def _compare(
    bare: str, ours: str, *, count: int, batches: int, rounds: int
) -> tuple[float, float]:
    rates, ratios = [], []
    raw = await asyncpg.connect(bare)
    insert_streams = "INSERT INTO stream (id, version, projected) VALUES ($1, 0, 0)"
    await raw.executemany(insert_streams, [(t.to_bytes(16, "big"),) for t in range(TABLES)])
    async with await Log.open(ours) as log:
        version = 0
        for turn in range(rounds + 1):
            inserts = appends(version, count=count, batches=batches)
            version += batches * count
            start = time.perf_counter()
            for batch in inserts:
                await _bare(raw, batch)
            floor = time.perf_counter() - start
            took = await _ours(log, inserts, wait=False)
            if turn:  # the first round warms both up
                rates.append(batches * TABLES * count / took)
                ratios.append(floor / took)
    await raw.close()
    return statistics.median(rates), statistics.median(ratios)


def measure(*, rounds: int = 7) -> list[dict[str, Any]]:
    """Rows of (name, figure, unit, ratio); `ratio` is to bare asyncpg, 1 is as fast."""
    table = []
    with own_server(safe=True) as server:
        for name, count, batches in (
            ("PostgreSQL: 64 draws a commit", 1, 40),
            ("PostgreSQL: 64 shuffles of 53 events a commit", 53, 4),
        ):
            urls = [server.url(server.database()) for _ in range(2)]
            rate, ratio = asyncio.run(_compare(*urls, count=count, batches=batches, rounds=rounds))
            table.append({"name": name, "figure": round(rate), "unit": "events/s", "ratio": ratio})
    return table


if __name__ == "__main__":
    for row in measure():
        print(f"{row['name']:46} {row['figure']:>10,} {row['unit']}  {row['ratio']:.2f} of bare")
