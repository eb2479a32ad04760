"""Where the log of a run is, and the faults that are injected there."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.consistency.faulty_server import CLOCK, LIE
from tests.harness.load_balancer import LoadBalancer
from tests.harness.nodes import Nodes
from tests.harness.ports import unused_port
from tests.harness.postgres import own_server
from tests.harness.programs import output_of
from tests.harness.server_process import ServerProcess

Faulty = Callable[[], Awaitable[None]]


@dataclass
class SetUp:
    """Running servers behind one port; `faults` are what can be done to them, by name."""

    port: Callable[[], int]
    server: ServerProcess | Nodes
    faults: dict[str, Faulty]
    bundle: Callable[[str], Awaitable[bytes]]


def planted(folder: Path, lie: str) -> dict[str, str]:
    """The environment of a server whose clock the run moves, and that may lie."""
    moved = folder / "clock"
    moved.write_text("0")
    return {CLOCK: str(moved)} | ({LIE: lie} if lie else {})


PROGRAM = (str(Path(__file__).with_name("faulty_server.py")),)


@asynccontextmanager
async def sqlite(folder: Path, chance: random.Random, lie: str) -> AsyncIterator[SetUp]:
    """One node on an SQLite file, behind a relay whose connections can be cut."""
    server = ServerProcess(folder)
    server.program, server.environment = PROGRAM, planted(folder, lie)
    async with server, LoadBalancer(lambda: [server.port]) as relay:

        async def kill() -> None:
            await server.kill()
            await asyncio.sleep(chance.uniform(0, 0.2))
            await server.open()

        async def clock() -> None:
            (folder / "clock").write_text(str(chance.choice((-3600, -5, 0, 5, 3600))))

        faults = {
            "kill": kill,
            "freeze": freezing(lambda: server.pid, chance),
            "cut": cutting(relay, chance),
            "clock": clock,
        }
        yield SetUp(lambda: relay.port, server, faults, server.bundle)


@asynccontextmanager
async def nodes(
    folder: Path, chance: random.Random, lie: str, *, count: int, workers: int = 0
) -> AsyncIterator[SetUp]:
    """`count` nodes behind a load balancer, on one PostgreSQL server or a cluster of `workers`."""
    seed, environment = chance.randrange(2**32), planted(folder, lie)
    async with Nodes(
        folder, count=count, seed=seed, workers=workers, program=PROGRAM, environment=environment
    ) as several:

        async def kill() -> None:
            await several.kill()
            await asyncio.sleep(chance.uniform(0, 0.3))
            await several.open()

        async def restart() -> None:
            await several.stop_server()
            await asyncio.sleep(chance.uniform(0, 0.3))
            await several.start_server()

        async def worker() -> None:
            await several.kill_worker()
            await asyncio.sleep(chance.uniform(0, 1))
            await several.start_workers()

        async def clock() -> None:
            (folder / "clock").write_text(str(chance.uniform(-1.5, 1.5)))

        faults = {
            "kill": kill,
            "freeze": freezing(lambda: chance.choice(several.nodes).pid, chance),
            "cut": cutting(several.balancer, chance),
            "clock": clock,
            "restart of PostgreSQL": restart,
        }
        if workers:
            faults["kill of a worker"] = worker
        yield SetUp(lambda: several.port, several, faults, several.bundle)


@asynccontextmanager
async def failover(folder: Path, chance: random.Random, lie: str) -> AsyncIterator[SetUp]:
    """Two nodes on a primary with a synchronous standby, which is promoted once."""
    with (
        own_server(safe=True, port=unused_port(), settings=()) as primary,
        own_server(safe=True, port=unused_port(), standby_of=primary) as standby,
    ):
        database = await asyncio.to_thread(primary.database)
        for sql in (
            "ALTER SYSTEM SET synchronous_standby_names = '*'",
            "SELECT pg_reload_conf()",
        ):
            await asyncio.to_thread(primary.ask, "postgres", sql)
        hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
        address = f"postgresql://dealer@{hosts}/{database}?target_session_attrs=read-write"
        seed, environment = chance.randrange(2**32), planted(folder, lie)
        promoted = False

        async def promote() -> None:
            nonlocal promoted
            if not promoted:
                promoted = True
                await asyncio.to_thread(primary.stop, "immediate")
                await asyncio.to_thread(standby.promote)
                await asyncio.to_thread(
                    standby.ask, "postgres", "ALTER SYSTEM RESET synchronous_standby_names"
                )
                await asyncio.to_thread(standby.ask, "postgres", "SELECT pg_reload_conf()")

        async with Nodes(
            folder, count=2, seed=seed, program=PROGRAM, environment=environment,
            place=(primary, address),
        ) as several:  # fmt: skip

            async def kill() -> None:
                await several.kill()
                await asyncio.sleep(chance.uniform(0, 0.3))
                await several.open()

            faults = {
                "kill": kill,
                "freeze": freezing(lambda: chance.choice(several.nodes).pid, chance),
                "cut": cutting(several.balancer, chance),
                "promotion": promote,
            }
            yield SetUp(lambda: several.port, several, faults, several.bundle)


def freezing(pid: Callable[[], int], chance: random.Random) -> Faulty:
    async def freeze() -> None:
        number = pid()
        os.kill(number, signal.SIGSTOP)
        await asyncio.sleep(chance.choice((0.1, 0.5, 1.5)))
        os.kill(number, signal.SIGCONT)

    return freeze


def cutting(relay: LoadBalancer, chance: random.Random) -> Faulty:
    async def cut() -> None:
        await relay.break_off([pair for pair in list(relay._pairs) if chance.random() < 0.7])

    return cut


@contextmanager
def small_disk(folder: Path, megabytes: int) -> Iterator[Path]:
    """A file system of this size in memory; only root can mount one."""
    place = folder / "disk"
    place.mkdir(parents=True)
    output_of("mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode=755", "tmpfs", str(place))
    try:
        yield place
    finally:
        output_of("umount", "--lazy", str(place))


def filling(place: Path, chance: random.Random, after: Faulty | None = None) -> Faulty:
    """Fill a disk for a moment; `after` is done when there is room again."""

    async def fill() -> None:
        file = place / "filler"
        with suppress(OSError), file.open("wb", buffering=0) as filler:
            while True:
                filler.write(bytes(1 << 16))
        await asyncio.sleep(chance.uniform(0.2, 1.0))
        file.unlink()
        if after is not None:
            await after()

    return fill


@asynccontextmanager
async def full_sqlite(folder: Path, chance: random.Random, lie: str) -> AsyncIterator[SetUp]:
    """One node whose SQLite file is on a disk that is full at times."""
    with small_disk(folder, 1024) as place:
        async with sqlite(place, chance, lie) as made:
            faults = {"full disk": filling(place, chance), "kill": made.faults["kill"]}
            yield SetUp(made.port, made.server, faults, made.bundle)


@asynccontextmanager
async def full_postgres(folder: Path, chance: random.Random, lie: str) -> AsyncIterator[SetUp]:
    """Two nodes whose PostgreSQL is on a disk that is full at times; it then ends."""
    settings = ("max_wal_size=64MB", "min_wal_size=32MB")
    with (
        small_disk(folder, 1024) as place,
        own_server(safe=True, settings=settings, within=place) as server,
    ):
        database = await asyncio.to_thread(server.database)
        seed, environment = chance.randrange(2**32), planted(folder, lie)

        async def again() -> None:
            if server.has_ended():
                await asyncio.to_thread(server.start)

        async with Nodes(
                folder, count=2, seed=seed, program=PROGRAM, environment=environment,
                place=(server, server.url(database)),
            ) as several:  # fmt: skip
            faults = {
                "full disk": filling(place, chance, again),
                "cut": cutting(several.balancer, chance),
            }
            yield SetUp(lambda: several.port, several, faults, several.bundle)


CLUSTER = "a cluster"
"""It needs Citus, which is no part of this project."""

SETUPS: dict[str, Callable[[Path, random.Random, str], Any]] = {
    "sqlite": sqlite,
    "two nodes": lambda folder, chance, lie: nodes(folder, chance, lie, count=2),
    "three nodes": lambda folder, chance, lie: nodes(folder, chance, lie, count=3),
    CLUSTER: lambda folder, chance, lie: nodes(folder, chance, lie, count=2, workers=2),
    "failover": failover,
    "a full disk": full_sqlite,
    "a full disk of PostgreSQL": full_postgres,
}
