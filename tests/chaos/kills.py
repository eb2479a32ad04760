"""A game during which the server is killed repeatedly; nothing may be lost or doubled.

    python tests/chaos/kills.py 200 [--nodes 2]

At random instants of a game the server process gets SIGKILL and is started again, sometimes to be
killed while it starts. The clients reconnect. Of several nodes any one is killed at a time, and its
clients reconnect to another.
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
from tests.harness.nodes import Nodes, open_server
from tests.harness.script import run
from tests.harness.server_process import ServerProcess

INSTANT = 0.5
"""Most seconds between the start of a process, or the end of it, and the next kill."""

WHILE_STARTING = 0.2
"""Probability that a process is killed before it is ready."""

GAME = 50
"""Kills after which another table is opened, so that restarts do not only replay an old one."""


@dataclass
class Figures(game_under_faults.Figures):
    """Figures of the games, and of the kills."""

    kills: int = 0
    of_them_while_starting: int = 0
    restarts: int = 0
    games: int = 0


async def play_while_killed(folder: Path, *, kills: int, seed: int, nodes: int = 1) -> Figures:
    """Play in `folder` until the server was killed this often; `seed` determines the instants."""
    figures, chance = Figures(), random.Random(seed)
    async with open_server(folder, nodes=nodes, seed=seed) as server:
        while figures.kills < kills and not figures.faults:
            figures.games += 1
            upto = min(kills, figures.kills + GAME)
            game = game_under_faults.Figures()
            inject_faults = partial(kill, server, kills=upto, chance=chance, figures=figures)
            await game_under_faults.play_through(
                server, folder / f"{figures.games}", inject_faults, game
            )
            figures.add(game)
    return figures


async def kill(
    server: ServerProcess | Nodes,
    playing: asyncio.Task[None],
    *,
    kills: int,
    chance: random.Random,
    figures: Figures,
) -> None:
    """Kill the server at random instants, and start it again each time."""
    while figures.kills < kills:
        if await game_under_faults.ended_within(playing, chance.uniform(0, INSTANT)):
            return
        await server.kill()
        figures.kills += 1
        while figures.kills < kills and chance.random() < WHILE_STARTING:
            await server.start()
            await game_under_faults.ended_within(playing, chance.uniform(0, INSTANT))
            await server.kill()
            figures.kills += 1
            figures.of_them_while_starting += 1
        await server.open()
        figures.restarts += 1


if __name__ == "__main__":
    sys.exit(run(__doc__, play_while_killed, count="kills", default=50, several=True))
