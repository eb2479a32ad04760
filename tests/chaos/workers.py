"""A game on two nodes over a Citus cluster whose workers are killed and restarted, many times.

    python tests/chaos/workers.py 20

A worker is stopped like a crash, in the middle of its work. The nodes stay ready, name the worker
on `/readyz`, keep every client's connection, and recover without a restart.
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
from tests.chaos.stops import BUSY, INSTANT, STOPPED
from tests.harness.nodes import Nodes
from tests.harness.script import run
from tests.harness.server_process import PATIENT


@dataclass
class Figures(game_under_faults.Figures):
    """`named` counts how often a node named the killed worker."""

    kills: int = 0
    named: int = 0


async def play_while_workers_die(folder: Path, *, kills: int, seed: int) -> Figures:
    """Play until a worker was killed this often; `seed` determines which, and the instants."""
    figures, chance = Figures(), random.Random(seed)
    async with Nodes(folder, seed=seed, busy=BUSY, workers=2) as server:
        inject_faults = partial(kill, server, kills=kills, chance=chance, figures=figures)
        game = game_under_faults.Figures()
        await game_under_faults.play_through(server, folder, inject_faults, game)
        figures.add(game)
    return figures


async def kill(
    server: Nodes,
    playing: asyncio.Task[None],
    *,
    kills: int,
    chance: random.Random,
    figures: Figures,
) -> None:
    """Kill a worker at random instants, and start it again each time."""
    while figures.kills < kills:
        if await game_under_faults.ended_within(playing, chance.uniform(0, INSTANT)):
            return
        worker = await server.kill_worker()
        figures.kills += 1
        async with asyncio.timeout(PATIENT):
            # A node notices a worker that it has used; each does, by its projector's polls.
            while not all(worker in text for text in await server.readyz()):  # noqa: ASYNC110  another process
                await asyncio.sleep(0.05)
        figures.named += len(server.nodes)
        await game_under_faults.ended_within(playing, chance.uniform(0, STOPPED))
        await server.start_workers()
        async with asyncio.timeout(PATIENT):
            while any(worker in text for text in await server.readyz()):  # noqa: ASYNC110  another process
                await asyncio.sleep(0.05)


if __name__ == "__main__":
    sys.exit(run(__doc__, play_while_workers_die, count="kills", default=20))
