"""What has to hold at the end of a run of the core world."""

from __future__ import annotations

from contextlib import ExitStack
from random import Random
from typing import TYPE_CHECKING

from dealer.errors import DatabaseDamaged, DealerError, TableArchived
from dealer.eventlog.recent import EVENTS
from dealer.projector.models import MODELS
from dealer.projector.runner import Projector
from dealer.proof.tree import Tree, leaf_hash
from dealer.proof.verify import verify
from dealer.service import Service
from tests.simulation.checks import (
    compare_rows,
    no_projection_stopped,
    restored_tables_are_closed,
)
from tests.simulation.core.damage import others_play_on
from tests.simulation.core.plan import COMMANDS as COMMANDS

if TYPE_CHECKING:
    from tests.simulation.core.world import CoreWorld

_DUE_HEADS = (
    "SELECT s.id, s.table_id, c.size FROM checkpoint c JOIN stream s ON s.id = c.stream"
    " JOIN event e ON e.stream = c.stream AND e.version = c.size AND e.type IN"
    " ('E', 'EntropyClosed', 'L', 'DeckSealed', 'RoundClosed', 'TableClosed')"
    " WHERE NOT EXISTS (SELECT 1 FROM archived a WHERE a.stream = s.id) ORDER BY s.id, c.size"
)
UNFED = (
    "SELECT s.id FROM stream s WHERE s.version > coalesce("
    "(SELECT max(f.last) FROM feed f WHERE f.of_stream = s.id), 0) LIMIT 1"
)


async def shuffles_end(world: CoreWorld) -> bool:
    """Load every table, and wait until no shuffle runs: each has its deadlines, on every node."""
    services = [node.service for node in world.nodes if node.service is not None]
    archived = world.witness.archived()
    with ExitStack() as held:
        for table in world.witness.log:
            if table not in archived:
                for service in services:
                    live_table = await service.lifecycle.load(table)
                    held.enter_context(live_table.held())

        def running() -> bool:
            rounds = (live_table.table.round for one in services for live_table in one.tables)
            return any(round_ is not None and round_.shuffle is not None for round_ in rounds)

        return await world._wait(lambda: not running(), lambda: "a shuffle does not end")


async def final(world: CoreWorld) -> None:
    """Report what does not hold."""
    restored_tables_are_closed(world)
    no_projection_stopped(world)
    archived = world.witness.archived()
    services = [node.service for node in world.nodes if node.service is not None]
    for table in world.witness.log:
        if table not in archived:
            await _table(world, services, table)
    if world.plan.settings["feed"]:
        await _feed_is_the_log(world, services[0], archived)
    for service in services:
        _memory_is_bounded(world, service)
    if world.plan.settings["fold"] and not world.restored_while_running:
        _read_models_are_the_fold(world)
    if world.plan.settings.get("row_lost"):
        await others_play_on(world)
    elif world.plan.settings.get("head_lost"):
        await _no_table_is_served_without_its_heads(world)


async def _no_table_is_served_without_its_heads(world: CoreWorld) -> None:
    """An administrator deletes a head that was due, or all from it on, while no node runs."""
    found = world.database.fetch(_DUE_HEADS)
    if not found:
        return
    random = Random(f"lost head {world.plan.seed}")
    stream, table, size = random.choice(found)
    for node in world.nodes:
        node.kill(power=False)
    which = random.choice(("=", ">="))
    delete = f"DELETE FROM checkpoint WHERE stream = ? AND size {which} ?"
    world.database.raw.execute(delete, (stream, size))
    world.seen("head lost")
    await world._start()
    for service in (node.service for node in world.nodes if node.service is not None):
        try:
            await service.lifecycle.load(bytes(table).hex())
        except DatabaseDamaged:
            continue
        world.fault(f"{bytes(table).hex()[:8]} is served without its head at {size}")


async def _table(world: CoreWorld, services: list[Service], table: str) -> None:
    """The log is unchanged, and every node has the state of a table that is read from it."""
    fresh = await services[0].loader.load(bytes.fromhex(table))
    kept = Tree()
    for leaf in world.witness.log[table]:
        kept.append(leaf_hash(leaf.encode()))
    root = fresh.tree.root()
    if kept.root() != root:
        world.fault(f"the log of {table[:8]} is not the events that it had")
        return
    for service in services if not world.restored_while_running else ():
        try:
            live_table = await service.lifecycle.load(table)
        except DealerError as error:
            world.fault(f"{table[:8]} cannot be loaded: {error!r}")
            continue
        if live_table.table != fresh.table or live_table.tree.root() != root:
            world.fault(f"the state of {table[:8]} in memory is not that of its log")
    if world.plan.settings["bundle"]:
        await _bundle_verifies(world, services[-1], table)


async def _bundle_verifies(world: CoreWorld, service: Service, table: str) -> None:
    try:
        live_table = await service.lifecycle.load(table)
        lines = [line.encode() async for line in service.bundle(live_table)]
    except TableArchived:
        return
    report = verify(lines, saved=[])
    if not report.ok:
        world.fault(f"the bundle of {table[:8]} does not verify: {report.verdicts()}")


async def _feed_is_the_log(world: CoreWorld, service: Service, archived: set[str]) -> None:
    feed = world.feed
    while await feed.page(service):
        pass
    if world.restored_while_running:
        return
    for table, leaves in world.witness.log.items():
        if table in archived or table in feed.skipped:
            continue
        if feed.found.get(table, []) != leaves:
            found = len(feed.found.get(table, ()))
            world.fault(f"the feed of {table[:8]} has {found} events, not the {len(leaves)}")


def _memory_is_bounded(world: CoreWorld, service: Service) -> None:
    recent = service.recent
    if recent.bytes > recent.bound or recent.bytes != sum(r.size for r in recent._rings.values()):
        world.fault(f"the recent events take {recent.bytes} bytes")
    for table, ring in recent._rings.items():
        if table not in recent.waiting and not recent._followed and len(ring.records) > EVENTS:
            world.fault(f"{len(ring.records)} events of a table are kept")
    idle = sum(live_table.idle() for live_table in service.tables)
    if idle > max(1, world.plan.settings["idle_tables"]) and not world.restores:
        world.fault(f"{idle} idle tables are in memory")


def _read_models_are_the_fold(world: CoreWorld) -> None:
    """The rows are those that a projector writes which reads the log from the beginning."""
    raw = world.database.raw
    found = {model.name: set(raw.execute(f"SELECT * FROM {model.name}")) for model in MODELS}
    raw.execute("BEGIN")
    for name in found:
        raw.execute(f"DELETE FROM {name}")
    raw.execute("UPDATE stream SET projected = 0")
    raw.execute("COMMIT")
    projector = Projector()
    while world.database.transaction(projector.slice, durable=True):
        pass
    for name, rows in found.items():
        compare_rows(world, name, rows, set(raw.execute(f"SELECT * FROM {name}")))
    if projector.stopped:
        world.fault(f"the log cannot be projected: {projector.stopped}")
