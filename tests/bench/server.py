"""A server for benchmarks, with limits that a load does not reach.

    server.py FOLDER [DATABASE [CACHE]]

By default an SQLite file in the folder, which has the house key; CACHE bounds its page cache, in
KiB. Prints its port, and at its end how many tables were in the hints that it sent to other nodes
and received. It collects garbage and switches threads as `dealer serve` does.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path

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


async def main(folder: str, database: str = "") -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async with (
        open_service(
            database or f"sqlite:///{folder}/bench.db", house_key=Path(folder, "house.key")
        ) as service,
        serve(service, port=0, limits=LIMITS) as gateway,
    ):
        collecting = asyncio.create_task(FullCollections().run())
        print(gateway.port, flush=True)
        await stop.wait()
        collecting.cancel()
        hints = service.hints
        print(*((0, 0) if hints is None else (hints.sent, hints.received)), flush=True)


if __name__ == "__main__":
    sys.setswitchinterval(SWITCH_INTERVAL)
    if len(sys.argv) > 3:
        # The page cache grows with the log up to its bound, in any measurement of memory.
        store.CACHE_KIB = int(sys.argv[3])
    try:
        from uvloop import run
    except ImportError:
        run = asyncio.run  # type: ignore[assignment]
    run(main(*sys.argv[1:3]))
