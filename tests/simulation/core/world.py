"""The core world: nodes without gateways, actors, operators and faults, run by a core plan."""

from __future__ import annotations

import asyncio
import atexit
import gc
import logging
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from dealer.errors import DealerError
from dealer.service import Service
from dealer.service.commands.commit_stats import CommitStats
from dealer.service.operations.close_tables import AutoClose
from dealer.service.reading.lobby import Openers
from dealer.webhooks.runner import WebhookRunner
from tests.simulation import checks
from tests.simulation.core import checks as core_checks
from tests.simulation.core.actor import Actor
from tests.simulation.core.feed import FeedFollower
from tests.simulation.core.image import BEGIN, Image, image_for
from tests.simulation.core.node import CoreNode
from tests.simulation.core.paths import Paths
from tests.simulation.core.plan import ACTORS
from tests.simulation.core.stream import Stream
from tests.simulation.core.witness import CoreWitness
from tests.simulation.database import Database
from tests.simulation.disturbances import Disturbances
from tests.simulation.loop import Domain, SimulatedLoop
from tests.simulation.operators import Operators
from tests.simulation.plan import NODES, Plan, Step
from tests.simulation.threads import Threads
from tests.simulation.world import SHM, Outcome, World

CALLBACKS = 100_000
FIRST_PAUSE = 0.1
"""Seconds between two looks whether something has ended; longer each time."""


class CoreWorld(World):
    """One run of a core plan; without an `image` it begins with an empty database."""

    def __init__(self, plan: Plan, folder: Path, image: Image | None) -> None:
        settings = plan.settings
        self.plan = plan
        self.folder = folder
        self.outcome = Outcome(plan)
        self.loop = SimulatedLoop(Random(f"loop {plan.seed}"), callbacks=CALLBACKS)
        self.threads = Threads(self.loop)
        self.network: Any = Paths(self.loop)
        data = None if image is None else image.data
        random = Random(f"database {plan.seed}")
        self.database = Database(self.loop, self.threads, random, data, shared=True)
        self.database.hint_loss = settings["hint_loss"]
        self.database.is_server = settings["commit"] == "thread"
        self.database.loses_unsynced = any(one.what == "all_power_off" for one in plan.steps)
        self.domains: list[Domain] = []
        self.witness: CoreWitness = CoreWitness(self)
        self.database.written.append(self.witness.written)
        self.restores = 0
        self.restored_while_running = False
        self.must_be_closed: list[str] = []
        self.quiet = False
        drifts = [random.choice((0.0, 0.0002, -0.01)) for _ in NODES]
        pairs = list(zip(NODES, drifts, strict=True))[: settings["nodes"]]
        self.nodes: Any = [CoreNode(self, *pair) for pair in pairs]
        self.actors = [Actor(self, name) for name in ACTORS[: settings["seats"]]]
        self.players: Any = {actor.name: actor for actor in self.actors}
        self.feed = FeedFollower(self)
        self.operators = Operators(self)
        self.disturbances = Disturbances(self)
        self.tables: list[str] = []
        self.turn: CoreNode | None = None
        self._opened = None
        self._trace = sha256()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._streams = 0
        self._unreadable = ""  # why the last table that was to be followed could not be loaded
        if image is not None:
            self._begin_with(image)

    def _begin_with(self, image: Image) -> None:
        image.report_to(self.witness)
        self.tables = list(image.tables)
        for actor in self.actors:
            if self.tables:
                actor.table = self.tables[-1]
                actor.holder = image.holders[actor.name]
                if self.plan.seed % 4:
                    actor.version = len(image.log[actor.table])
                actor.host = actor is self.actors[0]

    def prepare(self, work: Callable[[Service], Awaitable[None]]) -> None:
        """Run only this work at one node, which is then stopped."""
        self.loop.now = BEGIN

        async def main() -> None:
            (node,) = self.nodes
            await self._start()
            running: Any = work(node.service)
            await self.loop.create_task(running, context=node.domain.context)
            await asyncio.sleep(2.0)
            node.drain()
            await node._task

        self._main = main  # type: ignore[method-assign]
        self.run()

    async def _start(self) -> None:
        for node in self.nodes:
            node.start()
        while not all(node.up or node.failure for node in self.nodes):  # noqa: ASYNC110  virtual
            await asyncio.sleep(0.03)

    async def _main(self) -> None:
        await self._start()
        await self._take_steps()
        if await self._settle():
            await core_checks.final(self)

    def _do(self, step: Step) -> None:
        self.seen(f"step {step.what}")
        if step.what == "turn":
            self.turn = next(node for node in self.nodes if node.name == step.who)
        elif step.what in core_checks.COMMANDS:
            if step.who in self.players:
                actor: Actor = self.players[step.who]
                actor.domain.context.run(actor.do, step)
        elif step.who not in NODES or any(node.name == step.who for node in self.nodes):
            self.disturbances.do(step)

    def task(self, work: Coroutine[Any, Any, Any], domain: Domain) -> asyncio.Task[Any]:
        task = super().task(work, domain)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def run(self) -> None:
        with without_polls():
            super().run()

    # Streams

    def open_stream(self, actor: Actor, node: CoreNode, table: str, after: int) -> None:
        """Let a node begin a stream, in a task of its own."""
        assert node.domain is not None
        actor.opening = node.domain
        work = self._open_stream(actor, node, table, after)
        self.loop.create_task(work, context=node.domain.context)

    async def _open_stream(self, actor: Actor, node: CoreNode, table: str, after: int) -> None:
        service = node.service
        stream: Stream | None = None
        if service is not None:
            try:
                live_table = await service.lifecycle.load(table)
            except DealerError as error:
                self.seen(f"follow {type(error).__name__}")
                self._unreadable = str(error)
            else:
                self._unreadable = ""
                if node.service is service:
                    self._streams += 1
                    stream = Stream(actor, node, live_table, self._streams)
                    node.streams.append(stream)
                    stream.start(after)
        actor.opening = None
        actor.streaming(stream)

    # The end

    def why_endless(self) -> str:
        # Actors repeat their calls for as long as a table cannot be loaded.
        return f", since a table cannot be loaded: {self._unreadable}" if self._unreadable else ""

    async def _settle(self) -> bool:
        self.quiet = True
        self.disturbances.end()
        await asyncio.sleep(FIRST_PAUSE)
        waited = await self._wait(
            lambda: all(node.up for node in self.nodes) and not self._tasks,
            lambda: f"a node or an operator does not end: {[n.failure for n in self.nodes]}",
        )
        if not waited:
            return False
        await self._all_thawed()
        unfinished = "SELECT 1 FROM disabled UNION ALL SELECT 1 FROM archived LIMIT 1"
        if self.database.fetch(unfinished):
            self.operators.end()
        if not await self._wait(
            lambda: not any(actor.waiting for actor in self.actors) and not self._tasks,
            lambda: f"calls are not answered: {self._unanswered()}",
        ):
            return False
        if self.plan.settings["entropy"] == "players" and not await core_checks.shuffles_end(self):
            return False
        return await self._wait(lambda: not self._lagging(), self._lagging, pause=FIRST_PAUSE)

    def _unanswered(self) -> str:
        return ", ".join(f"{a.name} {call.what}" for a in self.actors for call in a.waiting)

    def _lagging(self) -> str:
        for actor in self.actors:
            if late := actor.lagging():
                return late
        if not self.restored_while_running:  # the operator's steps stop the nodes first
            if self.database.fetch("SELECT 1 FROM stream WHERE version > projected LIMIT 1"):
                return "the read models are not up to date"
            if self.plan.settings["feed"] and self.database.fetch(core_checks.UNFED):
                return "the feed is not complete"
        return next(filter(None, map(checks.memory_waits, self.nodes)), "")


