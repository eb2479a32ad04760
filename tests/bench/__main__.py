"""Benchmarks of the server, printed as one table: `python tests/bench [seconds a load]`.

They are no tests. The server runs in its own process and the load in this one; quote medians of
several runs, and ratios rather than absolute figures.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from typing import Any

import append
import append_postgres
import bytes
import draw
import growth
import load
import memory
import projection
import work
from server import alone

SEATS = 4
LOADS = ((1, 1), (50, 1), (1, SEATS), (10, SEATS), (50, SEATS))
"""Tables, and draws in flight at each."""

IDLE = 1000


def sockets(seconds: float) -> list[dict[str, Any]]:
    rows = []
    for tables, in_flight in LOADS:
        with alone() as (_, port, process):
            playing = load.draws(
                "127.0.0.1",
                port,
                tables=tables,
                seats=SEATS,
                in_flight=in_flight,
                warmup=seconds / 4,
                seconds=seconds,
                pid=process.pid,
            )
            figures = asyncio.run(playing)
        name = f"{tables} table{'s' * (tables > 1)}, {in_flight} in flight"
        rows += [
            {"name": f"{name}: durable draws", "figure": figures["rate"], "unit": "draws/s"},
            {"name": f"{name}: p50", "figure": figures["p50"], "unit": "ms"},
            {"name": f"{name}: p99", "figure": figures["p99"], "unit": "ms"},
            {"name": f"{name}: event loop, a draw", "figure": figures["loop"], "unit": "µs"},
            {"name": f"{name}: all threads, a draw", "figure": figures["cpu"], "unit": "µs"},
        ]
    with alone() as (_, port, process):
        size = asyncio.run(load.idle("127.0.0.1", port, connections=IDLE, pid=process.pid))
        rows.append({"name": f"memory a connection, of {IDLE}", "figure": size, "unit": "KiB"})
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        figure = row["figure"]
        shown = f"{figure:,.0f}" if figure >= 100 else f"{figure:.2f}"
        ratio = row.get("ratio")
        of_floor = "" if ratio is None else f"{ratio:.2f} of the floor"
        print(f"{row['name']:45} {shown:>10} {row['unit']:9} {of_floor}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("seconds", type=float, nargs="?", default=5.0, help="of each load")
    parser.add_argument(
        "--growth",
        type=int,
        nargs="*",
        metavar="EVENTS",
        help="measure only how costs grow with the log: some minutes (100000 1000000 10000000)",
    )
    args = parser.parse_args()
    if args.growth is not None:
        growth.measure(tuple(args.growth) or growth.SIZES)
        sys.exit()
    show(append.measure())
    show(append_postgres.measure())
    show(bytes.measure())
    show(work.measure())
    show(projection.measure())
    show(draw.measure())
    show(sockets(args.seconds))
    show(memory.measure())
