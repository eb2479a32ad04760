"""Duplicate commands: a command id that was sent before gets the answer that it got then."""

from __future__ import annotations

from dealer.errors import CommandReused, DealerError
from dealer.service.background_tasks import BackgroundTasks
from dealer.service.event_reader import EventReader
from dealer.service.live_table import LiveTable
from dealer.service.reload import Reloader
from dealer.service.requests import CommandResult, Outcome, Request, StoredCommand, unavailable


class DuplicateCommands:
    """Answers repeated commands from the log."""

    def __init__(self, reader: EventReader, reloader: Reloader, tasks: BackgroundTasks) -> None:
        self._reader = reader
        self._reloader = reloader
        self._tasks = tasks

    def answer(
        self,
        live_table: LiveTable,
        request: Request,
        stored: StoredCommand,
        result: CommandResult | None = None,
    ) -> None:
        """Answer `request`, whose id is that of `stored`; `result` is its outcome, if at hand.

        A command with another content is refused with CommandReused. While the first one is in
        flight the request waits for it.
        """
        request.is_replay = True
        if stored.digest != request.digest:
            request.done(
                CommandReused("This command id was used for another command; give each its own.")
            )
        elif not stored.committed:
            stored.waiters.append(request)
        elif result is not None:
            request.done(result)
        else:
            self._tasks.start(self._answer_from_log(live_table, request, stored))

    async def _answer_from_log(
        self, live_table: LiveTable, request: Request, stored: StoredCommand
    ) -> None:
        outcome: Outcome
        try:
            await self._reloader.catch_up(live_table)  # another process may have written it
            events = await self._reader.events(
                live_table, after=stored.version - 1, count=stored.count
            )
            outcome = CommandResult(stored.version + stored.count - 1, events)
        except DealerError as error:
            outcome = unavailable(error)
        request.done(outcome)
