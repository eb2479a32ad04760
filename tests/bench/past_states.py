"""Past states: `table.state` with `at`, at random versions of a long table.

`python tests/bench/past_states.py [events [reads]]`, by default 1,000,000 and 1,000. It prints the
median, the 99th percentile and the maximum in milliseconds, of the clock and of this process's CPU,
which is what a busy machine does not change, and how many events were folded a read.
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


async def read(url: str, table: str, reads: int) -> tuple[list[float], list[float], int]:
    """Milliseconds and CPU milliseconds of each read, and the mean number of events folded."""
    chance, found, used, folded = Random(1), [], [], 0
    async with open_service(url) as service:
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


def main() -> None:
    defaults = ("1000000", "1000")
    events, reads = map(int, (*sys.argv[1:], *defaults[len(sys.argv) - 1 :]))
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'dealer.db'}"
        table = asyncio.run(build(url, events))
        found, used, folded = asyncio.run(read(url, table, reads))
    print(f"{reads:,} reads of {events:,} events, {folded} folded each")
    print(f"  ms:     {figures(found)}")
    print(f"  CPU ms: {figures(used)}")


if __name__ == "__main__":
    main()
