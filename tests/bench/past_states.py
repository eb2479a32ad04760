"""Past states: `table.state` with `at`, at random versions of a long table.

`python tests/bench/past_states.py [events [reads]]`, by default 1,000,000 and 1,000. It prints for
SQLite and for PostgreSQL the median, the 99th percentile and the maximum in milliseconds, of the
clock and of this process's CPU, which is what a busy machine does not change, and how many events
were folded a read.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from dealer.game.view import SPECTATOR
from dealer.service.build import open_service
from dealer.service.reading.past_states import no_pause
from tests.bench.long_table import build
from tests.harness.postgres import own_server


async def read(url: str, key: Path, table: str, reads: int) -> tuple[list[float], list[float], int]:
    """Milliseconds and CPU milliseconds of each read, and the mean number of events folded."""
    chance, found, used, folded = Random(1), [], [], 0
    async with open_service(url, house_key=key) as service:
        await service.projection.up_to_date()  # as in a server that runs: nothing works beside it
        live_table = await service.lifecycle.load(table)
        for _ in range(reads):
            version = chance.randint(1, live_table.committed)
            cpu, begun = time.process_time(), time.perf_counter()
            await service.past_states.view(live_table, version, SPECTATOR, pause=no_pause)
            found.append(1000 * (time.perf_counter() - begun))
            used.append(1000 * (time.process_time() - cpu))
            folded += service.past_states.length(live_table, version)
    return found, used, folded // reads


def figures(found: list[float]) -> str:
    p99 = statistics.quantiles(found, n=100)[98]
    return f"median {statistics.median(found):.1f}, p99 {p99:.1f}, maximum {max(found):.1f}"


def measure(database: str, url: str, key: Path, events: int, reads: int) -> None:
    table = asyncio.run(build(url, events, house_key=key))
    found, used, folded = asyncio.run(read(url, key, table, reads))
    print(f"{database}: {reads:,} reads of {events:,} events, {folded} folded each")
    print(f"  ms:     {figures(found)}")
    print(f"  CPU ms: {figures(used)}", flush=True)


def main() -> None:
    defaults = ("1000000", "1000")
    events, reads = map(int, (*sys.argv[1:], *defaults[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as folder, own_server(safe=True) as server:
        for database, url in (
            ("SQLite", f"sqlite:///{Path(folder) / 'dealer.db'}"),
            ("PostgreSQL", server.url(server.database())),
        ):
            measure(database, url, Path(folder) / f"{database}.key", events, reads)


if __name__ == "__main__":
    main()
