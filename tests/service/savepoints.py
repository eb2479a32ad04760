"""Helpers for the tests of stored savepoints: long tables, and loads of both kinds."""

from __future__ import annotations

from typing import Any

from dealer.game.commands import (
    Actor,
    CloseRound,
    Draw,
    OpenRound,
    StartShuffle,
    TakeSeat,
)
from dealer.service import LiveTable, Service
from dealer.service.tables.round_secret import RoundSecret
from tests.service.tables import HOST

CODES = tuple("abcdefgh")


async def settled(service: Service) -> None:
    """Wait until the savepoints that were due are written."""
    await service.log.run_when_idle(lambda connection: False)


async def signed_size(service: Service, live_table: LiveTable) -> int:
    """The size of the table's newest checkpoint."""
    newest = await service.log.newest_checkpoint(live_table.id)
    return 0 if newest is None else newest[0]


async def loaded_both_ways(service: Service, table: bytes) -> tuple[LiveTable, LiveTable]:
    """The table as loaded from its savepoint, and from its first event."""
    used = service.savepoints.used
    short = await service.loader.load(table)
    assert service.savepoints.used == used + 1
    whole = await load_whole(service, table)
    return short, whole


async def load_whole(service: Service, table: bytes) -> LiveTable:
    live_table = LiveTable(table, table.hex())
    await service.loader._fold(live_table, await service.loader._end(table))
    return live_table


def described(live_table: LiveTable) -> dict[str, Any]:
    """Everything that a load gives."""
    secret = live_table.secret
    return {
        "table": live_table.table,
        "stacks": list(live_table.table.round.stacks) if live_table.table.round else [],
        "seats": list(live_table.table.seats),
        "tree": (live_table.tree.size, live_table.tree.edge),
        "secret": (secret.round, secret.secret) if isinstance(secret, RoundSecret) else None,
        "c1": live_table.c1_root,
        "committed": live_table.committed,
        "leaf": live_table.leaf,
    }


async def long_table(service: Service) -> LiveTable:
    """A table whose savepoint is some events before its last checkpoint and its end."""
    live_table, _ = await service.open_table({"preset": "shared"})
    await service.execute(live_table, TakeSeat("Ada"))
    for _ in range(2):
        await service.execute(live_table, OpenRound(HOST, CODES, "house", 10_000, 10_000))
        await service.execute(live_table, StartShuffle(HOST))
        for _ in range(5):
            await service.execute(live_table, Draw(Actor(seat=1)))
        await service.execute(live_table, CloseRound(HOST))
    await service.execute(live_table, OpenRound(HOST, CODES, "house", 10_000, 10_000))
    await service.execute(live_table, StartShuffle(HOST))
    await service.execute(live_table, Draw(Actor(seat=1)))
    await settled(service)
    return live_table
