"""Two servers and the maintenance commands on one SQLite file, with many WAL checkpoints.

    python tests/chaos/checkpoints.py 1000

Four clients play at each server, and four more at a table that both serve. Meanwhile side tables
are opened and played, disabled, exported, closed, verified and archived by commands, the read
models are rebuilt, and one server is killed repeatedly. Every process has a small WAL, and
`walwatch.c` traces its locks: a checkpoint without the write lock is a fault. At the end SQLite
checks the file, and all tables, archived ones too, are compared with what every client received.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))

from dealer.errors import HouseUnreachable
from dealer.proof.bundle import read
from dealer.proof.verify import verify
from tests.chaos import game_under_faults, walwatch
from tests.harness.database_check import check_files
from tests.harness.load_balancer import LoadBalancer
from tests.harness.script import run
from tests.harness.server_process import ROOT, ServerProcess
from tests.harness.table_of_clients import client

PROGRAM = (str(Path(__file__).with_name("small_wal.py")), "20")
"""With 20 pages, a checkpoint is due after about five draws."""

GAME = 250
"""Checkpoints after which another table is opened, so that loading one stays fast."""

KILL = (50, 200)
"""Least and most checkpoints after which one server is killed and started again."""

TABLES = 3
DRAWS = 5

PATIENT = 150.0
"""Seconds for the maintenance of one side table: ten commands, each a process."""


@dataclass
class Figures(game_under_faults.Figures):
    """`restarts` of the WAL need a complete checkpoint; `processes` opened the database."""

    checkpoints: int = 0
    restarts: int = 0
    recoveries: int = 0
    processes: int = 0
    kills: int = 0
    games: int = 0
    commands: int = 0
    archived: int = 0


@dataclass
class Side:
    """The leaves of archived side tables, by table, as their player received them."""

    sent: dict[str, dict[int, bytes]] = field(default_factory=dict)


class Trial:
    """The two servers, the load balancer's port, and the trace of all processes."""

    def __init__(self, folder: Path, *, seed: int) -> None:
        self.folder = folder
        self.place = folder / "database"
        self.archive = folder / "archive"
        self.place.mkdir(parents=True)
        self.archive.mkdir()
        trace = folder / "trace"
        self.watch = walwatch.Watch(trace)
        self.environment = walwatch.environment(
            walwatch.library(folder), folder=self.place, trace=trace
        )
        self.chance = random.Random(seed)
        self.tables = 0
        self.one, self.two = (self._server(name) for name in ("one", "two"))
        self.balancer = LoadBalancer(lambda: [self.one.port, self.two.port])

    def _server(self, name: str) -> ServerProcess:
        server = ServerProcess(self.place, name=name, archive=self.archive)
        server.program, server.environment = PROGRAM, self.environment
        return server

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.balancer.port}/ws"

    def faults(self, figures: Figures) -> list[str]:
        """The faults found so far, so that a failed trial stops early."""
        return figures.faults + self.watch.faults

    @asynccontextmanager
    async def open(self) -> AsyncIterator[None]:
        async with self.one, self.two, self.balancer:
            yield


async def checkpoint_under_load(folder: Path, *, checkpoints: int, seed: int) -> Figures:
    """Play until this many WAL checkpoints were taken; then check everything."""
    figures, trial, side = Figures(), Trial(folder, seed=seed), Side()
    async with trial.open():
        await rotate(trial, figures)
        enough = asyncio.Event()
        maintaining = asyncio.create_task(maintain(trial, figures, side, enough))
        try:
            while trial.watch.checkpoints < checkpoints and not trial.faults(figures):
                await play(trial, figures, upto=checkpoints)
            enough.set()
            async with asyncio.timeout(PATIENT):
                await maintaining
        finally:
            maintaining.cancel()
            await asyncio.gather(maintaining, return_exceptions=True)
    await compare(trial, figures, side)
    trial.watch.read()
    figures.checkpoints, figures.restarts = trial.watch.checkpoints, trial.watch.restarts
    figures.recoveries, figures.processes = trial.watch.recoveries, trial.watch.processes
    figures.faults += trial.watch.faults[:5]
    return figures


