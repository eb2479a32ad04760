"""A game over lines that are cut at any byte; nothing is lost, doubled or told otherwise.

    python tests/whole/cuts.py 500

Frames are torn, answers and requests are lost, what arrives comes late, connections are begun
twice. The clients come back by themselves; in the end their records are compared with the log.
"""

from __future__ import annotations

import asyncio
import random
import sys
from dataclasses import dataclass
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.whole import ordeal
from tests.whole.house import HouseProcess
from tests.whole.proxy import BadLine
from tests.whole.script import run

GAME = 250
"""After so many cuts the house gets another table."""


@dataclass
class Figures(ordeal.Figures):
    """Beside what the games tell."""

    cuts: int = 0
    torn: int = 0
    connections: int = 0
    games: int = 0


async def play_on_bad_lines(folder: Path, *, cuts: int, seed: int) -> Figures:
    """Play until lines were cut that often; `seed` sets where."""
    figures, chance = Figures(), random.Random(seed)
    async with HouseProcess(folder) as house:
        while figures.cuts < cuts and not figures.faults:
            figures.games += 1
            async with BadLine(house.port, chance=chance) as line:
                upto = min(GAME, cuts - figures.cuts)

                async def trouble(
                    playing: asyncio.Task[None], line: BadLine = line, upto: int = upto
                ) -> None:
                    line.mended = False
                    while line.cuts < upto and not await ordeal.over(playing, 0.02):
                        pass
                    line.mended = True

                game = ordeal.Figures()
                await ordeal.play_through(
                    house, folder / f"{figures.games}", trouble, game, url=line.url
                )
                figures.add(game)
                figures.cuts += line.cuts
                figures.torn += line.torn
                figures.connections += line.connections
    return figures


if __name__ == "__main__":
    sys.exit(run(__doc__, play_on_bad_lines, count="cuts", default=500))
