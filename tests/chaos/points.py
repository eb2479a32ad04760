"""The server is killed at every named point of its code in turn; nothing may be lost.

    python tests/chaos/points.py 1

The count is the number of passes through all points. With DEALER_COMMIT=loop in the environment the
event loop's thread commits, with =thread the writer thread. The process sends itself SIGKILL at the
point (`dies_at.py`). Then its files are checked, a new server opens them, and the game continues.
At the end the records of all clients are compared with the log.
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
from tests.chaos.named_points import ALL, DRAINING, PLAYING, REBUILDING, STARTING, Point
from tests.harness.database_check import CheckResult, check_copy, check_files
from tests.harness.script import run
from tests.harness.server_process import PATIENT, ROOT, ServerProcess

TRIES, TRY_SECONDS = 5, 5.0
"""Attempts and seconds each for a point that not every game reaches."""

RUNNER = str(Path(__file__).parents[1].joinpath("harness", "dies_at.py"))


@dataclass
class Figures(game_under_faults.Figures):
    """Figures of the game, the number of `points`, and of deaths."""

    points: int = 0
    deaths: int = 0
    files_checked: int = 0


async def die_at_points(
    folder: Path, *, times: int, seed: int, names: Sequence[str] = tuple(ALL)
) -> Figures:
    """Go through the points with these names this often; `seed` determines at which pass."""
    figures, chance = Figures(points=len(names)), random.Random(seed)
    for number in range(times):
        await die_starting(folder / f"starts{number}", names, figures)
        inject_faults = partial(dying, folder / f"found{number}", names, chance, figures)
        async with ServerProcess(folder, name=f"server{number}") as server:
            game = game_under_faults.Figures()
            await game_under_faults.play_through(
                server, folder / f"game{number}", partial(inject_faults, server), game
            )
            figures.add(game)
        note(figures, "in the end", await check_copy(server.database, copy_to=folder / "end"))
    return figures


async def die_starting(folder: Path, names: Sequence[str], figures: Figures) -> None:
    """Servers die before they are ready; the next one opens the files that they left."""
    for number, name in enumerate(name for name in names if name in STARTING):
        place = folder / str(number)
        place.mkdir(parents=True)
        server = ServerProcess(place)
        await start_dying(server, STARTING[name], 1)
        await died(server, name, figures)
        note(figures, name, await check_files(server.database))


async def dying(
    folder: Path,
    names: Sequence[str],
    chance: random.Random,
    figures: Figures,
    server: ServerProcess,
    playing: asyncio.Task[None],
) -> None:
    """Have the server die at each point in turn; then a rebuild next to a running one."""
    await server.kill()
    for name in names:
        if playing.done():
            return
        if name in PLAYING:
            await die_playing(server, name, chance, figures)
        elif name in DRAINING:
            await start_dying(server, DRAINING[name], 1)
            await server.ready()
            await game_under_faults.ended_within(playing, chance.uniform(0.1, 0.4))
            server.terminate()
            await died(server, name, figures)
        else:
            continue
        note(figures, name, await check_copy(server.database, copy_to=folder))
    await server.open()
    for name in names:
        if name in REBUILDING:
            await rebuild_and_die(server, name, figures)


async def die_playing(
    server: ServerProcess, name: str, chance: random.Random, figures: Figures
) -> None:
    point = PLAYING[name]
    if not point.after:
        await start_dying(server, point, chance.randint(1, point.often))
        await died(server, name, figures)
        return
    for _ in range(TRIES):
        await die_playing(server, point.after, chance, figures)
        await start_dying(server, point, 1)
        with suppress(TimeoutError):
            async with asyncio.timeout(TRY_SECONDS):
                await died(server, name, figures)
                return
        await server.kill()
    raise AssertionError(f"the server did not reach {name!r}")


async def start_dying(server: ServerProcess, point: Point, nth_pass: int) -> None:
    """Start a server that will die there; the one after it is an ordinary server again."""
    ordinary = server.program, server.environment
    server.program = (RUNNER, point.function, point.place, str(nth_pass))
    if point.commit:
        server.environment = server.environment | {"DEALER_COMMIT": point.commit}
    try:
        await server.start()
    finally:
        server.program, server.environment = ordinary


async def died(server: ServerProcess, name: str, figures: Figures) -> None:
    """Wait for its death; raises TimeoutError, with the name, at a point that is not reached."""
    try:
        code = await server.ended()
    except TimeoutError as error:
        raise TimeoutError(f"the server did not reach {name!r}") from error
    assert code == -signal.SIGKILL, f"{name}: {code}, {server.output.read_text()[-2000:]}"
    figures.deaths += 1


def note(figures: Figures, name: str, found: CheckResult) -> None:
    figures.files_checked += 1
    figures.faults += [f"{name}: {fault}" for fault in found.faults]


async def rebuild_and_die(server: ServerProcess, name: str, figures: Figures) -> None:
    """A rebuild dies next to the running server; the next rebuild finds the rows unchanged."""
    point = REBUILDING[name]
    arguments = (RUNNER, point.function, point.place, str(point.often))
    code, _ = await rebuild(server, arguments)
    assert code == -signal.SIGKILL, f"{name}: the rebuild ended with {code}"
    figures.deaths += 1
    code, output = await rebuild(server, ("-m", "dealer"))
    if code or json.loads(output)["different"]:
        figures.faults.append(f"{name}: the next rebuild ended with {code} and {output!r}")


async def rebuild(server: ServerProcess, program: Sequence[str]) -> tuple[int | None, bytes]:
    arguments = (*program, "rebuild", "--json", "--database", server.address)
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(PATIENT):
        output, _ = await process.communicate()
    return process.returncode, output


if __name__ == "__main__":
    sys.exit(run(__doc__, die_at_points, count="times", default=1))
