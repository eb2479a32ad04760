"""Growth of a process by tables in memory, compared with the estimate.

    python -m tests.service.memory_growth make FOLDER KIND COUNT
    python -m tests.service.memory_growth load FOLDER
    python -m tests.service.memory_growth unload FOLDER KIND COUNT
    python -m tests.service.memory_growth forget FOLDER KIND COUNT

KIND is empty, table, drawing, closed, commands or large.
The second prints the bytes that the process grows by and the bytes that `TableCache` estimates. It
only loads tables, each a second time, so that nothing else grows meanwhile: the first time fills
the caches and the heap of the database's thread. There is one, because each more of them that the
second time happened to need would add the page cache of its connection.

The third plays COUNT tables and has those that are idle leave memory. It prints the bytes that are
allocated no more and by how much `dealer_tables_bytes` falls; with PYTHONMALLOC=malloc, so that the
C library counts what Python allocates, too. The fourth prints the same of the recent events alone,
which are all kept until then, as while the read models lag.
"""

from __future__ import annotations

import asyncio
import ctypes
import gc
import sys
from pathlib import Path

from dealer.game.cards import STANDARD
from dealer.game.commands import Actor, CloseRound, Command, Draw, OpenRound, StartShuffle, TakeSeat
from dealer.projector.runner import Projector
from dealer.service import IdempotencyKey, LiveTable, Service
from dealer.service.build import open_service
from tests.service.tables import HOST

LARGE = tuple(f"{number:04}" for number in range(1024))
AT_ONCE = 10


async def make(service: Service, kind: str) -> str:
    live_table, _ = await service.open_table({"preset": "free", "name": "a table"})
    if kind != "empty":
        await _play(service, live_table, LARGE if kind == "large" else STANDARD, kind)
    return live_table.table_id


async def _play(service: Service, live_table: LiveTable, deck: tuple[str, ...], kind: str) -> None:
    for number in range(4):
        await service.execute(live_table, TakeSeat(f"player {number}"))
    opening = OpenRound(HOST, deck, "house", 10_000, 10_000)
    for _ in range(6 if kind == "commands" else 1):
        await service.execute(live_table, opening)
        await service.execute(live_table, StartShuffle(HOST))
        for n in range(20 if kind in ("drawing", "closed") else 0):
            await service.execute(live_table, Draw(Actor(seat=1 + n % 4)))
        if kind == "closed":
            await service.execute(live_table, CloseRound(HOST))
        if kind == "commands":
            draws: list[Command] = [Draw(Actor(seat=1 + n % 4)) for n in range(52)]
            at = live_table.table.version
            await asyncio.gather(
                *(
                    service.execute(
                        live_table,
                        draw,
                        key=IdempotencyKey("seat:1:2", f"{at}-{n}-0123456789abcdef"),
                    )
                    for n, draw in enumerate(draws)
                )
            )
            await service.execute(live_table, CloseRound(HOST))


def rss_bytes() -> int:
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


async def make_all(url: str, kind: str, count: int) -> None:
    async with open_service(url, synchronous="NORMAL") as service:
        for _ in range(0, count, AT_ONCE):
            await asyncio.gather(*(make(service, kind) for _ in range(AT_ONCE)))
        # So that `load` projects nothing.
        await service.log.run_when_idle(Projector().slice)


async def load_all(url: str) -> None:
    async with open_service(url, readers=1) as service:
        found = await service.log.tables_between(bytes(16), b"\xff" * 16, limit=100_000)
        tables = [table.hex() for table in found]
        bound, service.tables.bound = service.tables.bound, 1
        for table in tables:
            await service.lifecycle.load(table)
        service.tables.bound = bound
        before, estimated = rss_bytes(), service.tables.bytes
        for table in tables:
            await service.lifecycle.load(table)
        print(rss_bytes() - before, service.tables.bytes - estimated)


class Allocated(ctypes.Structure):
    """`struct mallinfo2` of glibc."""

    _fields_ = [
        *((name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd")),
        *(
            (name, ctypes.c_size_t)
            for name in ("usmblks", "fsmblks", "uordblks", "fordblks", "top")
        ),
    ]


def allocated_bytes() -> int:
    gc.collect()
    library = ctypes.CDLL(None)
    library.mallinfo2.restype = Allocated
    found = library.mallinfo2()
    return int(found.uordblks + found.hblkhd)


async def unload_all(url: str, kind: str, count: int) -> None:
    async with open_service(url, synchronous="NORMAL") as service:
        for _ in range(0, count, AT_ONCE):
            await asyncio.gather(*(make(service, kind) for _ in range(AT_ONCE)))
        await service.projection.up_to_date()
        before, counted = allocated_bytes(), service.tables.used
        service.tables.bound = 0
        while len(service.tables):
            service.tables._shrink(count)
        streams = service.projection.projector._streams
        streams._cached.clear()
        streams.bytes = 0
        print(before - allocated_bytes(), counted - service.tables.used)


async def forget_all(url: str, kind: str, count: int) -> None:
    async with open_service(url, synchronous="NORMAL") as service:
        service.feed.head.followers += 1  # so that no slice of the feed ends what follows
        service.recent.follow(True)
        for _ in range(0, count, AT_ONCE):
            await asyncio.gather(*(make(service, kind) for _ in range(AT_ONCE)))
        await service.projection.up_to_date()
        before, counted = allocated_bytes(), service.tables.used
        service.recent.forget()
        print(before - allocated_bytes(), counted - service.tables.used)


if __name__ == "__main__":
    stage, folder, *more = sys.argv[1:]
    url = f"sqlite:///{folder}/dealer.db"
    if stage == "load":
        asyncio.run(load_all(url))
    else:
        work = {"make": make_all, "unload": unload_all, "forget": forget_all}[stage]
        asyncio.run(work(url, more[0], int(more[1])))