async def play(trial: Trial, figures: Figures, *, upto: int) -> None:
    """A table at each server and one at both, for `GAME` checkpoints or until there are enough."""
    figures.games += 1
    last = min(upto, trial.watch.checkpoints + GAME)
    enough, seated = asyncio.Event(), asyncio.Barrier(TABLES + 1)

    async def inject_faults(playing: asyncio.Task[None]) -> None:
        await seated.wait()
        ended = asyncio.create_task(enough.wait())
        await asyncio.wait((playing, ended), return_when=asyncio.FIRST_COMPLETED)
        ended.cancel()

    async with asyncio.TaskGroup() as tables:
        for server, url in (
            (trial.one, trial.one.url),
            (trial.two, trial.two.url),
            (trial.one, trial.url),
        ):
            tables.create_task(play_one(server, url, trial, figures, inject_faults))
        await seated.wait()  # a client retries its first connection only once
        kill_at = trial.watch.checkpoints + trial.chance.randint(*KILL)
        while trial.watch.checkpoints < last and not trial.watch.faults:
            await asyncio.sleep(0.05)
            trial.watch.read()
            if trial.watch.checkpoints >= kill_at:
                server = trial.chance.choice((trial.one, trial.two))
                await server.kill()
                await server.open()
                figures.kills += 1
                kill_at = trial.watch.checkpoints + trial.chance.randint(*KILL)
        enough.set()


async def play_one(
    server: ServerProcess,
    url: str,
    trial: Trial,
    figures: Figures,
    inject_faults: game_under_faults.FaultInjector,
) -> None:
    game = game_under_faults.Figures()
    trial.tables += 1
    clients = trial.folder / f"{trial.tables}"
    await game_under_faults.play_through(server, clients, inject_faults, game, url=url)
    figures.add(game)


# Maintenance commands on side tables


async def maintain(trial: Trial, figures: Figures, side: Side, enough: asyncio.Event) -> None:
    """Take side tables from opening to archive, one after the other, until there are enough
    checkpoints.
    """
    while not enough.is_set():
        try:
            table = await play_side_table(trial, side)
        except HouseUnreachable:
            continue  # a server was killed before its first answer
        for arguments in (
            ("tables", "disable", table, "--why", "trial"),
            ("tables", "--json"),
            ("export", table, "--output", str(trial.folder / "open.jsonl")),
            ("verify", str(trial.folder / "open.jsonl")),
            ("tables", "enable", table),
            ("tables", "close", table, "--why", "trial"),
            ("rebuild",),
            ("tables", "archive", table, "--to", str(trial.archive)),
            ("journal",),
            ("migrate",),
        ):
            await command(trial, figures, *arguments)
        figures.archived += 1


async def rotate(trial: Trial, figures: Figures) -> None:
    """Rotate the key of the running servers, which use the new one after a restart."""
    await command(trial, figures, "rotate-key", "--why", "trial")
    for server in (trial.one, trial.two):
        await server.close()
        await server.open()


async def play_side_table(trial: Trial, side: Side) -> str:
    """One player draws at a new table and leaves its round open."""
    async with client(trial.url, "Eve") as eve:
        eve.table = await eve.house.join(await eve.house.open())
        await eve.table.round_open(entropy="house")
        await eve.table.shuffle()
        for _ in range(DRAWS):
            await eve.table.draw(1)
        side.sent[eve.table.id] = eve.record.leaves
        return eve.table.id


async def command(trial: Trial, figures: Figures, *arguments: str) -> None:
    """Run one command of `dealer` while the servers run."""
    database = () if arguments[0] == "verify" else ("--database", trial.one.address)
    process = await asyncio.create_subprocess_exec(
        sys.executable, *PROGRAM, *arguments, *database,
        cwd=ROOT,
        env=trial.one.environment_of_process(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await process.communicate()
    figures.commands += 1
    if process.returncode != 0:
        figures.faults.append(f"dealer {' '.join(arguments)}: {output.decode()[-500:]}")


# Final comparison


async def compare(trial: Trial, figures: Figures, side: Side) -> None:
    """SQLite's integrity check, each table's root, and what the players of side tables received."""
    with closing(sqlite3.connect(trial.one.database)) as database:
        result = database.execute("PRAGMA integrity_check").fetchall()
    if result != [("ok",)]:
        figures.faults.append(f"integrity_check: {result[:3]}")
    found = await check_files(trial.one.database)
    figures.faults += found.faults
    for table, sent in side.sent.items():
        (file,) = trial.archive.glob(f"*{table}*.jsonl")
        bundle = read(file.read_bytes())
        report = verify(bundle)
        if not report.ok:
            figures.faults.append(f"archived {table}: {report.verdicts()}")
        missing = [version for version in sent if version >= len(bundle)]
        figures.lost += len(missing)
        figures.changed += sum(
            bundle[version] != leaf for version, leaf in sent.items() if version < len(bundle)
        )


if __name__ == "__main__":
    sys.exit(run(__doc__, checkpoint_under_load, count="checkpoints", default=1000))
