"""Named points: a node is killed in the middle of a function, where `tests/chaos` kills processes.

The rest of what the node was doing never runs, not even a `finally`: its callback is in a greenlet
of its own, which is not continued. The database rolls back a transaction that was not committed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from contextvars import Context
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple
from unittest.mock import patch

from sqlalchemy import event

from tests.chaos import named_points, node_points
from tests.chaos.named_points import Point
from tests.harness.dies_at import wrapped
from tests.harness.statements import watch_direct
from tests.simulation.loop import DOMAIN

if TYPE_CHECKING:
    from tests.simulation.node import Node
    from tests.simulation.plan import Plan
    from tests.simulation.world import World

_STORE = "tests.simulation.store:SimulatedStore"
_SIMULATED = {
    "dealer.eventlog.sqlite.store:SqliteStore.append": f"{_STORE}.append",
    "dealer.eventlog.sqlite.store:SqliteStore.run": f"{_STORE}.run",
    "dealer.eventlog.postgres.store:PostgresStore.append": f"{_STORE}.append",
    "dealer.eventlog.postgres.store:PostgresStore.run": f"{_STORE}.run",
    "dealer.eventlog.postgres.reader:Notifier._on_hint": (
        "tests.simulation.store:SimulatedNotifier.receive"
    ),
}
"""Functions of stores, and those that take their place."""


def _points() -> Iterator[tuple[str, Point]]:
    found = named_points.PLAYING | node_points.POINTS | named_points.DRAINING
    for name, point in found.items():
        function = _SIMULATED.get(point.function, point.function)
        if not function.startswith("dealer.eventlog.postgres") and "WITH step" not in point.place:
            yield name, point._replace(function=function)


POINTS = dict(_points())
"""The points that a simulated node reaches, by name."""


class Crash(NamedTuple):
    """A point, the number of passes until the node dies there, and when it starts again."""

    name: str
    passes: int
    seconds: float

    @classmethod
    def of(cls, number: int, seconds: float) -> Crash:
        """The crash that a random number stands for."""
        random = Random(number)
        name = random.choice(list(POINTS))
        return cls(name, random.randint(1, POINTS[name].often), seconds)


class Points:
    """Kills nodes of a world at the points that `arm` was given."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._armed: dict[str, Crash] = {}

    def arm(self, node: Node, crash: Crash) -> None:
        """Kill the node when it comes to this point; it is drained if only that leads there."""
        self._armed[node.name] = crash
        self._world.loop.apart.add(node.name)
        if crash.name in named_points.DRAINING:
            node.drain()
            self._world.loop.call_later(4.0, self._world.disturbances.start, node)

    def disarm(self) -> None:
        self._armed.clear()
        self._world.loop.apart.clear()

    def _reached(self, name: str) -> None:
        domain = DOMAIN.get()
        crash = None if domain is None else self._armed.get(domain.name)
        if domain is None or domain.dead or crash is None or crash.name != name:
            return
        if crash.passes > 1:
            self._armed[domain.name] = crash._replace(passes=crash.passes - 1)
            return
        world = self._world
        del self._armed[domain.name]
        world.loop.apart.discard(domain.name)
        world.seen(f"killed {name}")
        node = next(one for one in world.nodes if one.name == domain.name)
        world.database.roll_back()
        node.kill(power=False)
        # In a context without a domain: this one's callbacks never run again.
        start = world.disturbances.start
        world.loop.call_later(crash.seconds, start, node, context=Context())
        world.threads.abandon()

    @contextmanager
    def watched(self, plan: Plan) -> Iterator[None]:
        """Watch the points of the plan's steps, in the block."""
        numbers = {step.number for step in plan.steps if step.what == "crash_at"}
        with ExitStack() as stack:
            for name in sorted({Crash.of(number, 0.0).name for number in numbers}):
                self._watch(name, POINTS[name], stack)
            yield

    def _watch(self, name: str, point: Point, stack: ExitStack) -> None:
        when, _, statement = point.place.partition(" ")
        if not statement:
            begin = self._reached if when == "begin" else _nothing
            end = self._reached if when == "end" else _nothing
            watch = wrapped(point.function, begin=lambda: begin(name), end=lambda: end(name))
            stack.enter_context(patch.object(*watch))
            return
        depth = 0

        def inside(change: int) -> None:
            nonlocal depth
            depth += change

        def executed(sql: str) -> None:
            if depth > 0 and sql.strip().startswith(statement):
                self._reached(name)

        def on_statement(connection: Any, cursor: Any, sql: str, *_: Any) -> None:
            executed(sql)

        # A function in which a node died never ends; by then the point is not armed any more.
        watch = wrapped(point.function, begin=lambda: inside(1), end=lambda: inside(-1))
        stack.enter_context(patch.object(*watch))
        self._world.database.watched.append((when, executed))
        listener = self._world.database.connection.engine, f"{when}_cursor_execute", on_statement
        event.listen(*listener)
        stack.callback(event.remove, *listener)
        replace: Any = lambda *given: stack.enter_context(patch.object(*given))  # noqa: E731
        watch_direct("before" if when == "before" else "after", executed, patch=replace)


def _nothing(name: str) -> None:
    pass
