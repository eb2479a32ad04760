"""Kills one of two nodes at every named point that only PostgreSQL nodes reach.

    python tests/chaos/node_points.py 1

The count is the number of passes through all points, which are as in `points.py`. The other node
continues, and the clients reconnect to it. At the end the read models are also
compared with the log.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.chaos import game_under_faults
from tests.chaos.named_points import Point
from tests.chaos.points import RUNNER
from tests.harness.nodes import Nodes
from tests.harness.script import run
from tests.harness.server_process import ROOT

BATCH = "dealer.eventlog.postgres.batch"
SLICE = "dealer.projector.runner:Projector.slice"

POINTS = {
    "before a batch": Point("dealer.eventlog.postgres.store:PostgresStore.append", "begin", 5),
    "before the statement that is its own COMMIT": Point(
        f"{BATCH}:Batch._write_together", "begin", 5
    ),
    "after COMMIT, before any notice": Point(f"{BATCH}:Batch._write_together", "end", 5),
    "one by one, before BEGIN": Point(f"{BATCH}:Batch._write_singly", "begin", 2),
    "one by one, written and not committed": Point(f"{BATCH}:_write_one", "end", 2),
    "one by one, after COMMIT": Point(f"{BATCH}:Batch._write_singly", "end", 2),
    "the commit is in the mark": Point(
        "dealer.eventlog.high_water_mark:HighWaterMark.wrote", "end", 5
    ),
    "after COMMIT, on the loop": Point(
        "dealer.service.commands.processor:CommandProcessor.on_result", "begin", 5
    ),
    "after push, before reply": Point(
        "dealer.gateway.push.broadcaster:Broadcaster.publish", "end", 5
    ),
    "before a checkpoint's signing": Point("dealer.proof.checkpoint:Signer.sign", "begin", 3),
    "after a checkpoint's signing": Point("dealer.proof.checkpoint:Signer.sign", "end", 3),
    "another node appended first": Point(
        "dealer.service.commands.table_lifecycle:TableLifecycle._reload", "begin"
    ),
    "the other's events are read": Point("dealer.service.tables.loading:Loader.advance", "end"),
    "a hint arrives": Point("dealer.eventlog.postgres.reader:Notifier._on_hint", "begin", 3),
    "in the middle of projection": Point(
        "dealer.projector.changes:ReadModelWriter.write", "begin", 2
    ),
    "between the read models and their mark": Point(SLICE, "before SELECT * FROM advance_streams"),
    "marked and not committed": Point(SLICE, "end"),
    "after projection's COMMIT": Point("dealer.eventlog.postgres.store:PostgresStore.run", "end"),
}
"""Reached by a node that takes part in a game of four players and a spectator."""


@dataclass
class Figures(game_under_faults.Figures):
    """Figures of the game, and of the deaths."""

    points: int = 0
    deaths: int = 0
    read_models_differ: int = 0


async def die_on_postgres(
    folder: Path, *, times: int, seed: int, names: Sequence[str] = tuple(POINTS)
) -> Figures:
    """Go through the points with these names this often; `seed` determines at which pass."""
    figures, chance = Figures(points=len(names)), random.Random(seed)
    async with Nodes(folder, seed=seed) as server:
        game = game_under_faults.Figures()
        inject_faults = partial(die, server, [*names] * times, chance, figures)
        await game_under_faults.play_through(server, folder, inject_faults, game)
        figures.add(game)
        figures.read_models_differ = await differences(server)
    if figures.read_models_differ:
        figures.faults.append("the read models differ from the log")
    return figures


async def die(
    server: Nodes,
    names: Sequence[str],
    chance: random.Random,
    figures: Figures,
    playing: asyncio.Task[None],
) -> None:
    """Have either node die at each point in turn, and start it again."""
    for name in names:
        point, node = POINTS[name], chance.choice(server.nodes)
        await node.kill()
        ordinary = node.program
        nth_pass = chance.randint(1, point.often)
        node.program = (RUNNER, point.function, point.place, str(nth_pass))
        try:
            await node.start()
        finally:
            node.program = ordinary
        with suppress(AssertionError):  # at some points it dies before it is ready
            await node.ready()
            await server.balancer.spread()
        ended = asyncio.create_task(node.ended())
        await asyncio.wait((ended, playing), return_when=asyncio.FIRST_COMPLETED)
        if not ended.done():
            ended.cancel()
            return
        code = await ended
        assert code == -signal.SIGKILL, f"{name}: {code}, {node.output.read_text()[-2000:]}"
        figures.deaths += 1
        await node.open()
        await server.balancer.spread()


async def differences(server: Nodes) -> int:
    """Rows of the read models that `dealer rebuild` finds to differ from the log."""
    arguments = ("-m", "dealer", "rebuild", "--json", "--database", server.address)
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    output, _ = await process.communicate()
    assert process.returncode in (0, 1), process.returncode
    return int(json.loads(output)["different"])


if __name__ == "__main__":
    sys.exit(run(__doc__, die_on_postgres, count="times", default=1))
