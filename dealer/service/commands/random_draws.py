"""Random draws: cards from anywhere in a stack, brought to the top by a partial shuffle first.

Where players contribute entropy the shuffle takes a while. The draw waits in memory and happens in
the append that seals the deck. A restart loses the waiting draw but not the shuffle: the command,
sent again with the same id, continues from there.
"""

from __future__ import annotations

import asyncio

from dealer.errors import NoRound
from dealer.game.commands import Draw, DrawAtRandom
from dealer.game.events import CardDrawn, ShuffleStarted
from dealer.service.commands.background_tasks import BackgroundTasks
from dealer.service.commands.processor import CommandProcessor
from dealer.service.tables import execution as ex
from dealer.service.tables.event_reader import EventReader
from dealer.service.tables.live_table import LiveTable


class RandomDraws:
    """Draws at random, at any table."""

    def __init__(
        self, processor: CommandProcessor, reader: EventReader, tasks: BackgroundTasks
    ) -> None:
        self._processor = processor
        self._reader = reader
        self._tasks = tasks

    async def draw(
        self,
        live_table: LiveTable,
        command: DrawAtRandom,
        *,
        key: ex.IdempotencyKey | None = None,
        expect: int | None = None,
    ) -> ex.CommandResult:
        """Shuffle `command.count` cards to the top of `command.source`, then draw them.

        The result has the events of the draw; raises the refusal.
        """
        draw = Draw(command.actor, command.count, command.source)
        execution = ex.CommandExecution(command=command, key=key, expect=expect)
        future: asyncio.Future[ex.CommandResult] = asyncio.get_running_loop().create_future()
        answer = ex.resolve(future)

        def started(outcome: ex.Outcome) -> None:
            if not isinstance(outcome, ex.CommandResult):
                answer(outcome)
            elif drawn := [event for event in outcome.events if isinstance(event, CardDrawn)]:
                answer(ex.CommandResult(outcome.version, list(drawn), repeated=outcome.repeated))
            elif outcome.repeated:
                self._tasks.start(self._resume(live_table, execution, draw, outcome, answer))

        execution.done = started
        execution.draw_when_sealed, execution.on_drawn = draw, answer
        with live_table.held():
            self._processor.submit(live_table, execution)
            return await future

    async def _resume(
        self,
        live_table: LiveTable,
        execution: ex.CommandExecution,
        draw: Draw,
        start: ex.CommandResult,
        answer: ex.OnResult,
    ) -> None:
        """Answer a repeated command whose shuffle was started earlier."""
        try:
            sealed = await self._sealed_at(live_table, after=start.version)
            if sealed is None:
                pending = live_table.pending_draw
                if pending is None:
                    pending = live_table.pending_draw = ex.PendingDraw(draw, [])
                if not pending.equals(draw):  # another player's, whose cards it would show
                    ex.PendingDraw(draw, [answer]).ask_to_repeat()
                    return
                pending.answers.append(answer)
                return
            drawn = await self._reader.drawn_at_seal(live_table, draw, sealed=sealed)
        except Exception as error:
            answer(ex.failed("reading a drawn card failed", error))
            return
        if drawn is not None:
            answer(drawn)
            return
        begun, round_ = start.events[0], live_table.table.round
        if not isinstance(begun, ShuffleStarted) or round_ is None or round_.number != begun.round:
            answer(NoRound("The round of that draw is over."))
            return
        name = f"{execution.name}/draw"
        again = ex.CommandExecution(command=draw, done=answer, name=name, key=execution.key)
        self._processor.submit(live_table, again)

    async def _sealed_at(self, live_table: LiveTable, *, after: int) -> int | None:
        """The version of the DeckSealed of the shuffle begun at `after`; None before it."""
        while True:
            version = live_table.table.version
            if not await live_table.wait_committed(version):
                continue  # the seal may be in a log that this state was not a part of
            sealed = await self._reader.seal_after(live_table, after)
            if sealed is not None or version == live_table.table.version:
                return sealed
