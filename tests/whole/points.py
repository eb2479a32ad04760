"""A house dies at every named point of its code, one after the other, and nothing is lost by it.

    python tests/whole/points.py 1

The count says how often the whole table is gone through. Each death is `kill -9` by the process's
own hand, at the point and nowhere else (`dies_at.py`). Then its files are looked at, a new house
opens on them, and the game goes on; in the end everybody's records are compared with the log.
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

from tests.whole import ordeal
from tests.whole.found import Found, find, look_into
from tests.whole.house import PATIENT, ROOT, HouseProcess
from tests.whole.script import run

TRIES, TRY_SECONDS = 5, 5.0
"""For a point that not every game comes by."""

RUNNER = str(Path(__file__).with_name("dies_at.py"))


class Point(NamedTuple):
    """A place in a function, as `dies_at.py` takes it; passed at least `often` times in a game.

    `after` names another one: only a house that follows one that died there comes by, and not
    each that does, for what was on its way may have been nobody's command.
    """

    function: str
    place: str
    often: int = 1
    after: str = ""


FIRST_DAY = {
    "before the database is opened": Point("dealer.eventlog.sqlite:SqliteStore.open", "begin"),
    "in WAL mode, and empty": Point("dealer.eventlog.migrate:upgrade", "begin"),
    "in the first migration": Point("dealer.eventlog.migrate:upgrade", "before CREATE TABLE event"),
    "between two migrations": Point(
        "dealer.eventlog.migrate:upgrade", "after INSERT INTO alembic_version"
    ),
    "before the migrations' COMMIT": Point(
        "dealer.eventlog.sqlite:SqliteStore._transaction", "before COMMIT"
    ),
    "after the migrations' COMMIT": Point(
        "dealer.eventlog.sqlite:SqliteStore._transaction", "after COMMIT"
    ),
    "the write-ahead log is grown": Point("dealer.eventlog.sqlite:SqliteStore._grow", "end"),
    "the key is drafted": Point("dealer.eventlog.house:make", "call os:link"),
    "the key hangs beside its draft": Point("dealer.eventlog.house:make", "call os:unlink"),
    "the key hangs, the database has no check of it": Point(
        "dealer.eventlog.log:Log.put_house", "begin"
    ),
    "the mark is there, and blank": Point("dealer.eventlog.mark:Mark.begin", "begin"),
}
"""Passed while a house opens for the first time."""

APPEND = "dealer.eventlog.sqlite:SqliteStore.append"
RUN = "dealer.eventlog.sqlite:SqliteStore.run"
SLICE = "dealer.projector.runner:Projector.slice"

PLAYING = {
    "a table has been loaded": Point("dealer.service.loading:Loader.load", "end"),
    "a command is judged": Point("dealer.service.judge:Judge.decide", "begin", 5),
    "before append": Point("dealer.eventlog.log:Log.submit", "begin", 5),
    "after it lies on the desk": Point("dealer.eventlog.log:Log.submit", "end", 5),
    "before BEGIN": Point(APPEND, "begin", 5),
    "after BEGIN": Point(APPEND, "after BEGIN", 5),
    "before the head moves": Point(APPEND, "before UPDATE stream", 5),
    "the head moved, no event there": Point(APPEND, "before INSERT INTO event", 5),
    "the events there": Point(APPEND, "after INSERT INTO event", 5),
    "before a checkpoint's signing": Point("dealer.proof.checkpoint:Signer.sign", "begin", 3),
    "after a checkpoint's signing": Point("dealer.proof.checkpoint:Signer.sign", "end", 3),
    "between the events and their checkpoint": Point("dealer.eventlog.batch:_note", "begin", 3),
    "after a checkpoint's writing": Point("dealer.eventlog.batch:_note", "end", 3),
    "before a checkpoint that was asked for": Point("dealer.eventlog.log:Log.put_note", "begin"),
    "a player's cosignature is in": Point("dealer.service.core:Service.cosign", "end", 3),
    "before COMMIT": Point(APPEND, "before COMMIT", 5),
    "after COMMIT": Point(APPEND, "after COMMIT", 5),
    "before the commit is in the mark": Point("dealer.eventlog.mark:Mark.wrote", "begin", 5),
    "the commit is in the mark": Point("dealer.eventlog.mark:Mark.wrote", "end", 5),
    "after COMMIT, on the loop": Point("dealer.service.desk:Desk._succeeded", "begin", 5),
    "a command is heard again": Point(
        "dealer.service.desk:Desk.answer_again", "begin", after="after COMMIT, on the loop"
    ),
    "before push": Point("dealer.gateway.pump:Pump.publish", "begin", 5),
    "after push, before reply": Point("dealer.gateway.pump:Pump.publish", "end", 5),
    "after reply": Point("dealer.gateway.session:Session._done", "end", 5),
    "after reply, before the next one's push": Point(
        "dealer.service.desk:Desk._succeeded", "end", 5
    ),
    "the events a guest missed are read": Point("dealer.gateway.pump:Pump._send_chunk", "begin"),
    "a guest is up to date": Point("dealer.gateway.pump:Pump._say_resumed", "end", 2),
    "the round's secret is drawn": Point("dealer.service.judge:Judge._draw_secret", "end"),
    "before a shuffle is carried out": Point("dealer.service.judge:Judge._finish", "begin", 2),
    "after a shuffle is carried out": Point("dealer.service.judge:Judge._finish", "end", 2),
    "before projection": Point(SLICE, "begin", 2),
    "in the middle of projection": Point("dealer.projector.write:Pen.write", "after INSERT", 3),
    "between projection and its mark": Point(SLICE, "before UPDATE stream SET projected"),
    "after projection's mark": Point(SLICE, "after UPDATE stream SET projected"),
    "before projection's COMMIT": Point(RUN, "before COMMIT", 2),
    "after projection's COMMIT": Point(RUN, "after COMMIT", 2),
}
"""Passed while four play."""

DRAINING = {
    "told to close": Point("dealer.gateway.server:Gateway.drain", "begin"),
    "the guests know": Point("dealer.gateway.server:Gateway._announce", "end"),
    "goodbye is said": Point("dealer.gateway.door:Door.say", "end"),
    "the tables are let go of": Point("dealer.service.core:Service.close", "end"),
    "before the log is closed": Point("dealer.eventlog.log:Log.close", "begin"),
    "after the log is closed": Point("dealer.eventlog.log:Log.close", "end"),
}
"""Passed after SIGTERM, in the middle of a game."""

REBUILD = "dealer.projector.rebuild:Rebuild"

REBUILDING = {
    "the new read models are prepared": Point(f"{REBUILD}._prepare", "end"),
    "some events are replayed": Point(f"{REBUILD}._write", "end"),
    "before the swap": Point(f"{REBUILD}._swap", "begin"),
    "in the swap, half gone": Point(f"{REBUILD}._swap", "before ALTER TABLE", 4),
    "in the swap, before the mark": Point(f"{REBUILD}._swap", "before UPDATE stream"),
    "after the swap, before COMMIT": Point(f"{REBUILD}._swap", "end"),
}
"""Passed by `dealer rebuild`, in a process of its own beside the house that serves."""

ALL = FIRST_DAY | PLAYING | DRAINING | REBUILDING


@dataclass
class Figures(ordeal.Figures):
    """Beside what the game tells: `points` names there are, and how often a house died."""

    points: int = 0
    deaths: int = 0
    files_looked_at: int = 0


async def die_everywhere(
    folder: Path, *, times: int, seed: int, names: Sequence[str] = tuple(ALL)
) -> Figures:
    """Go through the points with these names that often; at which passing, `seed` decides."""
    figures, chance = Figures(points=len(names)), random.Random(seed)
    for number in range(times):
        await first_days(folder / f"days{number}", names, figures)
        trouble = partial(dying, folder / f"found{number}", names, chance, figures)
        async with HouseProcess(folder, name=f"house{number}") as house:
            game = ordeal.Figures()
            await ordeal.play_through(
                house, folder / f"game{number}", partial(trouble, house), game
            )
            figures.add(game)
        note(figures, "in the end", await find(house.database, copy_to=folder / "end"))
    return figures


async def first_days(folder: Path, names: Sequence[str], figures: Figures) -> None:
    """Houses that die before they have ever opened; the next one opens on what they left."""
    for number, name in enumerate(name for name in names if name in FIRST_DAY):
        place = folder / str(number)
        place.mkdir(parents=True)
        house = HouseProcess(place)
        await doomed(house, FIRST_DAY[name], 1)
        await died(house, name, figures)
        note(figures, name, await look_into(house.database))


async def dying(
    folder: Path,
    names: Sequence[str],
    chance: random.Random,
    figures: Figures,
    house: HouseProcess,
    playing: asyncio.Task[None],
) -> None:
    """Have the house die at each point in turn; then a rebuild beside one that goes on."""
    await house.kill()
    for name in names:
        if playing.done():
            return
        if name in PLAYING:
            await die_playing(house, name, chance, figures)
        elif name in DRAINING:
            await doomed(house, DRAINING[name], 1)
            await house.ready()
            await ordeal.over(playing, chance.uniform(0.1, 0.4))
            house.tell_to_close()
            await died(house, name, figures)
        else:
            continue
        note(figures, name, await find(house.database, copy_to=folder))
    await house.open()
    for name in names:
        if name in REBUILDING:
            await rebuild_and_die(house, name, figures)


async def die_playing(
    house: HouseProcess, name: str, chance: random.Random, figures: Figures
) -> None:
    point = PLAYING[name]
    if not point.after:
        await doomed(house, point, chance.randint(1, point.often))
        await died(house, name, figures)
        return
    for _ in range(TRIES):
        await die_playing(house, point.after, chance, figures)
        await doomed(house, point, 1)
        with suppress(TimeoutError):
            async with asyncio.timeout(TRY_SECONDS):
                await died(house, name, figures)
                return
        await house.kill()
    raise AssertionError(f"the house did not pass {name!r}")


async def doomed(house: HouseProcess, point: Point, passing: int) -> None:
    """Start a house that will die there; after this one it is an ordinary house again."""
    ordinary = house.program
    house.program = (RUNNER, point.function, point.place, str(passing))
    try:
        await house.start()
    finally:
        house.program = ordinary


async def died(house: HouseProcess, name: str, figures: Figures) -> None:
    """Wait until it has; TimeoutError at a point that is never passed."""
    code = await house.ended()
    assert code == -signal.SIGKILL, f"{name}: {code}, {house.output.read_text()[-2000:]}"
    figures.deaths += 1


def note(figures: Figures, name: str, found: Found) -> None:
    figures.files_looked_at += 1
    figures.faults += [f"{name}: {fault}" for fault in found.faults]


async def rebuild_and_die(house: HouseProcess, name: str, figures: Figures) -> None:
    """A rebuild dies beside the house that serves; the next one finds the rows as they were."""
    point = REBUILDING[name]
    arguments = (RUNNER, point.function, point.place, str(point.often))
    code, _ = await rebuild(house, arguments)
    assert code == -signal.SIGKILL, f"{name}: the rebuild ended with {code}"
    figures.deaths += 1
    code, said = await rebuild(house, ("-m", "dealer.cli"))
    if code or json.loads(said)["different"]:
        figures.faults.append(f"{name}: the next rebuild ended with {code} and {said!r}")


async def rebuild(house: HouseProcess, program: Sequence[str]) -> tuple[int | None, bytes]:
    arguments = (*program, "rebuild", "--json", "--database", house.address)
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(PATIENT):
        said, _ = await process.communicate()
    return process.returncode, said


if __name__ == "__main__":
    sys.exit(run(__doc__, die_everywhere, count="times", default=1))
