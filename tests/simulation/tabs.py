"""A client's second connection with the same tokens, while its first one is open.

As from another tab or another device, or where a handshake was delivered twice. The server closes
the older connection of a seat; a host may have several. Each receives every version.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import TYPE_CHECKING

from dealer.client import RemoteTable, connect
from dealer.errors import HouseUnreachable, SessionEnded

if TYPE_CHECKING:
    from tests.simulation.player import Player


async def open_tabs(player: Player, random: Random) -> None:
    """Open one or two more connections at once, and close them after some seconds."""
    table = await player.at_table()
    tabs = (
        _tab(player, table, random.random() * 2, shared=random.random() < 0.5)
        for _ in range(random.choice((1, 1, 2)))
    )
    await asyncio.gather(*tabs)


async def _tab(player: Player, first: RemoteTable, seconds: float, *, shared: bool) -> None:
    """One connection; with `shared` it has the store of the first, as tabs of a browser do."""
    world, record = player.world, first._session.store.record
    house = connect("ws://house/ws", name=player.name, patience=player.patience)
    if shared and player.house is not None:
        house._store = player.house._store
    world.witness.follow(player.name, house)
    try:
        await house._connection.start()
        if record.get("token"):
            table = await house.resume(first.id, token=record["token"])
        else:
            house._store.table(first.id).update(host_token=record.get("host_token"))
            table = await house.watch(first.id)
        await asyncio.sleep(seconds)
        head = len(world.witness.log.get(first.id, ()))
        await table.until(lambda table: table.version >= head or table.closed)
        world.seen("tab up to date")
    except (HouseUnreachable, SessionEnded) as error:
        world.seen(f"tab {type(error).__name__}")
    finally:
        await house.close()
