"""Faults of the service: tables in memory, reloads, deadlines, checkpoints and restores."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from dealer.eventlog.recent import RecentEvents
from dealer.eventlog.rows import Duplicate
from dealer.service.commands.processor import CommandProcessor
from dealer.service.commands.rejections import Rejections
from dealer.service.commands.table_lifecycle import TableLifecycle
from dealer.service.nodes import head_poller
from dealer.service.operations import restore_check
from dealer.service.reading.checkpoints import Checkpoints
from dealer.service.service import Service
from dealer.service.tables import loading
from dealer.service.tables.execution import CommandResult, StoredCommand
from dealer.service.tables.live_table import LiveTable
from dealer.service.tables.loading import Loader
from tests.simulation.faults import Replacement, fault, fault_of


@fault_of(LiveTable, "wait_committed")
async def signed_before_it_is_durable(_: Any, self: LiveTable, version: int) -> bool:
    """Checkpoints and snapshots do not wait until their events are on disk."""
    self.require_here()
    return True


@fault_of(LiveTable, "append_lost")
def lost_append_is_not_reloaded(_: Any, self: LiveTable) -> None:
    """After an append was lost the table goes on with the state that is ahead of the log."""
    self.in_flight -= 1


@fault_of(Loader, "_end")
async def version_not_compared_with_the_rows(_: Any, self: Loader, table: bytes) -> Any:
    """A load ends at the newest row, whatever the version of the table is."""
    end = await self._log.end(table)
    return end._replace(version=end.newest)


@fault
def missing_head_not_noticed() -> list[Replacement]:
    """A load looks at the newest head that is there, and not for those that are due."""
    return [Replacement(loading, "CHECKPOINT_TYPES", lambda _: frozenset())]


@fault
def hint_trusted_instead_of_the_log() -> list[Replacement]:
    """Other nodes' events are read when a hint comes, and never polled."""
    return [Replacement(head_poller, "POLL_SECONDS", lambda _: 1e9)]


@fault_of(TableLifecycle, "_resume")
def deadline_not_set_after_a_reload(
    resume: Any, self: TableLifecycle, live_table: LiveTable
) -> None:
    """The timer of a shuffle's wait is not set again when the table was reloaded."""
    arm, self.deadlines.arm = self.deadlines.arm, self.deadlines.disarm  # type: ignore[method-assign]
    try:
        resume(self, live_table)
    finally:
        self.deadlines.arm = arm  # type: ignore[method-assign]


@fault_of(TableLifecycle, "_on_deadline")
def deadline_in_wall_time(on_deadline: Any, self: TableLifecycle, table: bytes, wait: Any) -> None:
    """The rest of a wait is computed from the wall clock, which may have been stepped."""
    live_table = self._cache.get(table.hex())
    if live_table is not None and self.deadlines._now() < wait[-1]:
        self.deadlines.forget(table)
        self.deadlines.arm(live_table)
        return
    on_deadline(self, table, wait)


@fault_of(Loader, "advance")
async def foreign_events_not_published(advance: Any, self: Loader, live_table: LiveTable) -> Any:
    """A reload adopts what another node wrote, and publishes nothing."""
    fresh, notice = await advance(self, live_table)
    return fresh, replace(notice, entries=[], notes=[])


@fault_of(Rejections, "reject")
def nothing_to_do_answered_from_memory(
    reject: Any, self: Any, live_table: LiveTable, request: Any, outcome: Any
) -> None:
    """A command that changes nothing is answered without asking the log."""
    if isinstance(outcome, CommandResult):
        live_table.when_committed(outcome.version, lambda _: request.done(outcome))
    else:
        reject(self, live_table, request, outcome)


@fault_of(TableLifecycle, "catch_up")
async def stale_node_is_not_caught_up(_: Any, self: TableLifecycle, live_table: LiveTable) -> None:
    """A node answers from memory without asking the log what other nodes have written."""
    live_table.require_here()


@fault_of(CommandProcessor, "_keep_for_retry")
def waiting_repetition_forgotten(
    lost: Any, self: CommandProcessor, live_table: Any, execution: Any, result: Any
) -> None:
    """When an append is lost, the repetitions that wait for its answer never get one."""
    execution.waiters = []
    lost(self, live_table, execution, result)


@fault_of(LiveTable, "drop_pending_draw")
def random_draw_not_postponed(_: Any, self: LiveTable) -> None:
    """A draw that waits for a seal waits permanently when its table is reloaded."""
    self.pending_draw = None


@fault_of(restore_check, "find_lost")
async def restore_not_noticed(*_: Any) -> None:
    """A node that starts on an older copy of its log leaves the tables open."""


@fault_of(restore_check, "_loss")
async def restore_not_noticed_by_the_first_node(
    _: Any, log: Any, lines: Any, *__: Any
) -> dict[str, str] | None:
    """A node that has seen none of the lost events has no mark of them, and plays on."""
    lost = await restore_check.find_lost(log, lines)
    return None if lost is None else {"table": lost.table.hex()}


@fault_of(RecentEvents, "add")
def gap_in_recent_events(
    add: Any, self: RecentEvents, table: bytes, records: Any, **k: Any
) -> None:
    """The newest events stay in memory when another process has written what follows them."""
    ring = self._rings.get(table)
    if ring is None:
        add(self, table, records, **k)
        return
    ring.records.append(replace(ring.records[-1], version=records[0].version - 1))
    add(self, table, records, **k)
    del ring.records[-len(records) - 1]


@fault_of(Checkpoints, "snapshot")
async def snapshot_of_another_version(
    snapshot: Any, self: Checkpoints, live_table: LiveTable, viewer: Any
) -> Any:
    """A snapshot says a version one lower than its state has."""
    found = await snapshot(self, live_table, viewer)
    return found._replace(version=found.version - 1) if found.version > 20 else found


@fault_of(CommandProcessor, "answer_repeated")
def any_repetition_is_answered_as_the_first(
    answer: Any, self: Any, live_table: LiveTable, request: Any, stored: Any, *rest: Any
) -> None:
    """A repetition gets the table's present version instead of the first answer's."""
    if isinstance(stored, StoredCommand) and not rest:
        stored.version, stored.count = live_table.committed, 1
    answer(self, live_table, request, stored, *rest)


@fault_of(CommandProcessor, "_keep_for_retry")
def known_command_decided_again(
    lost: Any, self: CommandProcessor, live_table: Any, execution: Any, result: Any
) -> None:
    """What the log says of a command that another node carried out is not looked at."""
    if isinstance(result, Duplicate):
        execution.name = execution.key = None
    lost(self, live_table, execution, result)
    execution.duplicate_of = None


@fault_of(Service, "unsubscribe")
def subscription_kept_after_its_connection(*_: Any) -> None:
    """The subscription of a closed connection keeps its table in memory."""
