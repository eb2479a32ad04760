"""A server for benchmarks, with limits that a load does not reach.

    server.py FOLDER [DATABASE [CACHE]]

By default an SQLite file in the folder, which has the house key; CACHE bounds its page cache, in
KiB. Prints its port, and at its end how many tables were in the hints that it sent to other nodes
and received. It collects garbage and switches threads as `dealer serve` does.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from dealer.cli.process import SWITCH_INTERVAL, FullCollections
from dealer.eventlog.sqlite import store
from dealer.gateway.limits import Limits
from dealer.gateway.server import serve
from dealer.service.build import open_service

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
    house_tables_per_hour=UNLIMITED,
    connections=100_000,
    connections_per_address=100_000,
    opening=600.0,
)


class Running(NamedTuple):
    """A server in its own process, and its players' port."""

    folder: str
    port: int
    process: subprocess.Popen[str]


@contextmanager
def started(
    folder: str, *options: str, enter: Callable[[], None] | None = None
) -> Iterator[Running]:
    """This program with these options; its process calls `enter` before it begins."""
    program = [sys.executable, __file__, folder, *options]
    process = subprocess.Popen(program, stdout=subprocess.PIPE, text=True, preexec_fn=enter)
    assert process.stdout is not None
    try:
        yield Running(folder, int(process.stdout.readline()), process)
    finally:
        process.terminate()
        process.wait()


@contextmanager
def alone(*options: str, enter: Callable[[], None] | None = None) -> Iterator[Running]:
    """The same in a folder of its own."""
    with (
        tempfile.TemporaryDirectory(prefix="bench-") as folder,
        started(folder, *options, enter=enter) as one,
    ):
        yield one


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