@contextmanager
def without_polls() -> Iterator[None]:
    """Let the background work do nothing that is not of the core: it would only poll."""
    before = [(owner, name, getattr(owner, name)) for owner, name in _IDLE]
    for owner, name in _IDLE:
        setattr(owner, name, _idle)
    try:
        yield
    finally:
        for owner, name, value in before:
            setattr(owner, name, value)


async def _idle(*_: object) -> None:
    await asyncio.get_running_loop().create_future()


_IDLE = (
    (CommitStats, "watch_file"),
    (AutoClose, "run"),
    (Openers, "run"),
    (WebhookRunner, "run"),
)


@cache
def _process_folder() -> Path:
    """A folder in memory for all runs of this process."""
    folder = Path(tempfile.mkdtemp(prefix="dealer-sim-", dir=SHM if SHM.is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@contextmanager
def run_folder() -> Iterator[Path]:
    """The folder of a run: empty but for the name of the database and an archive."""
    folder = _process_folder()
    for file in os.scandir(folder):
        if file.is_dir():
            shutil.rmtree(file.path)
        else:
            os.unlink(file.path)
    (folder / "dealer.db").touch()
    (folder / "archive").mkdir()
    yield folder


def run_core(plan: Plan) -> Outcome:
    """Carry out a core plan, alone in the process."""
    collects, logs = gc.isenabled(), logging.root.manager.disable
    gc.disable()
    if logs != logging.CRITICAL:
        logging.disable(logging.CRITICAL)
    try:
        image = image_for(plan.settings)
        with run_folder() as folder:
            image.write_files(folder)
            world = CoreWorld(plan, folder, image)
            world.run()
        return world.outcome
    finally:
        if collects:
            gc.enable()
        if logs != logging.CRITICAL:
            logging.disable(logs)
