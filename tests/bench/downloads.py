"""Downloads of a long table: the longest stretch on the event loop, CPU, memory and bytes.

`python tests/bench/downloads.py [events]`, by default 100,000. A server in this process; every
address is fetched by a client of its own process, which counts the bytes.
"""

from __future__ import annotations

import asyncio
import os
import resource
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from long_table import build

from dealer.cli.process import FullCollections
from dealer.gateway import server
from dealer.gateway.limits import Limits
from dealer.service.build import open_service

STRETCH = 0.001
"""Seconds between two looks at the clock."""


class Stretches:
    """The most processor time of the event loop's thread between two looks at the clock."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def watch(self) -> None:
        while True:
            begun = time.thread_time()
            await asyncio.sleep(STRETCH)
            self.longest = max(self.longest, time.thread_time() - begun)


async def fetch(port: int, path: str, headers: str) -> int:
    program = ("curl", "-s", "-o", "/dev/null", "-w", "%{http_code} %{size_download}")
    arguments = ("-H", headers) if headers else ()
    process = await asyncio.create_subprocess_exec(
        *program, *arguments, f"http://127.0.0.1:{port}{path}", stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    status, size = said.split()
    assert status == b"200", said
    return int(size)


async def _measured(work: Callable[[], Awaitable[int]]) -> dict[str, Any]:
    stretches = Stretches()
    watching = asyncio.create_task(stretches.watch())
    await asyncio.sleep(10 * STRETCH)
    stretches.longest = 0.0
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    begun, cpu = time.perf_counter(), time.process_time()
    size = await work()
    found = {
        "seconds": time.perf_counter() - begun,
        "loop": time.process_time() - cpu,
        "longest": stretches.longest * 1000,
        "bytes": size,
    }
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    found["children"] = after.ru_utime + after.ru_stime - children.ru_utime - children.ru_stime
    found["peak"] = after.ru_maxrss // 1024
    watching.cancel()
    return found


async def _measure(url: str, table: str) -> None:
    limits = Limits(address_cpu=1e9, address_cpu_burst=1e9, history=10_000_000, sending=600.0)
    async with open_service(url) as service, server.serve(service, port=0, limits=limits) as node:
        collecting = asyncio.create_task(FullCollections().run())
        await asyncio.sleep(1.0)  # the table was built in this process
        for what in ("bundle.jsonl", "history.txt"):
            for headers in ("", "Accept-Encoding: gzip"):
                path = f"/tables/{table}/{what}"
                found = await _measured(
                    lambda path=path, headers=headers: fetch(node.port, path, headers)
                )
                print(
                    f"{what:13} {headers[17:] or 'plain':6} {found['seconds']:6.2f} s, server"
                    f" {found['loop']:6.2f} s of CPU, processes {found['children']:6.2f} s,"
                    f" {found['peak']} MiB; longest stretch {found['longest']:5.1f} ms of CPU,"
                    f" {found['bytes']:,} bytes",
                    flush=True,
                )
        collecting.cancel()


def main(events: int) -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        url = f"sqlite:///{Path(folder) / 'bench.db'}"
        table = asyncio.run(build(url, events))
        print(f"{events:,} events, process {os.getpid()}", flush=True)
        asyncio.run(_measure(url, table))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000)
