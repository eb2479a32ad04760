"""Rejections: a command is refused only once the refusal is certain.

| what may be wrong with a refusal | what is awaited first |
|---|---|
| this very command was carried out long ago, under the same id | a search in the log |
| the optimistic state that it was refused on is void | that state is on disk |
| another node has written what allows it | a look at the log's head |

All of this holds as well for a command that changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from dealer.eventlog import Log
from dealer.service.commands.background_tasks import BackgroundTasks
from dealer.service.commands.table_lifecycle import TableLifecycle
from dealer.service.tables.event_reader import EventReader
from dealer.service.tables.execution import (
    ATTEMPTS,
    CommandExecution,
    Outcome,
    StoredCommand,
    failed,
    unavailable,
)
from dealer.service.tables.live_table import LiveTable, PendingRejection


class Rejections:
    """The rejections of one processor, which gives its functions.

    `submit` decides a command again, and `answer_repeated` answers one that was carried out.
    """

    def __init__(
        self,
        log: Log,
        reader: EventReader,
        lifecycle: TableLifecycle,
        tasks: BackgroundTasks,
        *,
        submit: Callable[[LiveTable, CommandExecution], None],
        answer_repeated: Callable[[LiveTable, CommandExecution, StoredCommand], None],
    ) -> None:
        self._log = log
        self._reader = reader
        self._tasks = tasks
        self._lifecycle = lifecycle
        self._submit = submit
        self._answer_repeated = answer_repeated

    def reject(self, live_table: LiveTable, execution: CommandExecution, outcome: Outcome) -> None:
        """Refuse a command that the optimistic state does not allow, or that changes nothing.

        `outcome` is the refusal, or a result without events.
        """
        version = live_table.table.version
        if execution.name is not None and live_table.stored_commands.evicted:
            self._tasks.start(self._search_first(live_table, execution, outcome, version))
        else:
            self._await_commit(live_table, execution, outcome, version)

    async def _search_first(
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
            self._answer_repeated(live_table, execution, stored)
        elif live_table.chain is not chain:
            # Reloaded meanwhile: the reason may be void, or the command among the new events.
            self._submit(live_table, execution)
        else:
            self._await_commit(live_table, execution, outcome, version)

    def _await_commit(
        self, live_table: LiveTable, execution: CommandExecution, outcome: Outcome, version: int
    ) -> None:
        """Reject once the state that the command was decided on is on disk; it may be lost."""

        def on_outcome(committed: bool) -> None:
            if not committed:
                self._submit(live_table, execution)
            elif not self._log.shared:
                execution.answer(outcome)
            else:
                rejection = PendingRejection(execution, outcome, live_table.chain)
                live_table.pending_rejections.append(rejection)
                if not live_table.confirming:
                    live_table.confirming = True
                    self._tasks.start(self._confirm(live_table))

        live_table.when_committed(version, on_outcome)

    async def _confirm(self, live_table: LiveTable) -> None:
        """Reject what no other node has written anything against.

        One look at the log's head serves all rejections that were pending before it.
        """
        try:
            while live_table.pending_rejections:
                pending, live_table.pending_rejections = live_table.pending_rejections, []
                try:
                    await self._lifecycle.catch_up(live_table)
                except Exception as error:
                    answer = unavailable(failed("confirming refusals failed", error))
                    for execution, _, _ in pending:
                        execution.answer(answer)
                    continue
                for execution, outcome, chain in pending:
                    execution.attempts += 1
                    if live_table.chain is chain or execution.attempts >= ATTEMPTS:
                        execution.answer(outcome)
                    else:
                        self._submit(live_table, execution)
        finally:
            live_table.confirming = False
