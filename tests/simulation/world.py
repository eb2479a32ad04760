"""A world: nodes, clients, a follower of the feed, operators and faults, run by a plan.

result = run(make_plan(seed))
result.faults       # sentences; empty if every invariant held
"""

from __future__ import annotations

import asyncio
import gc
import logging
import shutil
import tempfile
from collections import Counter
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any

from dealer.client.table_session import TableSession
from dealer.errors import DealerError, HouseCheated, UnknownTable
from tests.simulation import checks
from tests.simulation.database import Database
from tests.simulation.disturbances import Disturbances
from tests.simulation.environment import replaced
from tests.simulation.exchange import compare, exchanged, recorded
from tests.simulation.flooder import RATES, Flooder
from tests.simulation.follower import Follower
from tests.simulation.loop import Domain, Endless, SimulatedLoop, Stuck
from tests.simulation.memory import LOOK_EVERY, Sizes, look
from tests.simulation.network import Network
from tests.simulation.node import Node
from tests.simulation.operators import Operators
from tests.simulation.plan import CLIENTS, NODES, Plan, Step
from tests.simulation.player import FACES
from tests.simulation.receiver import Receiver
from tests.simulation.schemes import SchemingPlayer
from tests.simulation.threads import Threads
from tests.simulation.witness import Witness

QUIET_SECONDS = 120.0
"""Virtual seconds after the last fault within which every wait has to end."""

NOT_KEPT = "violated after a restore under running nodes"
"""What is counted instead of a fault: nodes have to be stopped for a restore."""

SHM = Path("/dev/shm")


@dataclass
class Outcome:
    """`faults` are violated invariants; `seen` counts what happened; `digest` is of all of it."""

    plan: Plan
    faults: list[str] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    digest: str = ""
    callbacks: int = 0
    seconds: float = 0.0


