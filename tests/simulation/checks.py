"""What has to hold at the end of a run, when no client waits any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dealer.errors import DealerError, TableArchived
from dealer.eventlog.rows import leaf_of
from dealer.projector.models import MODELS
from dealer.projector.runner import Projector
from dealer.proof.verify import verify
from dealer.service.tables.live_table import TableState

if TYPE_CHECKING:
    from tests.simulation.node import Node
    from tests.simulation.world import World


def lagging(world: World) -> str:
    """What is not up to date with the log, at this moment."""
    if behind := _behind(world):
        return "events do not arrive: " + ", ".join(behind)
    if unfed := _unfed(world):
        return "the feed is not complete: " + unfed
    if missing := world.receiver.missing():
        return "webhooks are not delivered: " + missing
    if world.database.fetch("SELECT 1 FROM stream WHERE version > projected LIMIT 1"):
        return "the read models are not up to date"
    return next(filter(None, map(memory_waits, world.nodes)), "")


def _behind(world: World) -> list[str]:
    found = []
    for player in world.players.values():
        table = player.table
        if table is None or table._session.error is not None:
            continue
        head = len(world.witness.log.get(table.id, ()))
        if table.version < head and not table.closed:
            found.append(f"{player.name} has {table.version} of {head}")
    return found


def _unfed(world: World) -> str:
    follower = world.follower
    if not follower.key or world.restores:
        return ""
    missing = [
        f"{table[:8]} has {len(follower.found.get(table, ()))} of {len(leaves)}"
        for table, leaves in world.witness.log.items()
        if table not in follower.skipped and len(follower.found.get(table, ())) < len(leaves)
    ]
    return ", ".join(missing)


async def final(world: World) -> None:
    """Report what does not hold; the first checks are of one moment."""
    if not world.restored_while_running:  # the operator's steps stop the nodes first
        _read_models_are_the_fold(world)
    _feed_is_the_log(world)
    restored_tables_are_closed(world)
    no_projection_stopped(world)
    await _log_is_kept(world)
    await _bundles_verify(world)


def no_projection_stopped(world: World) -> None:
    """At no time, also where another node went on with the table."""
    if not world.restored_while_running:
        for table, sentence in world.database.projections_stopped.items():
            world.fault(f"the read models of {table[:8]} were stopped: {sentence}")


def restored_tables_are_closed(world: World) -> None:
    """After a restore, as soon as any node serves the log."""
    for table in world.must_be_closed:
        if world.witness.types[table][-1] != "TableClosed":
            world.fault(f"{table[:8]} was restored to an older state, and is still open")


async def _log_is_kept(world: World) -> None:
    """Every event that was committed is there, unchanged, unless its table was archived."""
    service = next((node.service for node in world.nodes if node.service is not None), None)
    if service is None:
        return
    archived = {bytes(t).hex() for (t,) in await service.log.fetch(ARCHIVED)}
    for table, found in world.witness.log.items():
        leaves, id = list(found), bytes.fromhex(table)
        if table in archived:
            continue
        kept = [leaf_of(id, row) async for part in service.log.stream(id) for row in part]
        if kept[: len(leaves)] != leaves:
            world.fault(f"the log of {table[:8]} is not the {len(leaves)} events that it had")


ARCHIVED = "SELECT s.table_id FROM archived a JOIN stream s ON s.id = a.stream"


async def _bundles_verify(world: World) -> None:
    """Each table that is not archived verifies, with all heads that the clients saved."""
    node = next((node for node in world.nodes if node.service is not None), None)
    if node is None or node.service is None:
        return
    for table in list(world.witness.log):
        saved = [
            note
            for player in world.players.values()
            if player.house is not None and not world.restores
            for one in player.house._tables.values()
            if one.id == table
            for note in one.checkpoints
        ]
        try:
            live_table = await node.service.lifecycle.load(table)
            lines = [line.encode() async for line in node.service.bundle(live_table)]
        except TableArchived:
            world.seen("bundle archived")
            continue
        except DealerError as error:
            world.fault(f"table {table[:8]} has no bundle: {error!r}")
            continue
        report = verify(lines, saved=saved)
        if not report.ok and world.restored_while_running:
            world.seen("signed again what was undone")  # the operator's steps stop the nodes first
        elif not report.ok:
            world.fault(f"the bundle of {table[:8]} does not verify: {report.verdicts()}")


def _read_models_are_the_fold(world: World) -> None:
    """The rows are those that a projector writes which reads the log from the beginning."""
    database = world.database
    found = {model.name: set(database.fetch(f"SELECT * FROM {model.name}")) for model in MODELS}
    copy = database.copy()
    for name in found:
        database.fetch(f"DELETE FROM {name}")
    database.fetch("UPDATE stream SET projected = 0")
    projector = Projector()
    while database.transaction(projector.slice, durable=False):
        pass
    for name, rows in found.items():
        compare_rows(world, name, rows, set(database.fetch(f"SELECT * FROM {name}")))
    if projector.stopped:
        world.fault(f"the log cannot be projected: {projector.stopped}")
    database.put_back(copy)


def compare_rows(world: World, name: str, rows: set[Any], expected: set[Any]) -> None:
    if rows != expected:
        world.fault(f"{name} has {sorted(rows - expected)[:2]}, not {sorted(expected - rows)[:2]}")


def _feed_is_the_log(world: World) -> None:
    if world.restores:
        return
    for table, leaves in world.follower.found.items():
        if table not in world.follower.skipped and leaves != world.witness.log.get(table):
            world.fault(f"the feed of {table[:8]} is not its log")


def memory_waits(node: Node) -> str:
    """What still waits in the memory of a node, where no client waits."""
    for live_table in () if node.service is None else node.service.tables:
        left = {
            "reloads": live_table.state is TableState.RELOADING,
            "appends": live_table.in_flight,
            "retries": len(live_table.pending_retries),
            "rejections": len(live_table.pending_rejections),
            "waiters": len(live_table.commit_waiters),
            "holds": live_table.holds,
        }
        waiting = {name: int(count) for name, count in left.items() if count}
        if waiting:
            return f"{node.name}: {live_table.table_id[:8]} still has {waiting}"
    return ""
