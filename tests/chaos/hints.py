"""A game on two nodes whose commit notifications are lost, or doubled and out of order.

    python tests/chaos/hints.py 5

The count is the number of rounds with all notifications lost, and again with all of them doubled,
delayed and reordered. Notifications only save waiting: every client receives each event once, in
order.
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

from tests.chaos import game_under_faults
from tests.harness.nodes import Nodes
from tests.harness.script import run

RUNNER = str(Path(__file__).with_name("odd_hints.py"))
ROUNDS = "SELECT count(*) FROM event WHERE type = 'RoundClosed'"


@dataclass
class Figures(game_under_faults.Figures):
    """`hints_…` are the notifications that reached the nodes and were lost or mixed up."""

    hints_lost: int = 0
    hints_mixed: int = 0


async def play_with_bad_hints(
    folder: Path, *, rounds: int, seed: int, poll_seconds: float = 1.0
) -> Figures:
    """Play this many rounds in both ways; the nodes poll every `poll_seconds`."""
    figures = Figures()
    for how in ("lost", "mixed"):
        place = folder / how
        place.mkdir()
        program = (RUNNER, how, str(poll_seconds))
        async with Nodes(place, seed=seed, program=program) as server:
            game = game_under_faults.Figures()
            inject_faults = partial(until_played, server, rounds)
            await game_under_faults.play_through(server, place, inject_faults, game)
            figures.add(game)
        output = "".join(node.output.read_text() for node in server.nodes)
        counted = sum(map(int, re.findall(rf"hints {how}: (\d+)", output)))
        setattr(figures, f"hints_{how}", counted)
        if not counted:
            figures.faults.append(f"no hints were {how}")
    return figures


async def until_played(server: Nodes, rounds: int, playing: asyncio.Task[None]) -> None:
    """Wait until all rounds but the last are over, which the players finish."""
    while not await game_under_faults.ended_within(playing, 0.2):
        ((closed,),) = await server.ask(ROUNDS)
        if closed >= rounds - 1:
            return


if __name__ == "__main__":
    sys.exit(run(__doc__, play_with_bad_hints, count="rounds", default=5))
