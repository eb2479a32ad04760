"""Duplicate commands: a command id that was sent before gets the answer that it got then."""

from __future__ import annotations

from dealer.errors import CommandReused
from dealer.service.background_tasks import BackgroundTasks
from dealer.service.event_reader import EventReader
from dealer.service.execution import (
    CommandExecution,
    CommandResult,
    Outcome,
    StoredCommand,
    failed,
    unavailable,
)
from dealer.service.live_table import LiveTable
from dealer.service.reload import Reloader


class DuplicateCommands:
    """Answers repeated commands from the log."""

    def __init__(self, reader: EventReader, reloader: Reloader, tasks: BackgroundTasks) -> None:
        self._reader = reader
        self._reloader = reloader
        self._tasks = tasks

    def answer(
        self,
        live_table: LiveTable,
        execution: CommandExecution,
        stored: CommandExecution | StoredCommand,
        result: CommandResult | None = None,
    ) -> None:
        """Answer `execution`, whose id is that of `stored`; `result` is its outcome, if at hand.

        A command with another content is refused with CommandReused. While the first one is in
        flight the other waits for it.
        """
        execution.is_replay = True
        if stored.digest != execution.digest:
            execution.answer(
                CommandReused("This command id was used for another command; give each its own.")
            )
        elif isinstance(stored, CommandExecution):
            stored.waiters.append(execution)
        elif result is not None:
            execution.answer(result)
        else:
            self._tasks.start(self._answer_from_log(live_table, execution, stored))

    async def _answer_from_log(
        self, live_table: LiveTable, execution: CommandExecution, stored: StoredCommand
    ) -> None:
        outcome: Outcome
        try:
            await self._reloader.catch_up(live_table)  # another process may have written it
            events = await self._reader.events(
                live_table, after=stored.version - 1, count=stored.count
            )
            outcome = CommandResult(stored.version + stored.count - 1, events)
        except Exception as error:
            outcome = unavailable(failed("reading a command's events failed", error))
        execution.answer(outcome)
