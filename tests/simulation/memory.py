"""What a node keeps in memory: the sizes of all containers of the service and the gateway."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sized
from contextlib import suppress
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from dealer.errors import DealerError
from tests.simulation.plan import CLIENTS, Plan

if TYPE_CHECKING:
    from tests.simulation.node import Node
    from tests.simulation.world import World

Sizes = Counter[str]
"""The number of elements by `Class.attribute`, added up over all objects of the class."""

_CONTAINERS = (dict, list, set, frozenset, tuple, deque)

EMPTY = (
    "Absences._present",
    "Absences._since",
    "BackgroundTasks._tasks",
    "BatchWriter._batch",
    "Writer._queue",
    "Checkpoints._gatherings",
    "RequestQueue.waiting",
    "RequestQueue._tasks",
    "LiveTable.commit_waiters",
    "LiveTable.pending_rejections",
    "LiveTable.pending_retries",
    "LiveTable.subscribers",
    "Presence._followed",
    "Presence._seen",
    "Presence._timers",
    "RecentCommands._in_flight",
    "RepeatableAnswers._answers",
    "Session.memberships",
    "SharedPresence._elsewhere",
    "SharedPresence._pending",
    "SharedPresence._read",
    "SharedPresence._unsure",
    "SharedPresence._written",
    "TableCache._loading",
    "Writer._idle",
    "Writer._jobs",
)
"""What has no elements once the clients have left."""

LOOK_EVERY = 4
"""Of so many plans one ends with a look at the nodes' memory, which takes time."""

BOUNDED = (
    "Budgets._players",
    "CommandExecutor._nonces",
    "FeedReader._refs",
    "HouseKeys._digests",
    "Lobby._answer",
    "ServiceTables._owners",
    "StreamPositions._known",
    "StreamProjector._cached",
    "Subjects._known",
)
"""Containers with a bound of their own, above what a run reaches; their elements do not count."""


async def look(world: World) -> None:
    """All clients close their connections; then the nodes keep nothing of them."""
    for player in world.players.values():
        if player.house is not None:
            await player.house.close()
    await world._wait(
        lambda: not any(map(left_behind, world.nodes)),
        lambda: " ".join(map(left_behind, world.nodes)),
    )
    newest = next(reversed(world.witness.log), "")
    for node in world.nodes:
        if node.service is not None:
            with suppress(DealerError):
                await node.service.lifecycle.load(newest)  # others leave memory for it
        world.kept[node.name] = sizes_of(node)


def left_behind(node: Node) -> str:
    """What a node keeps of clients that have left; empty if it keeps nothing."""
    found = sizes_of(node)
    kept = {name: found[name] for name in EMPTY if found[name]}
    # Idle tables leave memory when another is loaded: those that clients had in use at one time.
    bound = max(node.world.plan.settings["idle_tables"], 2 * len(CLIENTS))
    if (tables := found["TableCache._tables"]) > bound:
        kept["TableCache._tables"] = tables
    return f"{node.name} keeps {kept} of clients that have left" if kept else ""


def sizes_of(node: Node) -> Sizes:
    """The containers that can be reached from a node's service and gateway."""
    found: Sizes = Counter()
    known: set[int] = set()
    waiting: list[Any] = [node.service, node.gateway]
    while waiting:
        one = waiting.pop()
        if id(one) in known or one is None:
            continue
        known.add(id(one))
        for name, value in _attributes(one):
            place = f"{type(one).__name__}.{name}"
            if isinstance(value, _CONTAINERS) and value:
                found[place] += len(value)
            if place not in BOUNDED:
                waiting.extend(_objects(value))
    return found


def repeated(plan: Plan, times: int) -> Plan:
    """A plan whose steps are carried out so often in one world, each time at another table."""
    length = plan.settings["length"] + 0.5
    steps = [
        step._replace(at=step.at + length * turn, number=step.number + turn)
        for turn in range(times)
        for step in plan.steps
    ]
    settings = plan.settings | {"length": length * times, "idle_tables": 1}
    return Plan(plan.seed, settings, tuple(sorted(steps)))


def grown(before: Sizes, after: Sizes) -> Sizes:
    """The containers that have more than doubled, with their new sizes."""
    # A tree's edge has as many hashes as the number of leaves has ones.
    names = after.keys() - {*BOUNDED, "Tree._edge"}
    return Counter({name: after[name] for name in names if after[name] > 2 * before[name] + 4})


def _attributes(one: Any) -> Iterator[tuple[str, Any]]:
    yield from getattr(one, "__dict__", {}).items()
    for kind in type(one).__mro__:
        for name in getattr(kind, "__slots__", ()):
            # Before Python 3.11.3 reading __weakref__ of such a dataclass raises TypeError.
            if name != "__weakref__" and hasattr(one, name):
                yield name, getattr(one, name)


def _objects(value: Any) -> Iterator[Any]:
    """The objects of dealer in a value: itself, the object of a method, or elements."""
    if isinstance(value, WeakKeyDictionary):
        return
    if isinstance(value, Mapping):
        for item in (*value.keys(), *value.values()):
            yield from _objects(item)
    elif isinstance(value, _CONTAINERS) and isinstance(value, Sized):
        for item in value:
            yield from _objects(item)
    elif hasattr(value, "__self__"):
        yield from _objects(value.__self__)
    elif type(value).__module__.startswith("dealer."):
        yield value
