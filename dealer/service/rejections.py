"""Rejections: a command is refused only once the refusal is certain.

The optimistic state that the command was refused on may turn out to be void. The command may have
been carried out earlier under the same id. Where several nodes share a database, another node may
have written what allows it. All of this holds as well for a command that changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from dealer.eventlog import Log
from dealer.service.background_tasks import BackgroundTasks
from dealer.service.duplicates import DuplicateCommands
from dealer.service.event_reader import EventReader
from dealer.service.execution import ATTEMPTS, CommandExecution, Outcome, failed, unavailable
from dealer.service.live_table import LiveTable, PendingRejection
from dealer.service.reload import Reloader


class RejectionConfirmer:
    """Confirms rejections; `submit` decides a request again, and raises nothing."""

    def __init__(
        self,
        log: Log,
        reader: EventReader,
        reloader: Reloader,
        duplicates: DuplicateCommands,
        tasks: BackgroundTasks,
        *,
        submit: Callable[[LiveTable, CommandExecution], None],
    ) -> None:
        self._log = log
        self._reader = reader
        self._reloader = reloader
        self._duplicates = duplicates
        self._tasks = tasks
        self._submit = submit

    def reject(self, live_table: LiveTable, execution: CommandExecution, outcome: Outcome) -> None:
        """Refuse a command that the optimistic state does not allow, or that changes nothing.

        `outcome` is the refusal, or a result without events.
        """
        version = live_table.table.version
        if execution.name is not None and live_table.stored_commands.evicted:
            self._tasks.start(
                self._reject_unless_duplicate(live_table, execution, outcome, version)
            )
        else:
            self._reject_when_committed(live_table, execution, outcome, version)

    async def _reject_unless_duplicate(
        self, live_table: LiveTable, execution: CommandExecution, outcome: Outcome, version: int
    ) -> None:
        """Search the log first: this very command may have been carried out long ago."""
        chain = live_table.chain
        try:
            stored = await self._reader.find_command(live_table, execution.name or "")
        except Exception as error:
            execution.answer(unavailable(failed("searching a command failed", error)))
            return
        if stored is not None:
            self._duplicates.answer(live_table, execution, stored)
        elif live_table.chain is not chain:
            # Reloaded meanwhile: the reason may be void, or the command among the new events.
            self._submit(live_table, execution)
        else:
            self._reject_when_committed(live_table, execution, outcome, version)

    def _reject_when_committed(
        self, live_table: LiveTable, execution: CommandExecution, outcome: Outcome, version: int
    ) -> None:
        """Reject once the state that the command was decided on is on disk; it may be lost."""

        def on_outcome(committed: bool) -> None:
            if not committed:
                self._submit(live_table, execution)
            elif not self._log.shared:
                execution.answer(outcome)
            else:
                self._confirm(live_table, PendingRejection(execution, outcome, live_table.chain))

        live_table.when_committed(version, on_outcome)

    def _confirm(self, live_table: LiveTable, rejection: PendingRejection) -> None:
        """Reject once it is known that no other node wrote what would allow the command."""
        live_table.pending_rejections.append(rejection)
        if not live_table.confirming:
            live_table.confirming = True
            self._tasks.start(self._confirm_all(live_table))

    async def _confirm_all(self, live_table: LiveTable) -> None:
        """Read the log's head once for all rejections that were pending before the read."""
        try:
            while live_table.pending_rejections:
                pending, live_table.pending_rejections = live_table.pending_rejections, []
                await self._reject_unless_changed(live_table, pending)
        finally:
            live_table.confirming = False

    async def _reject_unless_changed(
        self, live_table: LiveTable, pending: list[PendingRejection]
    ) -> None:
        try:
            await self._reloader.catch_up(live_table)
        except Exception as error:
            answer = unavailable(failed("confirming refusals failed", error))
            for execution, _, _ in pending:
                execution.answer(answer)
            return
        for execution, outcome, chain in pending:
            execution.attempts += 1
            if live_table.chain is chain or execution.attempts >= ATTEMPTS:
                execution.answer(outcome)
            else:
                self._submit(live_table, execution)
