"""A server for benchmarks, with limits that a load does not reach. Prints its port.

It collects garbage and switches threads as `dealer serve` does. A second argument bounds the page
cache of SQLite, in KiB.
"""

from __future__ import annotations

import asyncio
import signal
import sys

from dealer.cli.commands.serve import SWITCH_INTERVAL
from dealer.cli.garbage_collection import FullCollections
from dealer.eventlog.sqlite import store
from dealer.gateway.limits import Limits
from dealer.gateway.server import serve
from dealer.service.startup import open_service

UNLIMITED = 1e9
LIMITS = Limits(
    rate=UNLIMITED,
    burst=UNLIMITED,
    address_rate=UNLIMITED,
    address_burst=UNLIMITED,
    address_bytes=1e15,
    address_bytes_burst=1e15,
    address_cpu=UNLIMITED,
    address_cpu_burst=UNLIMITED,
    tables_per_hour=UNLIMITED,
    connections=100_000,
    connections_per_address=100_000,
    opening=600.0,
)


async def main(folder: str) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with (
        open_service(f"sqlite:///{folder}/bench.db") as service,
        serve(service, port=0, limits=LIMITS) as gateway,
    ):
        collecting = asyncio.create_task(FullCollections().run())
        print(gateway.port, flush=True)
        await stop.wait()
        collecting.cancel()


if __name__ == "__main__":
    sys.setswitchinterval(SWITCH_INTERVAL)
    if len(sys.argv) > 2:
        # The page cache grows with the log up to its bound, in any measurement of memory.
        store.CACHE_KIB = int(sys.argv[2])
    try:
        from uvloop import run
    except ImportError:
        run = asyncio.run  # type: ignore[assignment]
    run(main(sys.argv[1]))
