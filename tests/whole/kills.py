"""A game that goes on while its house is killed again and again; nothing may be lost or doubled.

    python tests/whole/kills.py 200 [--nodes 2]

At random instants of a game the process of the house gets SIGKILL and is started again, sometimes
only to be killed while it starts. The clients come back by themselves. Of several nodes any one is
killed at a time, and its guests go to another.
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
from tests.whole.house import HouseProcess
from tests.whole.nodes import Nodes, house_of
from tests.whole.script import run

INSTANT = 0.5
"""A process is killed at some instant within so many seconds after it opened, or was started."""

WHILE_STARTING = 0.2
"""How often a process is killed before it has opened."""

GAME = 50
"""After so many kills the house gets another table, lest all it does is read an old one."""


@dataclass
class Figures(ordeal.Figures):
    """Beside what the games themselves tell."""

    kills: int = 0
    of_them_while_starting: int = 0
    restarts: int = 0
    games: int = 0


async def play_while_killed(folder: Path, *, kills: int, seed: int, nodes: int = 1) -> Figures:
    """Play in `folder` until the house was killed that often; `seed` sets the instants."""
    figures, chance = Figures(), random.Random(seed)
    async with house_of(folder, nodes=nodes, seed=seed) as house:
        while figures.kills < kills and not figures.faults:
            figures.games += 1
            upto = min(kills, figures.kills + GAME)
            game = ordeal.Figures()
            trouble = partial(kill, house, kills=upto, chance=chance, figures=figures)
            await ordeal.play_through(house, folder / f"{figures.games}", trouble, game)
            figures.add(game)
    return figures


async def kill(
    house: HouseProcess | Nodes,
    playing: asyncio.Task[None],
    *,
    kills: int,
    chance: random.Random,
    figures: Figures,
) -> None:
    """Kill the house at random instants, and open it again each time."""
    while figures.kills < kills:
        if await ordeal.over(playing, chance.uniform(0, INSTANT)):
            return
        await house.kill()
        figures.kills += 1
        while figures.kills < kills and chance.random() < WHILE_STARTING:
            await house.start()
            await ordeal.over(playing, chance.uniform(0, INSTANT))
            await house.kill()
            figures.kills += 1
            figures.of_them_while_starting += 1
        await house.open()
        figures.restarts += 1


if __name__ == "__main__":
    sys.exit(run(__doc__, play_while_killed, count="kills", default=50, several=True))
