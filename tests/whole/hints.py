"""A game at two nodes that never hear of each other, or hear everything twice and out of order.

    python tests/whole/hints.py 5

The count says how many rounds are played with all hints lost, and again with all of them doubled,
late and mixed up. Hints only save waiting: every event still comes to everybody once, in order.
"""

from __future__ import annotations

import asyncio
import re
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.whole import ordeal
from tests.whole.nodes import Nodes
from tests.whole.script import run

RUNNER = str(Path(__file__).with_name("odd_hints.py"))
ROUNDS = "SELECT count(*) FROM event WHERE type = 'RoundClosed'"


@dataclass
class Figures(ordeal.Figures):
    """`hints_…` came to the nodes, and were not taken for what they were."""

    hints_lost: int = 0
    hints_mixed: int = 0


async def play_on_odd_hints(
    folder: Path, *, rounds: int, seed: int, look_seconds: float = 1.0
) -> Figures:
    """Play so many rounds in both ways; nodes look for themselves every `look_seconds`."""
    figures = Figures()
    for how in ("lost", "mixed"):
        place = folder / how
        place.mkdir()
        program = (RUNNER, how, str(look_seconds))
        async with Nodes(place, seed=seed, program=program) as house:
            game = ordeal.Figures()
            trouble = partial(until_played, house, rounds)
            await ordeal.play_through(house, place, trouble, game)
            figures.add(game)
        said = "".join(node.output.read_text() for node in house.nodes)
        counted = sum(map(int, re.findall(rf"hints {how}: (\d+)", said)))
        setattr(figures, f"hints_{how}", counted)
        if not counted:
            figures.faults.append(f"there were no hints to be {how}")
    return figures


async def until_played(house: Nodes, rounds: int, playing: asyncio.Task[None]) -> None:
    """Wait until all rounds but the last are over; that one the players finish."""
    while not await ordeal.over(playing, 0.2):
        ((closed,),) = await house.ask(ROUNDS)
        if closed >= rounds - 1:
            return


if __name__ == "__main__":
    sys.exit(run(__doc__, play_on_odd_hints, count="rounds", default=5))
