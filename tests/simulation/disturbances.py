"""Disturbances: the faults of networks, machines, disks and clocks, and restores of old copies."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from tests.simulation.plan import CLIENTS, NODES, Step, milliseconds_of, seconds_of
from tests.simulation.points import Crash, Points

if TYPE_CHECKING:
    from tests.simulation.node import Node
    from tests.simulation.world import World

OPERATORS = ("disable", "enable", "archive", "rotate")


class Disturbances:
    """Carries out the steps that are faults; `end` ends them all."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.points = Points(world)
        self._copy: bytes | None = None
        self._copied: dict[str, int] = {}
        self._running = False
        self._starts: list[tuple[float, Node]] = []

    def do(self, step: Step) -> None:
        if step.what in OPERATORS:
            self.world.operators.do(step)
        else:
            getattr(self, f"_{step.what}")(step, Random(step.number))

    def end(self) -> None:
        """No more faults from now on; machines that are off start."""
        world, database = self.world, self.world.database
        world.network.open_paths()
        database.refusing = database.full = database.locked_until = 0.0
        database.unknown = database.failing = 0
        database.models_locked_until = 0.0
        database.locked_tables.clear()
        database.slow = 1.0
        self.points.disarm()
        for node in world.nodes:
            self.start(node)

    def _node(self, name: str) -> Node:
        return next(node for node in self.world.nodes if node.name == name)

    def start(self, node: Node) -> None:
        """Start a node, also one whose start fails at first, as a supervisor does."""
        if node.running:
            if not node.up:
                self.world.loop.call_later(0.5, self.start, node)
            return
        node.start()
        self.world.loop.call_later(0.5, self.start, node)

    # Networks

    def _cut(self, step: Step, random: Random) -> None:
        for link in self.world.network.live_links():
            if step.who in link.names:
                link.cut()

    def _half_open(self, step: Step, random: Random) -> None:
        found = [link for link in self.world.network.live_links() if step.who in link.names]
        if found:
            random.choice(found).half_open(random.randrange(2))

    def _block(self, step: Step, random: Random) -> None:
        others = NODES if step.who in CLIENTS else CLIENTS
        self.world.network.block(step.who, random.choice(others), seconds_of(step))

    def _deaf(self, step: Step, random: Random) -> None:
        """A client that does not read: the server's buffers fill."""
        for link in self.world.network.live_links():
            if link.names[0] == step.who and not link.ends[0].lost:
                end = link.ends[0]
                end.pause_reading()
                self.world.loop.call_later(seconds_of(step), end.resume_reading)

    # Machines

    def _crash(self, step: Step, random: Random) -> None:
        self._node(step.who).kill(power=False)
        self.world.loop.call_later(seconds_of(step), self.start, self._node(step.who))

    def _crash_at(self, step: Step, random: Random) -> None:
        self.points.arm(self._node(step.who), Crash.of(step.number, seconds_of(step)))

    def _power_off(self, step: Step, random: Random) -> None:
        self._node(step.who).kill(power=True)
        self.world.loop.call_later(seconds_of(step), self.start, self._node(step.who))

    def _all_power_off(self, step: Step, random: Random) -> None:
        for node in self.world.nodes:
            node.kill(power=True)
            self.world.loop.call_later(seconds_of(step), self.start, node)
        if self.world.database.lose_unsynced():
            self.world.seen("lost unsynced writes")

    def _drain(self, step: Step, random: Random) -> None:
        node = self._node(step.who)
        node.drain()
        self.world.loop.call_later(4.0, self.start, node)

    def _freeze(self, step: Step, random: Random) -> None:
        if step.who in CLIENTS:
            self.world.loop.freeze(self.world.players[step.who].domain, seconds_of(step))
            return
        domain = self._node(step.who).domain
        if domain is not None:
            self.world.loop.freeze(domain, seconds_of(step))

    def _step_clock(self, step: Step, random: Random) -> None:
        self._node(step.who).step_clock(milliseconds_of(step))

    def _step_clocks(self, step: Step, random: Random) -> None:
        for node in self.world.nodes:
            node.step_clock(-3_600_000)

    # Databases

    def _db_refuse(self, step: Step, random: Random) -> None:
        self.world.database.refusing = self.world.loop.now + seconds_of(step)

    def _db_full(self, step: Step, random: Random) -> None:
        self.world.database.full = self.world.loop.now + seconds_of(step)

    def _db_fail(self, step: Step, random: Random) -> None:
        self.world.database.failing += random.choice((1, 1, 3))

    def _db_unknown(self, step: Step, random: Random) -> None:
        self.world.database.unknown += random.choice((1, 1, 3))

    def _db_lock(self, step: Step, random: Random) -> None:
        self.world.database.locked_until = self.world.loop.now + seconds_of(step)

    def _lock_table(self, step: Step, random: Random) -> None:
        tables = list(self.world.witness.log)
        if tables:
            until = self.world.loop.now + seconds_of(step)
            self.world.database.locked_tables[bytes.fromhex(random.choice(tables))] = until

    def _lock_models(self, step: Step, random: Random) -> None:
        self.world.database.models_locked_until = self.world.loop.now + seconds_of(step)

    def _db_slow(self, step: Step, random: Random) -> None:
        self.world.database.slow = random.choice((5.0, 50.0))

    def _no_hints(self, step: Step, random: Random) -> None:
        self.world.database.hint_loss = 1.0

    def _restore(self, step: Step, random: Random) -> None:
        """First keep a copy; the second time put it back, with all nodes stopped."""
        world, database = self.world, self.world.database
        if self._copy is None:
            self._running = random.random() < 0.4
            # With marks of their own the other node stays down, as if its machine came up later.
            nodes = random.sample(world.nodes, len(world.nodes))
            apart = 4.0 if world.plan.settings.get("separate_marks") else 0.0
            self._starts = [(0.3 + apart * place, node) for place, node in enumerate(nodes)]
            self._copy = database.copy()
            self._copied = {table: len(leaves) for table, leaves in world.witness.log.items()}
            world.loop.call_later(seconds_of(step), self._put_back)

    def _put_back(self) -> None:
        world = self.world
        if world.quiet or self._copy is None:
            return
        running = self._running
        if not running:
            for node in world.nodes:
                node.kill(power=False)
        received, kept = world.witness.received, self._copied
        lost = any(version > kept.get(table, 0) for table, version in received.items())
        world.database.put_back(self._copy)
        world.restores += 1
        world.restored_while_running = running
        world.witness.restored(kept)
        world.seen("restored under running nodes" if running else "restored")
        if lost and not running:
            types = world.witness.types
            world.must_be_closed = [t for t in types if types[t][-1] != "TableClosed"]
        for after, node in self._starts:
            world.loop.call_later(after, self.start, node)
