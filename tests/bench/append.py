"""Append rates on SQLite, compared with the bare sqlite3 driver with the same rows and batches.

Every figure is a rate of events with its ratio to the bare driver in the same run. The driver
writes the same rows in the same batches under the same PRAGMAs, in one thread without other work.
Rounds of both alternate; the ratio is the median of the rounds' ratios.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from dealer.eventlog import Append, EventRecord, Log

TABLES = 64
PUBLIC = "x" * 100
HIDDEN = b"h" * 60
COMMITMENT = b"c" * 32
DIGEST = b"d" * 32

Insert = tuple[int, int, list[EventRecord]]
"""A table, its version, and the rows to append."""

_MOVE = "UPDATE stream SET version = ? WHERE id = ? AND version = ?"
_ADD = (
    "INSERT INTO event (stream, version, type, schema, at, public, commitment, hidden, command,"
    " digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


def rows(table: int, after: int, count: int) -> list[EventRecord]:
    """The rows of one append; the first one has the command id."""
    first = EventRecord(
        after + 1, "CardDrawn", 1, 1_700_000_000_000 + after, PUBLIC, COMMITMENT, HIDDEN,
        f"{table:016x}-{after:08x}", DIGEST,
    )  # fmt: skip
    rest = (
        EventRecord(v, "CardsSwapped", 1, 1_700_000_000_000 + v, PUBLIC, COMMITMENT, HIDDEN)
        for v in range(after + 2, after + 1 + count)
    )
    return [first, *rest]


def appends(after: int, *, count: int, batches: int) -> list[list[Insert]]:
    """This many batches, each with one append to each table."""
    return [
        [(t, after + n * count, rows(t, after + n * count, count)) for t in range(TABLES)]
        for n in range(batches)
    ]


class Bare:
    """The bare driver, on the schema of the log."""

    def __init__(self, file: Path) -> None:
        self.db = sqlite3.connect(file, isolation_level=None)
        for pragma in (
            "synchronous=FULL",
            "wal_autocheckpoint=2000",
            "cache_size=-65536",
            "temp_store=MEMORY",
            "recursive_triggers=ON",
        ):
            self.db.execute(f"PRAGMA {pragma}")
        self.ids = {
            number: self.db.execute(
                "INSERT INTO stream (table_id, version, projected) VALUES (?, 0, 0)",
                (number.to_bytes(16, "big"),),
            ).lastrowid
            for number in range(TABLES)
        }

    def batch(self, inserts: list[Insert]) -> None:
        ids = self.ids
        self.db.execute("BEGIN IMMEDIATE")
        self.db.executemany(_MOVE, [(v + len(rs), ids[t], v) for t, v, rs in inserts])
        self.db.executemany(_ADD, [(ids[t], *row) for t, _, rs in inserts for row in rs])
        self.db.execute("COMMIT")


async def _ours(log: Log, inserts: list[list[Insert]], *, wait: bool) -> float:
    requests = [[Append(t.to_bytes(16, "big"), v, rs) for t, v, rs in w] for w in inserts]
    done = asyncio.Event()

    def settled(_: object) -> None:
        done.set()

    log.writer.commit_listeners.append(settled)
    start = time.perf_counter()
    for batch in requests:
        if wait:
            await asyncio.gather(*(log.append(request) for request in batch))
        else:
            done.clear()
            for request in batch:
                log.writer.submit(request)
            await done.wait()
    seconds = time.perf_counter() - start
    log.writer.commit_listeners.remove(settled)
    return seconds


async def _compare(*, count: int, batches: int, rounds: int, wait: bool) -> tuple[float, float]:
    folder = Path(tempfile.mkdtemp(prefix="append-"))
    rates, ratios = [], []
    try:
        async with await Log.open(f"sqlite:///{folder / 'bare.db'}"):
            pass
        # The bare driver also writes into a file with a grown write-ahead log.
        grown = await Log.open(f"sqlite:///{folder / 'bare.db'}")
        bare = Bare(folder / "bare.db")
        await grown.close()
        async with await Log.open(f"sqlite:///{folder / 'ours.db'}") as log:
            version = 0
            for turn in range(rounds + 1):
                inserts = appends(version, count=count, batches=batches)
                version += batches * count
                start = time.perf_counter()
                for batch in inserts:
                    bare.batch(batch)
                floor = time.perf_counter() - start
                ours = await _ours(log, inserts, wait=wait)
                if turn:  # the first round warms both up
                    rates.append(batches * TABLES * count / ours)
                    ratios.append(floor / ours)
        bare.db.close()
    finally:
        shutil.rmtree(folder)
    return statistics.median(rates), statistics.median(ratios)


def measure(*, rounds: int = 7) -> list[dict[str, Any]]:
    """Rows of (name, figure, unit, ratio); `ratio` is to the bare driver, 1 is as fast."""
    table = []
    for name, count, batches, wait in (
        ("64 draws a commit, by callback", 1, 40, False),
        ("64 draws a commit, by futures", 1, 40, True),
        ("64 shuffles of 53 events a commit", 53, 4, False),
    ):
        rate, ratio = asyncio.run(_compare(count=count, batches=batches, rounds=rounds, wait=wait))
        table.append({"name": name, "figure": round(rate), "unit": "events/s", "ratio": ratio})
    return table


if __name__ == "__main__":
    for row in measure():
        print(f"{row['name']:40} {row['figure']:>10,} {row['unit']}  {row['ratio']:.2f} of bare")