class World:
    """One run."""

    def __init__(self, plan: Plan, folder: Path, *, deck: Sequence[str] | None = None) -> None:
        self.plan = plan
        self.folder = folder
        self.deck = list(deck or FACES[: plan.settings["cards"]])
        self.outcome = Outcome(plan)
        self.loop = SimulatedLoop(Random(f"loop {plan.seed}"))
        self.threads = Threads(self.loop)
        self.loop.run_apart = self.threads.run_apart
        self.network = Network(self.loop, plan.seed)
        self.loop.network = self.network
        self.database = Database(self.loop, self.threads, Random(f"database {plan.seed}"))
        self.database.hint_loss = plan.settings["hint_loss"]
        self.database.is_server = plan.settings["commit"] == "thread"
        self.domains: list[Domain] = []
        self.witness = Witness(self)
        self.database.written.append(self.witness.written)
        self.restores = 0
        self.restored_while_running = False
        self.must_be_closed: list[str] = []
        self.quiet = False
        self.kept: dict[str, Sizes] = {}
        self.rates = RATES if plan.settings.get("flood") else {}
        random = Random(f"world {plan.seed}")
        drifts = [random.choice((0.0, 0.0002, -0.01)) for _ in NODES]
        self.nodes = [Node(self, name, drift) for name, drift in zip(NODES, drifts, strict=True)]
        self.players = {name: SchemingPlayer(self, name) for name in CLIENTS}
        self.follower = Follower(self)
        self.receiver = Receiver(self)
        self.operators = Operators(self)
        self.disturbances = Disturbances(self)
        self.network.resolve = self._resolve
        self._tables: list[str] = []
        self._closed: set[str] = set()
        self._opened: asyncio.Event | None = None
        self._trace = sha256()

    # Reports

    def fault(self, sentence: str) -> None:
        """Report a violated invariant; only count it where nodes ran during a restore."""
        if self.restored_while_running:
            self.seen(NOT_KEPT)
        elif len(self.outcome.faults) < 20:
            self.outcome.faults.append(f"{self.loop.now - 1000:.3f} s: {sentence}")

    def seen(self, what: str) -> None:
        """Count something that happened; the order is part of the digest of the run."""
        self.outcome.seen[what] += 1
        self.trace(what)

    def why_endless(self) -> str:
        """What is known of the cause of a run that does not end, after a comma."""
        return ""

    def trace(self, what: str) -> None:
        """Make a text, and the present time, part of the digest of the run."""
        self._trace.update(f"{self.loop.now:.9f} {what}\n".encode())

    def accused(self, name: str, error: HouseCheated) -> None:
        """A client says that the house cheats, which an honest house never does."""
        self.seen("accused")
        if not self.restores:
            self.fault(f"{name} accuses an honest house: {error}")

    def _missed(self, session: TableSession) -> None:
        """A client missed a version: one frame is sent for every version, without gaps."""
        self.seen("gap")
        if not session._resuming and not self.restores:
            self.fault(f"a client misses the version after {session.verifier.version}")

    # Tables

    def table_opened(self, table: str) -> None:
        self._tables.append(table)
        if self._opened is not None:
            self._opened.set()

    def table_closed(self, table: str) -> None:
        self._closed.add(table)

    async def current_table(self) -> str:
        """The newest table, once there is one."""
        assert self._opened is not None
        await self._opened.wait()
        if not self._tables:
            raise UnknownTable("No table was opened in time.")
        return self._tables[-1]

    def _resolve(self, host: str, name: str, random: Random) -> str | None:
        """A load balancer: any node that accepts connections, rarely another."""
        if host != "house":
            return host
        up = [node.name for node in self.nodes if node.up] or list(NODES)
        return random.choice(up if random.random() < 0.9 else list(NODES))

    # The run

    def run(self) -> None:
        with (
            replaced(
                self.loop,
                self.threads,
                self.network,
                self.database,
                self.plan.seed,
                on_gap=self._missed,
            ),
            self.disturbances.points.watched(self.plan),
        ):
            try:
                self.loop.run_until_complete(self._main())
            except Stuck:
                self.fault("nothing is ready and no timer is set: every wait is permanent")
            except Endless:
                self.fault(f"the run does not end{self.why_endless()}")
            except Exception as raised:
                self.fault(f"a step or a check raised {raised!r}")
            finally:
                self.loop.over = True
                self._end()
        for error in self.loop.errors:
            self.fault(f"{error['message']}: {error.get('exception')!r}")
        self.outcome.digest = self._trace.hexdigest()
        self.outcome.callbacks = self.loop.steps
        self.outcome.seconds = self.loop.now - 1000

    async def _main(self) -> None:
        self._opened = asyncio.Event()
        for node in self.nodes:
            node.start()
            while not node.up and node.failure is None:  # noqa: ASYNC110  virtual time
                await asyncio.sleep(0.01)
        await self.operators.prepare()
        if self.rates:
            Flooder(self).start()
        await self._take_steps()
        if await self._settle():
            await checks.final(self)
            if self.plan.seed % LOOK_EVERY == 0:
                await look(self)

    async def _take_steps(self) -> None:
        began = self.loop.now
        for step in self.plan.steps:
            wait = began + step.at - self.loop.now
            if wait > 0:
                await asyncio.sleep(wait)
            self._do(step)
        await asyncio.sleep(max(0.0, began + self.plan.settings["length"] - self.loop.now))

    def _do(self, step: Step) -> None:
        self.seen(f"step {step.what}")
        if step.who in self.players and hasattr(SchemingPlayer, f"do_{step.what}"):
            self.players[step.who].do(step)
        else:
            self.disturbances.do(step)

    async def _settle(self) -> bool:
        """End all faults, and wait until no client waits any more; False if one still does."""
        self.quiet = True
        if self._opened is not None:
            self._opened.set()
        self.disturbances.end()
        await self._all_thawed()
        self.operators.end()
        return (
            await self._wait(
                lambda: all(node.up for node in self.nodes),
                lambda: f"a node does not start: {[node.failure for node in self.nodes]}",
            )
            and await self._wait(
                lambda: not any(player.waiting for player in self.players.values()),
                lambda: (
                    "commands are not answered: "
                    + ", ".join(f"{p.name} {p.shown()}" for p in self.players.values() if p.waiting)
                ),
            )
            and await self._wait(lambda: not checks.lagging(self), lambda: checks.lagging(self))
        )

    async def _all_thawed(self) -> None:
        """Wait until every machine runs again and has carried out what it had received."""
        if any(domain.frozen for domain in self.domains if not domain.dead):
            await self._wait(
                lambda: not any(domain.frozen for domain in self.domains if not domain.dead),
                lambda: "a machine stands still",
            )
            await asyncio.sleep(2.0)

    async def _wait(self, condition: Any, sentence: Any, *, pause: float = 0.02) -> bool:
        until = self.loop.now + QUIET_SECONDS
        while not condition():
            if self.loop.now > until:
                self.fault(sentence())
                return False
            await asyncio.sleep(pause)
            pause = min(1.0, pause * 1.5)
        return True

    def task(self, work: Coroutine[Any, Any, Any], domain: Domain) -> asyncio.Task[Any]:
        """Run an operator's work, whose refusals by the program are no fault."""

        async def run() -> None:
            try:
                await work
            except DealerError as error:
                self.seen(f"operator {type(error).__name__}")

        return self.loop.create_task(run(), context=domain.context.copy())

    def _end(self) -> None:
        """Drop all tasks; what their `finally` blocks do reaches nothing."""
        for node in self.nodes:
            node.kill(power=True)
        for domain in self.domains:
            domain.dead = True
            for task in domain.tasks:
                task._log_destroy_pending = False
        # Their numbers as hashes are those of the next run's tasks, which would be compared.
        asyncio.tasks._all_tasks.clear()  # type: ignore[attr-defined]


def run(plan: Plan) -> Outcome:
    """Carry out a plan, alone in the process; twice, if it says that cards are to be exchanged."""
    if not plan.settings.get("exchange"):
        return carry_out(plan).outcome
    with recorded() as shown:
        first = carry_out(plan)
        found = exchanged(first, shown)
        if found is not None and not first.outcome.faults:
            deck, blind = found
            compare(first, carry_out(plan, deck=deck), blind)
    return first.outcome


def carry_out(plan: Plan, *, deck: Sequence[str] | None = None) -> World:
    """The world after a plan, alone in the process; `deck` is in place of the plan's cards."""
    folder = Path(tempfile.mkdtemp(prefix="dealer-sim-", dir=SHM if SHM.is_dir() else None))
    (folder / "archive").mkdir()
    (folder / "dealer.db").touch()
    logging.disable(logging.CRITICAL)
    gc.disable()
    try:
        world = World(plan, folder, deck=deck)
        world.run()
        return world
    finally:
        gc.enable()
        logging.disable(logging.NOTSET)
        shutil.rmtree(folder, ignore_errors=True)
