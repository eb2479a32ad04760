"""Memory of a table, in KiB: `python tests/bench/memory.py [tables]`.

A server in its own process grows by tables at which four seats draw 100 cards, with the connections
of host and seats; what idle connections take is measured in another one, and subtracted. SQLite's
page cache, which grows to its bound whatever is kept in memory, is made small. It prints all at its
end, after some minutes. The parts are those of one table in this process, by owner: the sum of
`sys.getsizeof` of the objects that no other table refers to, without the memory of C libraries.
"""

from __future__ import annotations

import asyncio
import gc
import sys
import tempfile
import types
from collections.abc import Iterable
from typing import Any

import load
from draw import Client, _table
from server import LIMITS, alone

from dealer.gateway.server import Gateway
from dealer.service import LiveTable, Service
from dealer.service.build import open_service

TABLES = 300
SEATS = 4
DRAWS = 100
DECK = 52
WARM = 20
KIB = 1024

_SHARED = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, Client, Gateway)


# In a server


async def _play(host: str, port: int) -> list[load.LoadClient]:
    """Draw 100 cards at a new table; the connections of its host and its seats."""
    first = await load.LoadClient.connect(host, port)
    table = str((await first.call("table.open", rules={"preset": "free"}))["table"])
    seats = [await load.LoadClient.connect(host, port) for _ in range(SEATS)]
    for number, client in enumerate(seats):
        await client.call("table.join", table=table, name=f"player {number}")
    for drawn in range(DRAWS):
        if drawn % DECK == 0:
            if drawn:
                await first.call("round.close", table=table)
            await first.call("round.open", table=table, entropy="house")
            await first.call("deck.shuffle", table=table)
        await seats[drawn % SEATS].call("deck.draw", table=table)
    return [first, *seats]


async def _settled(pid: int) -> int:
    """The memory of a process, once it has used no processor time worth mentioning for a second."""
    before, now = -1.0, load.cpu_times(pid)[1]
    while now - before > 0.02:
        await asyncio.sleep(1)
        before, now = now, load.cpu_times(pid)[1]
    return load.memory(pid)


async def _tables(port: int, pid: int, *, tables: int) -> float:
    """KiB a table, with its connections."""
    clients = [await _play("127.0.0.1", port) for _ in range(WARM)]
    before = await _settled(pid)
    for _ in range(tables):
        clients.append(await _play("127.0.0.1", port))
    return (await _settled(pid) - before) / tables / KIB


async def _connections(port: int, pid: int, *, connections: int) -> float:
    """KiB a connection that was used once."""
    clients = [await load.LoadClient.connect("127.0.0.1", port) for _ in range(WARM)]
    before = await _settled(pid)
    for _ in range(connections):
        clients.append(await load.LoadClient.connect("127.0.0.1", port))
        await clients[-1].call("ping")
    return (await _settled(pid) - before) / connections / KIB


# The parts


def _reachable(roots: Iterable[Any], seen: dict[int, int], stop: tuple[type, ...]) -> set[int]:
    """The ids of all objects that the roots refer to; their sizes are added to `seen`."""
    found, waiting = set(), list(roots)
    while waiting:
        one = waiting.pop()
        if id(one) in found or isinstance(one, (*_SHARED, *stop)):
            continue
        found.add(id(one))
        seen[id(one)] = sys.getsizeof(one)
        waiting.extend(gc.get_referents(one))
    return found


def _owners(service: Service, live: LiveTable, number: int) -> dict[str, list[Any]]:
    assert service.projection is not None
    projector = service.projection.projector._streams
    cached = projector._cached[number]
    return {
        "state": [live.table],
        "tree": [live.tree],
        "round's secret": [live.secret],
        "savepoint": [live.savepoint],
        "recent events": [service.recent._rings.get(live.id)],
        "commands": [live.stored_commands],
        "projector: state": [cached.table],
        "the rest of the table": [
            getattr(live, name)
            for name in LiveTable.__slots__
            if name not in ("subscribers", "timer", "chain")
        ],
    }


async def _parts() -> list[tuple[str, float]]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        async with open_service(f"sqlite:///{folder}/bench.db", synchronous="NORMAL") as service:
            gateway = Gateway(service, limits=LIMITS)
            for _ in range(3):
                await _draw_all(gateway)
            assert service.projection is not None
            await service.projection.up_to_date()
            found = _measured(service)
            await gateway.context.tasks.close()
    return found


async def _draw_all(gateway: Gateway) -> None:
    table, host, players = await _table(gateway)
    for drawn in range(DRAWS):
        if drawn % DECK == 0:
            if drawn:
                await host.call("round.close", table)
            await host.call("round.open", f'{table},"entropy":"house"')
            await host.call("deck.shuffle", table)
        await players[drawn % SEATS].call("deck.draw", f'{table},"count":1')


def _measured(service: Service) -> list[tuple[str, float]]:
    gc.collect()
    lives = list(service.tables)
    sizes: dict[int, int] = {}
    others: set[int] = set()
    for number, live in enumerate(lives[:-1], 1):
        for roots in _owners(service, live, number).values():
            others |= _reachable(roots, sizes, (LiveTable, Service))
    rows, counted = [], set(others)
    for owner, roots in _owners(service, lives[-1], len(lives)).items():
        new = _reachable(roots, sizes, (LiveTable, Service)) - counted
        counted |= new
        rows.append((owner, sum(sizes[each] for each in new) / KIB))
    rows.append(("estimate of the table cache", lives[-1].size() / KIB))
    return rows


def measure(*, tables: int = TABLES) -> list[dict[str, Any]]:
    """Rows of name, figure and unit."""
    with alone("", "256") as (_, port, process):
        table = asyncio.run(_tables(port, process.pid, tables=tables))
    with alone("", "256") as (_, port, process):
        idle = asyncio.run(_connections(port, process.pid, connections=1000))
    rows = [
        (f"memory a table, of {tables}, with {1 + SEATS} connections", table),
        ("memory a connection, of 1000, idle", idle),
        ("memory a table, without connections", table - (1 + SEATS) * idle),
        *((f"of one table: {owner}", size) for owner, size in asyncio.run(_parts())),
    ]
    return [{"name": name, "figure": figure, "unit": "KiB"} for name, figure in rows]


if __name__ == "__main__":
    for row in measure(tables=int(sys.argv[1]) if len(sys.argv) > 1 else TABLES):
        print(f"{row['name']:60} {row['figure']:8.2f} {row['unit']}")
