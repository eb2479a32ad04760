"""The world in which an administrator damages the rows of one table, at the end of a run.

Every request that meets the table is answered, nothing goes on without progress, and another table
plays on, on each node: as they run, or after a restart.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random
from typing import TYPE_CHECKING, Any

from dealer.errors import DealerError, Disabled, TableIsClosed
from dealer.feed.pages import FeedFilter
from dealer.feed.positions import FIRST_PLACE
from dealer.game import commands as c
from dealer.service import IdempotencyKey, Service
from tests.harness.damage import DAMAGE

if TYPE_CHECKING:
    from tests.simulation.core.world import CoreWorld

Report = Callable[[str], None]

PATIENT = 30.0
"""Virtual seconds after which a request counts as never answered."""

IDLE_SECONDS = 10.0
IDLE_STEPS = 2_000
"""More callbacks in these virtual seconds than before the damage: a busy loop has 50,000."""


async def others_play_on(world: CoreWorld) -> None:
    """Damage one of the tables, and report what does not hold."""
    random = Random(f"lost row {world.plan.seed}")
    archived = world.witness.archived()
    tables = [table for table in world.witness.log if table not in archived]
    if not tables or world.restored_while_running:
        return
    table, kind = random.choice(tables), random.choice(sorted(DAMAGE))
    restarts = random.random() < 0.5
    try:
        other = await _opened(world, f"other {world.plan.seed}")
    except Disabled:  # by the operator, or because the house has a new key
        return
    before = await _steps(world)
    if restarts:
        for node in world.nodes:
            node.kill(power=False)
    if not _damage(world, kind, table, other):
        return
    world.seen(f"damage {kind}")
    report = world.fault
    # The witness says truly that versions come again; what counts now is below.
    world.fault = lambda sentence: None  # type: ignore[method-assign]
    if restarts:
        await world._start()
    for node in world.nodes:
        if node.service is not None:
            await _require_answers(report, node.service, kind, table)
            await _require_plays(report, node.service, other)
    for actor in world.actors:  # they would ask for the damaged table again and again
        actor.domain.context.run(actor.do_unfollow, random)
    idle = await _steps(world)
    if idle > before + IDLE_STEPS:
        report(f"{kind}: nodes are busy with nothing to do: {before} callbacks, now {idle}")


async def _steps(world: CoreWorld) -> int:
    """The callbacks of some seconds in which the test asks for nothing."""
    before = world.loop.steps
    await asyncio.sleep(IDLE_SECONDS)
    return world.loop.steps - before


def _damage(world: CoreWorld, kind: str, table: str, other: str) -> bool:
    """Whether it could be done: a table of one event has no row in the middle."""
    raw = world.database.raw
    for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        raw.execute(f"DROP TRIGGER {name}")
    statements = [statement.format(table=table, other=other) for statement in DAMAGE[kind]]
    return all(raw.execute(statement).rowcount == 1 for statement in statements)


async def _opened(world: CoreWorld, cmd: str) -> str:
    (service, *_) = [node.service for node in world.nodes if node.service is not None]
    rules: dict[str, Any] = {"seats": 2, "entropy": "house"}
    live_table, _ = await service.open_table(rules, key=IdempotencyKey("new", cmd * 4, b"open"))
    return live_table.table_id


async def _require_answers(report: Report, service: Service, kind: str, table: str) -> None:
    async def state() -> None:
        live_table = await service.lifecycle.load(table)
        await service.checkpoints.snapshot(live_table, None)
        await service.reader.entries(live_table, 0)

    async def bundle() -> None:
        live_table = await service.lifecycle.load(table)
        async for _ in service.bundle(live_table):
            pass

    async def command() -> None:
        live_table = await service.lifecycle.load(table)
        await service.execute(live_table, c.AddNote(c.Actor(host=True), "chat", "on"))

    async def feed() -> None:
        place, more = FIRST_PLACE, service.feed.enabled()
        while more:
            page = await service.feed.reader.read(place, FeedFilter())
            place, more = page.place, page.more

    for work in (state, bundle, command, feed, state):
        await _require_answer(report, f"{kind}: {work.__name__}", work)


async def _require_plays(report: Report, service: Service, other: str) -> None:
    async def play() -> None:
        live_table = await service.lifecycle.load(other)
        await service.execute(live_table, c.AddNote(c.Actor(host=True), "chat", "on"))

    error = await _require_answer(report, "another table", play)
    # A node that starts again takes some damage for a restore, and closes what was open.
    if not isinstance(error, TableIsClosed | None) and other not in service.damaged:
        report(f"another table does not play on: {error!r}")


async def _require_answer(
    report: Report, what: str, work: Callable[[], Awaitable[None]]
) -> DealerError | None:
    try:
        async with asyncio.timeout(PATIENT):
            await work()
    except DealerError as error:
        return error
    except TimeoutError:
        report(f"{what} is not answered")
    return None
