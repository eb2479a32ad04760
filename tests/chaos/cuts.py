"""A game over connections that are cut at any byte; no event is lost, doubled or changed.

    python tests/chaos/cuts.py 500

Frames are truncated, answers and requests are lost, bytes are delayed, requests are sent twice. The
clients reconnect; at the end their records are compared with the log.
"""

from __future__ import annotations

import asyncio
import random
import sys
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.chaos import game_under_faults
from tests.harness.bad_link import BadLink
from tests.harness.script import run
from tests.harness.server_process import ServerProcess

GAME = 250
"""Cuts after which another table is opened."""


@dataclass
class Figures(game_under_faults.Figures):
    """Figures of the games, and of the cuts."""

    cuts: int = 0
    torn: int = 0
    connections: int = 0
    games: int = 0


async def play_on_bad_links(folder: Path, *, cuts: int, seed: int) -> Figures:
    """Play until this many connections were cut; `seed` determines where."""
    figures, chance = Figures(), random.Random(seed)
    async with ServerProcess(folder) as server:
        while figures.cuts < cuts and not figures.faults:
            figures.games += 1
            async with BadLink(server.port, chance=chance) as link:
                upto = min(GAME, cuts - figures.cuts)

                async def inject_faults(
                    playing: asyncio.Task[None], link: BadLink = link, upto: int = upto
                ) -> None:
                    link.reliable = False
                    while link.cuts < upto and not await game_under_faults.ended_within(
                        playing, 0.02
                    ):
                        pass
                    link.reliable = True

                game = game_under_faults.Figures()
                await game_under_faults.play_through(
                    server, folder / f"{figures.games}", inject_faults, game, url=link.url
                )
                figures.add(game)
                figures.cuts += link.cuts
                figures.torn += link.torn
                figures.connections += link.connections
    return figures


if __name__ == "__main__":
    sys.exit(run(__doc__, play_on_bad_links, count="cuts", default=500))
