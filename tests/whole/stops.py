"""A game at two nodes whose database server is stopped at once and started again, many times.

    python tests/whole/stops.py 20

`pg_ctl stop -m immediate` ends the server as a crash would, in the middle of whatever it does. The
nodes have to say that they are not ready, keep every guest's connection, and go on by themselves.
"""

from __future__ import annotations

import asyncio
import random
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.whole import ordeal
from tests.whole.nodes import Nodes
from tests.whole.script import run

INSTANT = 0.7
"""The server is stopped at some instant within so many seconds after it was there again."""

AWAY = 2.5
"""It stays away for so many seconds at the most."""

BUSY = 1
"""For so many seconds the nodes let wait what is asked; later they refuse it as unavailable."""


@dataclass
class Figures(ordeal.Figures):
    """`connections` are those of the guests; `said_unready` counts each node at each stop."""

    stops: int = 0
    said_unready: int = 0
    connections: int = 0
    connections_cut: int = 0


async def play_while_stopped(folder: Path, *, stops: int, seed: int) -> Figures:
    """Play until the server was stopped that often; `seed` sets the instants."""
    figures, chance = Figures(), random.Random(seed)
    async with Nodes(folder, seed=seed, busy=BUSY) as house:
        trouble = partial(stop, house, stops=stops, chance=chance, figures=figures)
        game = ordeal.Figures()
        await ordeal.play_through(house, folder, trouble, game)
        figures.add(game)
    if figures.connections_cut:
        figures.faults.append(f"{figures.connections_cut} connections were not kept")
    return figures


async def stop(
    house: Nodes,
    playing: asyncio.Task[None],
    *,
    stops: int,
    chance: random.Random,
    figures: Figures,
) -> None:
    """Stop the server at random instants, and start it again each time."""
    while figures.stops < stops:
        if await ordeal.over(playing, chance.uniform(0, INSTANT)):
            return
        await house.stop_server()
        figures.stops += 1
        ready = await asyncio.gather(*(node.is_ready() for node in house.nodes))
        figures.said_unready += ready.count(False)
        if any(ready):
            figures.faults.append("a node said that it was ready while its database was away")
        await ordeal.over(playing, chance.uniform(0, AWAY))
        await house.start_server()
        await house.all_ready()
        figures.connections, figures.connections_cut = house.switch.connections, house.switch.cut


if __name__ == "__main__":
    sys.exit(run(__doc__, play_while_stopped, count="stops", default=20))
