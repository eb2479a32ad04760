"""Faults of the service: tables in memory, reloads, deadlines, checkpoints and restores."""

from __future__ import annotations

from typing import Any

from dealer.eventlog.rows import Known
from dealer.service import head_poller, restore_check
from dealer.service.checkpoints import Checkpoints
from dealer.service.command_processor import CommandProcessor
from dealer.service.deadlines import Deadlines
from dealer.service.duplicates import DuplicateCommands
from dealer.service.event_ring import EventRing
from dealer.service.live_table import LiveTable
from dealer.service.loading import Loader
from dealer.service.rejections import RejectionConfirmer
from dealer.service.reload import Reloader
from dealer.service.requests import CommandResult
from dealer.service.service import Service
from tests.simulation.faults import Replacement, fault


@fault
def signed_before_it_is_durable() -> list[Replacement]:
    """Checkpoints and snapshots do not wait until their events are on disk."""

    async def at_once(self: LiveTable, version: int) -> bool:
        self.require_here()
        return True

    return [Replacement(LiveTable, "wait_committed", lambda _: at_once)]


@fault
def lost_append_is_not_reloaded() -> list[Replacement]:
    """After an append was lost the table goes on with the state that is ahead of the log."""

    def make(_: Any) -> Any:
        def append_lost(self: LiveTable) -> None:
            self.in_flight -= 1

        return append_lost

    return [Replacement(LiveTable, "append_lost", make)]


@fault
def hint_trusted_instead_of_the_log() -> list[Replacement]:
    """Other nodes' events are read when a hint comes, and never polled."""
    return [Replacement(head_poller, "POLL_SECONDS", lambda _: 1e9)]


@fault
def deadline_not_set_after_a_reload() -> list[Replacement]:
    """The timer of a shuffle's wait is not set again when the table was reloaded."""

    def make(retry: Any) -> Any:
        def without_timer(self: CommandProcessor, live_table: LiveTable, requests: Any) -> None:
            arm, self.deadlines.arm = self.deadlines.arm, self.deadlines.disarm  # type: ignore[method-assign]
            try:
                retry(self, live_table, requests)
            finally:
                self.deadlines.arm = arm  # type: ignore[method-assign]

        return without_timer

    return [Replacement(CommandProcessor, "_retry", make)]


@fault
def deadline_in_wall_time() -> list[Replacement]:
    """The rest of a wait is computed from the wall clock, which may have been stepped."""

    def make(_: Any) -> Any:
        def expire(self: Deadlines, live_table: LiveTable, which: Any) -> None:
            live_table.timer = None
            if self._executor.now() < which[-1]:
                self._waits.pop(live_table.id, None)
                self.arm(live_table)
                return
            from dealer.game.commands import CheckDeadlines
            from dealer.service.requests import Request

            self._submit(live_table, Request(CheckDeadlines(which[-1]), lambda _: None))

        return expire

    return [Replacement(Deadlines, "_expire", make)]


@fault
def foreign_events_not_published() -> list[Replacement]:
    """A reload adopts what another node wrote, and publishes nothing."""

    def make(advance: Any) -> Any:
        async def silent(self: Loader, live_table: LiveTable) -> Any:
            fresh, notice = await advance(self, live_table)
            return fresh, notice._replace(entries=[], notes=[])

        return silent

    return [Replacement(Loader, "advance", make)]


@fault
def nothing_to_do_answered_from_memory() -> list[Replacement]:
    """A command that changes nothing is answered without asking the log."""

    def make(reject: Any) -> Any:
        def at_once(self: Any, live_table: LiveTable, request: Any, outcome: Any) -> None:
            if isinstance(outcome, CommandResult):
                live_table.when_committed(outcome.version, lambda _: request.done(outcome))
            else:
                reject(self, live_table, request, outcome)

        return at_once

    return [Replacement(RejectionConfirmer, "reject", make)]


@fault
def stale_node_is_not_caught_up() -> list[Replacement]:
    """A node answers from memory without asking the log what other nodes have written."""

    async def nothing(self: Reloader, live_table: LiveTable) -> None:
        live_table.require_here()

    return [Replacement(Reloader, "catch_up", lambda _: nothing)]


@fault
def waiting_repetition_forgotten() -> list[Replacement]:
    """When an append is lost, the repetitions that wait for its answer never get one."""

    def make(lost: Any) -> Any:
        def forgets(self: CommandProcessor, pending: Any, result: Any) -> None:
            pending.stored = None
            lost(self, pending, result)

        return forgets

    return [Replacement(CommandProcessor, "_append_lost", make)]


@fault
def random_draw_not_postponed() -> list[Replacement]:
    """A draw that waits for a seal waits permanently when its table is reloaded."""

    def make(_: Any) -> Any:
        def postpone(self: LiveTable) -> None:
            self.pending_draw = None

        return postpone

    return [Replacement(LiveTable, "postpone_draw", make)]


@fault
def restore_not_noticed() -> list[Replacement]:
    """A node that starts on an older copy of its log leaves the tables open."""

    async def nothing(log: Any, lines: Any) -> None:
        return None

    return [Replacement(restore_check, "find_lost", lambda _: nothing)]


@fault
def ring_kept_past_a_reload() -> list[Replacement]:
    """The newest events stay in memory when the log has others in their place."""

    def make(adopt: Any) -> Any:
        def keeps(self: LiveTable, fresh: LiveTable) -> None:
            clear, EventRing.clear = EventRing.clear, lambda self: None  # type: ignore[method-assign]
            try:
                adopt(self, fresh)
            finally:
                EventRing.clear = clear  # type: ignore[method-assign]

        return keeps

    return [Replacement(LiveTable, "adopt", make)]


@fault
def snapshot_of_another_version() -> list[Replacement]:
    """A snapshot says a version one lower than its state has."""

    def make(snapshot: Any) -> Any:
        async def off(self: Checkpoints, live_table: LiveTable, viewer: Any) -> Any:
            found = await snapshot(self, live_table, viewer)
            return found._replace(version=found.version - 1) if found.version > 20 else found

        return off

    return [Replacement(Checkpoints, "snapshot", make)]


@fault
def any_repetition_is_answered_as_the_first() -> list[Replacement]:
    """A repetition gets the table's present version instead of the first answer's."""

    def make(answer: Any) -> Any:
        def wrong(self: Any, live_table: LiveTable, request: Any, stored: Any, *rest: Any) -> None:
            if stored.committed and not rest:
                stored.version, stored.count = live_table.committed, 1
            answer(self, live_table, request, stored, *rest)

        return wrong

    return [Replacement(DuplicateCommands, "answer", make)]


@fault
def known_command_decided_again() -> list[Replacement]:
    """What the log says of a command that another node carried out is not looked at."""

    def make(lost: Any) -> Any:
        def forgets(self: CommandProcessor, pending: Any, result: Any) -> None:
            if isinstance(result, Known):
                pending.request.name = None
            lost(self, pending, result)
            pending.request.duplicate_of = None

        return forgets

    return [Replacement(CommandProcessor, "_append_lost", make)]


@fault
def subscription_kept_after_its_connection() -> list[Replacement]:
    """The subscription of a closed connection keeps its table in memory."""
    return [Replacement(Service, "unsubscribe", lambda _: lambda self, live_table, one: None)]
