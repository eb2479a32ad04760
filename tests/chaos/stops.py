"""A game on two nodes whose database server is stopped immediately and restarted, many times.

    python tests/chaos/stops.py 20

`pg_ctl stop -m immediate` ends the server like a crash, in the middle of its work. The nodes must
report that they are not ready, keep every client's connection, and recover without a restart.
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

from tests.chaos import game_under_faults
from tests.harness.nodes import Nodes
from tests.harness.script import run

INSTANT = 0.7
"""Most seconds between a start of the server and the next stop."""

STOPPED = 2.5
"""Most seconds that the server stays stopped."""

BUSY = 1
"""Seconds for which the nodes let requests wait; later ones are refused as unavailable."""


@dataclass
class Figures(game_under_faults.Figures):
    """`connections` are those of the clients; `unready` counts each node at each stop."""

    stops: int = 0
    unready: int = 0
    connections: int = 0
    connections_cut: int = 0


async def play_while_stopped(folder: Path, *, stops: int, seed: int) -> Figures:
    """Play until the server was stopped this often; `seed` determines the instants."""
    figures, chance = Figures(), random.Random(seed)
    async with Nodes(folder, seed=seed, busy=BUSY) as server:
        inject_faults = partial(stop, server, stops=stops, chance=chance, figures=figures)
        game = game_under_faults.Figures()
        await game_under_faults.play_through(server, folder, inject_faults, game)
        figures.add(game)
    if figures.connections_cut:
        figures.faults.append(f"{figures.connections_cut} connections were not kept")
    return figures


async def stop(
    server: Nodes,
    playing: asyncio.Task[None],
    *,
    stops: int,
    chance: random.Random,
    figures: Figures,
) -> None:
    """Stop the server at random instants, and start it again each time."""
    while figures.stops < stops:
        if await game_under_faults.ended_within(playing, chance.uniform(0, INSTANT)):
            return
        cut = server.balancer.cut  # by clients that move to the address of their table
        await server.stop_server()
        figures.stops += 1
        figures.unready += await server.all_unready()
        await game_under_faults.ended_within(playing, chance.uniform(0, STOPPED))
        await server.start_server()
        await server.all_ready()
        figures.connections = server.balancer.connections
        figures.connections_cut += server.balancer.cut - cut


if __name__ == "__main__":
    sys.exit(run(__doc__, play_while_stopped, count="stops", default=20))
