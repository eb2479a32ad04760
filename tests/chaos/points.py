"""Kills the server at every named point of its code, one after the other; nothing may be lost.

    python tests/chaos/points.py 1

The count is the number of passes through all points. The process sends itself SIGKILL at the point
(`dies_at.py`). Then its files are checked, a new server opens them, and the game goes on; at the
end all clients' records are compared with the log.
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
from typing import NamedTuple

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.chaos import game_under_faults
from tests.harness.database_check import CheckResult, check_copy, check_files
from tests.harness.script import run
from tests.harness.server_process import PATIENT, ROOT, ServerProcess

TRIES, TRY_SECONDS = 5, 5.0
"""Attempts and seconds each for a point that not every game reaches."""

RUNNER = str(Path(__file__).parents[1].joinpath("harness", "dies_at.py"))


class Point(NamedTuple):
    """A position in a function, for `dies_at.py`; reached at least `often` times in a game.

    `after` names another point: only a server that follows one that died there reaches this one,
    and not always, since the interrupted append may not have been a command.
    """

    function: str
    place: str
    often: int = 1
    after: str = ""


FIRST_DAY = {
    "before the database is opened": Point(
        "dealer.eventlog.sqlite.store:SqliteStore.open", "begin"
    ),
    "in WAL mode, and empty": Point("dealer.eventlog.migrate:upgrade", "begin"),
    "in the first migration": Point("dealer.eventlog.migrate:upgrade", "before CREATE TABLE event"),
    "between two migrations": Point(
        "dealer.eventlog.migrate:upgrade", "after INSERT INTO alembic_version"
    ),
    "before the migrations' COMMIT": Point(
        "dealer.eventlog.sqlite.store:SqliteStore._transaction", "before COMMIT"
    ),
    "after the migrations' COMMIT": Point(
        "dealer.eventlog.sqlite.store:SqliteStore._transaction", "after COMMIT"
    ),
    "the write-ahead log is grown": Point("dealer.eventlog.sqlite.store:SqliteStore._grow", "end"),
    "the key is drafted": Point("dealer.eventlog.key_file:make", "call os:link"),
    "the key hangs beside its draft": Point("dealer.eventlog.key_file:make", "call os:unlink"),
    "the key hangs, the database has no check of it": Point(
        "dealer.eventlog.log:Log.put_metadata", "begin"
    ),
    "the mark is there, and blank": Point(
        "dealer.eventlog.high_water_mark:HighWaterMark.begin", "begin"
    ),
}
"""Reached while a server opens for the first time."""

APPEND = "dealer.eventlog.sqlite.store:SqliteStore.append"
RUN = "dealer.eventlog.sqlite.store:SqliteStore.run"
SLICE = "dealer.projector.runner:Projector.slice"

PLAYING = {
    "a table has been loaded": Point("dealer.service.loading:Loader.load", "end"),
    "a command is judged": Point("dealer.service.executor:CommandExecutor.decide", "begin", 5),
    "before append": Point("dealer.eventlog.log:Log.submit", "begin", 5),
    "after it lies on the processor": Point("dealer.eventlog.log:Log.submit", "end", 5),
    "before BEGIN": Point(APPEND, "begin", 5),
    "after BEGIN": Point(APPEND, "after BEGIN", 5),
    "before the head moves": Point(APPEND, "before UPDATE stream", 5),
    "the head moved, no event there": Point(APPEND, "before INSERT INTO event", 5),
    "the events there": Point(APPEND, "after INSERT INTO event", 5),
    "before a checkpoint's signing": Point("dealer.proof.checkpoint:Signer.sign", "begin", 3),
    "after a checkpoint's signing": Point("dealer.proof.checkpoint:Signer.sign", "end", 3),
    "between the events and their checkpoint": Point(
        "dealer.eventlog.sqlite.batch:_note", "begin", 3
    ),
    "after a checkpoint's writing": Point("dealer.eventlog.sqlite.batch:_note", "end", 3),
    "before a checkpoint that was asked for": Point(
        "dealer.eventlog.log:Log.put_checkpoint", "begin"
    ),
    "a player's cosignature is in": Point("dealer.service.service:Service.cosign", "end", 3),
    "before COMMIT": Point(APPEND, "before COMMIT", 5),
    "after COMMIT": Point(APPEND, "after COMMIT", 5),
    "before the commit is in the mark": Point(
        "dealer.eventlog.high_water_mark:HighWaterMark.wrote", "begin", 5
    ),
    "the commit is in the mark": Point(
        "dealer.eventlog.high_water_mark:HighWaterMark.wrote", "end", 5
    ),
    "after COMMIT, on the loop": Point(
        "dealer.service.command_processor:CommandProcessor._append_committed", "begin", 5
    ),
    "a command is heard again": Point(
        "dealer.service.duplicates:DuplicateCommands.answer",
        "begin",
        after="after COMMIT, on the loop",
    ),
    "before push": Point("dealer.gateway.push.broadcaster:Broadcaster.publish", "begin", 5),
    "after push, before reply": Point(
        "dealer.gateway.push.broadcaster:Broadcaster.publish", "end", 5
    ),
    "after reply": Point("dealer.gateway.rpc.dispatcher:Dispatcher._on_outcome", "end", 5),
    "after reply, before the next one's push": Point(
        "dealer.service.command_processor:CommandProcessor._append_committed", "end", 5
    ),
    "the events a client missed are read": Point(
        "dealer.gateway.push.backlog:Backlog._send_next", "begin"
    ),
    "a client is up to date": Point(
        "dealer.gateway.push.broadcaster:Broadcaster._catch_up_task", "end", 2
    ),
    "the round's secret is drawn": Point(
        "dealer.service.executor:CommandExecutor._draw_secret", "end"
    ),
    "before a shuffle is carried out": Point(
        "dealer.service.executor:CommandExecutor._finish", "begin", 2
    ),
    "after a shuffle is carried out": Point(
        "dealer.service.executor:CommandExecutor._finish", "end", 2
    ),
    "before projection": Point(SLICE, "begin", 2),
    "in the middle of projection": Point(
        "dealer.projector.writer:ReadModelWriter.write", "after INSERT", 3
    ),
    "between projection and its mark": Point(SLICE, "before UPDATE stream SET projected"),
    "after projection's mark": Point(SLICE, "after UPDATE stream SET projected"),
    "before projection's COMMIT": Point(RUN, "before COMMIT", 2),
    "after projection's COMMIT": Point(RUN, "after COMMIT", 2),
}
"""Reached while four clients play."""

DRAINING = {
    "told to close": Point("dealer.gateway.server:Gateway.drain", "begin"),
    "the clients know": Point("dealer.gateway.server:Gateway._announce_drain", "end"),
    "goodbye is said": Point("dealer.gateway.ws.admission:ConnectionRegistry.close_all", "end"),
    "the tables are let go of": Point("dealer.service.service:Service.close", "end"),
    "before the log is closed": Point("dealer.eventlog.log:Log.close", "begin"),
    "after the log is closed": Point("dealer.eventlog.log:Log.close", "end"),
}
"""Reached after SIGTERM, in the middle of a game."""

REBUILD = "dealer.projector.rebuild:Rebuild"

REBUILDING = {
    "the new read models are prepared": Point(f"{REBUILD}._prepare", "end"),
    "some events are replayed": Point(f"{REBUILD}._write", "end"),
    "before the swap": Point(f"{REBUILD}._swap", "begin"),
    "in the swap, half gone": Point(f"{REBUILD}._swap", "before ALTER TABLE", 4),
    "in the swap, before the mark": Point(f"{REBUILD}._swap", "before UPDATE stream"),
    "after the swap, before COMMIT": Point(f"{REBUILD}._swap", "end"),
}
"""Reached by `dealer rebuild`, in its own process next to the running server."""

ALL = FIRST_DAY | PLAYING | DRAINING | REBUILDING


@dataclass
class Figures(game_under_faults.Figures):
    """Figures of the game, the number of `points`, and of deaths."""

    points: int = 0
    deaths: int = 0
    files_looked_at: int = 0


async def die_everywhere(
    folder: Path, *, times: int, seed: int, names: Sequence[str] = tuple(ALL)
) -> Figures:
    """Go through the points with these names this often; `seed` determines at which passing."""
    figures, chance = Figures(points=len(names)), random.Random(seed)
    for number in range(times):
        await first_days(folder / f"days{number}", names, figures)
        inject_faults = partial(dying, folder / f"found{number}", names, chance, figures)
        async with ServerProcess(folder, name=f"server{number}") as server:
            game = game_under_faults.Figures()
            await game_under_faults.play_through(
                server, folder / f"game{number}", partial(inject_faults, server), game
            )
            figures.add(game)
        note(figures, "in the end", await check_copy(server.database, copy_to=folder / "end"))
    return figures


async def first_days(folder: Path, names: Sequence[str], figures: Figures) -> None:
    """Servers that die before they were ever ready; the next one opens the files they left."""
    for number, name in enumerate(name for name in names if name in FIRST_DAY):
        place = folder / str(number)
        place.mkdir(parents=True)
        server = ServerProcess(place)
        await start_doomed(server, FIRST_DAY[name], 1)
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
            await start_doomed(server, DRAINING[name], 1)
            await server.ready()
            await game_under_faults.over(playing, chance.uniform(0.1, 0.4))
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
        await start_doomed(server, point, chance.randint(1, point.often))
        await died(server, name, figures)
        return
    for _ in range(TRIES):
        await die_playing(server, point.after, chance, figures)
        await start_doomed(server, point, 1)
        with suppress(TimeoutError):
            async with asyncio.timeout(TRY_SECONDS):
                await died(server, name, figures)
                return
        await server.kill()
    raise AssertionError(f"the server did not reach {name!r}")


async def start_doomed(server: ServerProcess, point: Point, passing: int) -> None:
    """Start a server that will die there; the one after it is an ordinary server again."""
    ordinary = server.program
    server.program = (RUNNER, point.function, point.place, str(passing))
    try:
        await server.start()
    finally:
        server.program = ordinary


async def died(server: ServerProcess, name: str, figures: Figures) -> None:
    """Wait for its death; raises TimeoutError at a point that is never reached."""
    code = await server.ended()
    assert code == -signal.SIGKILL, f"{name}: {code}, {server.output.read_text()[-2000:]}"
    figures.deaths += 1


def note(figures: Figures, name: str, found: CheckResult) -> None:
    figures.files_looked_at += 1
    figures.faults += [f"{name}: {fault}" for fault in found.faults]


async def rebuild_and_die(server: ServerProcess, name: str, figures: Figures) -> None:
    """A rebuild dies next to the running server; the next rebuild finds the rows unchanged."""
    point = REBUILDING[name]
    arguments = (RUNNER, point.function, point.place, str(point.often))
    code, _ = await rebuild(server, arguments)
    assert code == -signal.SIGKILL, f"{name}: the rebuild ended with {code}"
    figures.deaths += 1
    code, said = await rebuild(server, ("-m", "dealer.cli"))
    if code or json.loads(said)["different"]:
        figures.faults.append(f"{name}: the next rebuild ended with {code} and {said!r}")


async def rebuild(server: ServerProcess, program: Sequence[str]) -> tuple[int | None, bytes]:
    arguments = (*program, "rebuild", "--json", "--database", server.address)
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(PATIENT):
        said, _ = await process.communicate()
    return process.returncode, said


if __name__ == "__main__":
    sys.exit(run(__doc__, die_everywhere, count="times", default=1))
